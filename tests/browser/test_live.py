"""The overview in a browser: it moves by itself, pauses, and shows a lane's pause everywhere."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.support.sites import Site
from tests.support.waiting import until

ADMIN, OWN = "/admin/priqueue/queue/", "/queue/"


@pytest.fixture(autouse=True)
def _served(site: Site) -> None:
    site.coordinator.resume("low", caller="system", reason="the test before")
    site.coordinator.promote()
    site.coordinator.reclaim()


@pytest.mark.parametrize("mount", [ADMIN, OWN])
def test_numbers_move_without_a_reload(site: Site, open_as: Callable[..., Page], mount: str) -> None:
    page = open_as()
    page.goto(mount)
    ready = page.locator('tr[data-key="low"] td[data-label="Ready"]')
    before = int(ready.inner_text().replace(",", ""))
    page.evaluate("window.notReloaded = true")

    site.enqueue("send_receipt", {"number": "S-001"}, number=3, lane="low")

    expect(ready).to_have_text(str(before + 3))
    assert page.evaluate("window.notReloaded")


def test_charts_move_as_points_come(site: Site, open_as: Callable[..., Page]) -> None:
    site.fill_series()
    page = open_as()
    page.goto(OWN)
    expect(page.locator('[data-chart="throughput"] canvas')).to_be_visible()
    picture = page.locator('[data-chart="throughput"] canvas').screenshot()
    rows = page.locator('[data-chart="throughput"] tbody tr').all_inner_texts()

    site.raw.hincrby(site.keys.series(_now_ms(site) - 10_000), "acked:high", 90_000)
    page.reload()
    page.locator('[data-chart="throughput"] [data-table]').click()

    assert picture != page.locator('[data-chart="throughput"]').screenshot()
    assert rows != page.locator('[data-chart="throughput"] tbody tr').all_inner_texts()


def test_a_chart_draws_what_its_table_says(site: Site, open_as: Callable[..., Page]) -> None:
    site.fill_series()
    page = open_as()
    page.goto(OWN, wait_until="commit")
    shown = page.locator('[data-chart="load"] [data-rows]')

    drawn = page.evaluate("document.querySelectorAll('[data-chart=load] tbody tr').length")
    page.locator('[data-chart="load"] [data-table]').click()

    expect(shown).to_be_visible()
    assert drawn >= 12
    assert "No samples" in page.locator('[data-chart="load"]').inner_text()


def test_tables_are_there_without_javascript_and_say_the_same(site: Site, open_as: Callable[..., Page]) -> None:
    site.fill_series()
    plain, scripted = open_as(java_script_enabled=False), open_as()
    for page in (plain, scripted):
        page.goto(OWN)
    scripted.locator('[data-chart="errors"] [data-table]').click()

    rows = [page.locator('[data-chart="errors"] tbody tr').all_inner_texts() for page in (plain, scripted)]

    assert len(rows[0]) >= 12
    # The newest row still grows, and the oldest loses points.
    assert [" ".join(row.split()) for row in rows[0][1:-1]] == [" ".join(row.split()) for row in rows[1][1:-1]]


def test_the_share_is_shown_at_a_press_and_the_time_shortened(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as()
    page.goto(OWN)

    page.get_by_role("button", name="Share").click()
    page.get_by_role("button", name="15 min").click()

    expect(page.get_by_role("button", name="Share")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name="15 min")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name="1 h")).to_have_attribute("aria-pressed", "false")


def test_a_paused_page_asks_no_more_and_goes_on_at_once(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as()
    page.goto(OWN)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    page.locator("[data-pause]").click()
    stopped = len(asked)
    ready = page.locator('tr[data-key="default"] td[data-label="Ready"]')
    before = ready.inner_text()
    site.enqueue("write_invoice", {"number": "S-001"}, number=5, lane="default")
    page.wait_for_timeout(2_500)
    assert (len(asked) - stopped, ready.inner_text()) == (0, before)
    page.locator("[data-pause]").click()

    expect(ready).not_to_have_text(before)


def test_a_lane_paused_by_one_is_seen_by_another_on_every_page(site: Site, open_as: Callable[..., Page]) -> None:
    operator, other = open_as(), open_as("viewer")
    other.goto(OWN)

    operator.goto(ADMIN)
    operator.locator('tr[data-key="low"]').get_by_role("link", name="Pause").click()
    operator.get_by_label("Reason").fill("bank maintenance")
    operator.get_by_role("button", name="Pause low").click()

    expect(operator.locator(".messagelist")).to_contain_text("Lane low is paused until")
    expect(other.locator('[data-part="lanes"]')).to_contain_text("“bank maintenance”")
    expect(other.locator("[data-part=status]")).to_contain_text("low is paused by root (user:1)")
    other.goto(f"{OWN}workers/")
    expect(other.locator("[data-part=status]")).to_contain_text("low is paused by root (user:1)")
    operator.get_by_role("link", name="Resume now").click()
    operator.get_by_label("Reason").fill("it is over")
    operator.get_by_role("button", name="Resume low").click()
    expect(operator.locator(".messagelist")).to_contain_text("Lane low is resumed")


def test_a_double_click_pauses_once(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as()
    page.goto(f"{OWN}lanes/high/pause/")
    page.get_by_label("Reason").fill("twice")
    before = _pauses(site)

    page.get_by_role("button", name="Pause high").dblclick()

    expect(page.locator(".messagelist")).to_contain_text("Lane high is paused")
    assert _pauses(site) - before == 1
    site.coordinator.resume("high", caller="system", reason="the test is over")


def test_a_page_is_worked_by_the_keyboard_and_a_poll_takes_no_focus(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as()
    page.goto(OWN)
    pause = page.locator('tr[data-key="low"]').get_by_role("link", name="Pause")
    pause.focus()
    site.enqueue("send_receipt", {"number": "S-001"}, lane="low")

    with page.expect_response(lambda answer: "/data/" in answer.url and answer.status == 200):
        pass
    with page.expect_response(lambda answer: "/data/" in answer.url):
        pass

    expect(pause).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Pause low?")).to_be_visible()
    expect(page.get_by_label("Reason")).to_be_focused()


def test_a_phone_sees_status_and_pauses_without_scrolling_sideways(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as()
    page.set_viewport_size({"width": 360, "height": 740})

    for path in (OWN, ADMIN, f"{OWN}lanes/low/", f"{OWN}lanes/low/pause/", f"{OWN}workers/"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path


def test_a_worker_shows_what_it_runs_and_is_asked_to_drain(site: Site, open_as: Callable[..., Page]) -> None:
    site.start("runworker", "--processes", "0", "--worker-id", "web1:311:abc")
    until(lambda: site.raw.hexists(site.keys.workers, "web1:311:abc"), 20)
    page = open_as()
    page.goto(OWN)

    page.locator('[data-key="web1:311:abc"]').get_by_role("link", name="Drain").click()
    page.get_by_label("Reason").fill("new version")
    page.get_by_role("button", name="Drain this worker").click()

    expect(page.locator(".messagelist")).to_contain_text("Worker web1:311:abc was asked to drain")
    until(lambda: not site.raw.hexists(site.keys.workers, "web1:311:abc"), 20)


def _now_ms(site: Site) -> int:
    return int(site.raw.time()[0]) * 1000


def _pauses(site: Site) -> int:
    return sum(
        (entry["action"], entry["outcome"]) == ("pause", "paused") for _, entry in site.raw.xrange(site.keys.audit)
    )
