"""Every page, light and dark, held to WCAG A and AA by axe: nothing serious."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.support.accessibility import serious
from tests.support.sites import Site
from tests.support.tours import addresses, fill

#: our own frame around the same pages: a table, a form, a text
_OWN = {"own-overview", "own-lane", "own-pause", "own-letters", "own-letter"}


@pytest.mark.parametrize("mount", ["admin", "own"])
def test_axe_finds_nothing_serious_on_any_page_in_either_theme(
    site: Site, open_as: Callable[..., Page], mount: str
) -> None:
    fill(site)
    page, found = open_as(), {}

    for name, address in addresses(site).items():
        if name.startswith(mount) and (mount == "admin" or name in _OWN):
            page.goto(address)
            found |= {f"{name} {theme}": serious(page, theme) for theme in ("light", "dark")}

    assert {where: what for where, what in found.items() if what} == {}
