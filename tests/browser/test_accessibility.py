"""Every page, light and dark, held to WCAG A and AA by axe: nothing serious."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.support.sites import Site
from tests.support.tours import addresses, fill

_WCAG = json.dumps({"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], "resultTypes": ["violations"]})


@pytest.mark.parametrize("mount", ["admin", "own"])
def test_axe_finds_nothing_serious_on_any_page_in_either_theme(
    site: Site, open_as: Callable[..., Page], mount: str
) -> None:
    fill(site)
    page, found = open_as(), {}

    for name, address in addresses(site).items():
        if name.startswith(mount):
            page.goto(address)
            page.evaluate(Axe().axe_script)
            found |= {f"{name} {theme}": _serious(page, theme) for theme in ("light", "dark")}

    assert {where: what for where, what in found.items() if what} == {}


def _serious(page: Page, theme: Any) -> list[tuple[str, list[str]]]:
    """Return the rules that a page breaks under a theme, and where."""
    page.emulate_media(color_scheme=theme)
    # A colour on its way from the one theme to the other is neither.
    page.evaluate("document.getAnimations().forEach((animation) => animation.finish())")
    results = page.evaluate(f"axe.run({_WCAG})")
    serious = [each for each in results["violations"] if each["impact"] in ("serious", "critical")]
    return [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in serious]
