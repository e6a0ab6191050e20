"""The pages in a browser while the server is frozen or gone: no false zero, nothing to press, and back again."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.support.accessibility import serious
from tests.support.sites import Site

OWN = "/queue/"


@pytest.mark.parametrize("how", ["frozen", "killed"])
def test_an_open_page_keeps_its_numbers_says_so_and_recovers(
    site: Site, open_as: Callable[..., Page], how: str
) -> None:
    site.enqueue("send_receipt", {"number": "S-001"}, number=7, lane="low")
    page = open_as()
    page.goto(OWN)
    ready = page.locator('tr[data-key="low"] td[data-label="Ready"]')
    before = ready.inner_text()

    site.server.freeze() if how == "frozen" else site.server.kill()

    status = page.locator("[data-part=status]")
    expect(status).to_contain_text("Unknown: Redis does not answer")
    expect(page.locator("[data-board]")).to_have_class(re.compile("pq-stale"))
    expect(page.locator('tr[data-key="low"] a.pq-button')).to_have_attribute("aria-disabled", "true")
    assert ready.inner_text() == before

    site.server.thaw() if how == "frozen" else site.server.start()

    expect(status).not_to_contain_text("Unknown", timeout=20_000)
    expect(page.locator("[data-board]")).not_to_have_class(re.compile("pq-stale"))
    expect(ready).to_have_text(before)


def test_a_page_opened_meanwhile_shows_what_was_last_known_and_its_time(
    site: Site, open_as: Callable[..., Page]
) -> None:
    page = open_as()
    page.goto(OWN)
    site.server.freeze()

    answer = page.goto(OWN)

    assert answer.status == 503
    expect(page.locator(".errornote")).to_contain_text("these are the numbers of")
    expect(page.locator("[data-board] a.pq-button")).to_have_count(0)
    assert [serious(page, theme) for theme in ("light", "dark")] == [[], []]
    site.server.thaw()
    expect(page.locator("[data-part=status]")).not_to_contain_text("Unknown", timeout=20_000)
    expect(page.locator(".errornote")).to_have_count(0)
    expect(page.locator('tr[data-key="low"] a.pq-button')).to_have_count(1)


def test_the_page_itself_says_when_no_answer_comes_any_more(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as()
    page.goto(OWN)

    page.context.route("**/data/**", lambda _: None)  # never answered

    expect(page.locator("[data-as-of]")).to_contain_text("stale", timeout=20_000)
    page.context.unroute("**/data/**")
