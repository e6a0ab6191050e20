"""When the overview asks, and when it speaks: not while nobody looks, and only when something else is wrong."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import fresh_site
from tests.support.sites import Site

site = fresh_site
ADMIN, OWN = "/admin/priqueue/queue/", "/queue/"
_HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
  document.dispatchEvent(new Event("visibilitychange"));
}"""
_LIVE = """[...document.querySelectorAll(
  "[aria-live], [role=status], [role=alert], [role=log], [role=timer], [role=marquee], output"
)].map((region) => [region.getAttribute("role"), region.getAttribute("aria-live")])"""
_LISTEN = """() => {
  window.said = [];
  const live = document.querySelector("[data-live]");
  const heard = new MutationObserver(() => window.said.push(live.textContent));
  heard.observe(live, {childList: true, characterData: true, subtree: true});
}"""


@pytest.fixture(autouse=True)
def _served(site: Site) -> None:
    for lane in ("high", "default", "low"):
        site.coordinator.resume(lane, caller="system", reason="the test before")
    site.coordinator.promote()
    site.coordinator.reclaim()


def asked(page: Page) -> list[str]:
    """Return a list that grows with each time the page asks for its document."""
    made: list[str] = []
    page.on("request", lambda request: made.append(request.url) if "/data/" in request.url else None)
    return made


def ready(page: Page, lane: str) -> int:
    return int(page.locator(f'tr[data-key="{lane}"] td[data-label="Ready"]').inner_text().replace(",", ""))


@pytest.mark.parametrize("mount", [ADMIN, OWN])
def test_a_hidden_tab_asks_nothing_and_a_shown_one_at_once(
    site: Site, open_as: Callable[..., Page], mount: str
) -> None:
    page = open_as()
    page.clock.install()
    page.goto(mount)
    made = asked(page)
    with page.expect_response("**/data/**"):
        page.clock.run_for(2_100)
    before, seen = ready(page, "low"), len(made)

    page.evaluate(_HIDE, True)
    site.enqueue("send_receipt", {"number": "S-001"}, number=3, lane="low")
    page.clock.run_for(300_000)
    assert (len(made) - seen, ready(page, "low")) == (0, before)
    page.evaluate(_HIDE, False)

    # The clock stands still: what comes now was asked for at once, and once.
    expect(page.locator('tr[data-key="low"] td[data-label="Ready"]')).to_have_text(str(before + 3))
    assert len(made) - seen == 1
    with page.expect_response("**/data/**"):
        page.clock.run_for(2_100)


def test_a_tab_that_is_hidden_while_an_answer_is_on_its_way_asks_no_more(
    site: Site, open_as: Callable[..., Page]
) -> None:
    page = open_as()
    page.clock.install()
    page.goto(OWN)
    made = asked(page)
    with page.expect_response("**/data/**"):
        page.clock.run_for(2_100)
        page.evaluate(_HIDE, True)

    page.clock.run_for(60_000)

    assert len(made) == 1


def test_a_tab_that_somebody_paused_stays_so_when_it_is_shown_again(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as()
    page.clock.install()
    page.goto(OWN)
    made = asked(page)

    page.locator("[data-pause]").click()
    page.evaluate(_HIDE, True)
    page.evaluate(_HIDE, False)
    page.clock.run_for(60_000)

    assert made == []


@pytest.mark.parametrize("mount", [ADMIN, OWN])
def test_one_polite_region_speaks_when_something_else_is_wrong_and_at_no_poll(
    site: Site, open_as: Callable[..., Page], mount: str
) -> None:
    site.enqueue("send_receipt", {"number": "S-001"}, lane="low")
    page = open_as()
    page.goto(mount)
    assert page.evaluate(_LIVE) == [["status", None]]
    page.evaluate(_LISTEN)
    status = page.locator("[data-status]")
    expect(status).to_contain_text("no worker is registered")

    # The line's number moves, poll by poll, and something lesser joins it.
    for _ in range(2):
        before = status.inner_text()
        site.enqueue("send_receipt", {"number": "S-001"}, lane="low")
        expect(status).not_to_have_text(before)
    site.coordinator.pause("high", caller="system", reason="something lesser")
    expect(page.locator(".pq-more")).to_contain_text("high is paused by system")
    assert page.evaluate("window.said") == []

    # A worker is there: now the pause is what is worst.
    site.coordinator.register("web1:311:abc", lanes=["high", "default", "low"], concurrency=1)
    expect(status).to_contain_text("high is paused by system")
    page.wait_for_function("window.said.length > 0")
    assert [" ".join(said.split()) for said in page.evaluate("window.said")] == [" ".join(status.inner_text().split())]
    site.coordinator.leave("web1:311:abc")
