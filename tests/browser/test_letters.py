"""Dead letters in a browser: from the status line to the fix, and many at once."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from priqueue.jobs import Failure
from tests.support.sites import Site

ADMIN, OWN = "/admin/priqueue/queue/", "/queue/"
ODD = Failure(error="shop.Odd", message="no luck", traceback="Traceback …\n")


@pytest.fixture(autouse=True)
def _nothing_is_left(site: Site) -> Iterator[None]:
    """Take away what other tests left in this lane, and what this one leaves to them."""
    clear(site)
    yield
    clear(site)


def clear(site: Site) -> None:
    site.coordinator.purge(site.raw.hkeys(site.keys.letters), caller="system", reason="a test")
    for job_id in site.raw.lrange(site.keys.lane("high"), 0, -1):
        site.coordinator.cancel(job_id, lane="high", caller="system", reason="a test")


@pytest.mark.parametrize("mount", [ADMIN, OWN])
def test_a_job_fails_its_letter_says_why_and_its_edited_copy_succeeds(
    site: Site, open_as: Callable[..., Page], mount: str
) -> None:
    site.enqueue("charge_card", {"number": "S-007", "declines": 1}, lane="high", max_attempts=1)
    site.run("runworker", "--burst", "--lanes", "high")
    page = open_as()
    page.goto(mount)

    page.locator("#pq-dead-causes a, .pq-causes a").filter(has_text="CardDeclined").first.click()
    page.get_by_role("link", name="CardDeclined: the gateway declined the card of order S-007").click()

    expect(page.get_by_role("heading", level=1)).to_contain_text("CardDeclined: the gateway declined")
    expect(page.get_by_text("In your code: shop/jobs.py")).to_be_visible()
    expect(page.locator(".pq-trace strong").first).to_be_visible()

    page.get_by_role("link", name="Edit & requeue").click()
    page.get_by_role("textbox", name="Payload").fill('{"number": "S-007", "declines": "0"}')
    page.get_by_role("textbox", name="Reason").fill("the customer gave another card")
    page.get_by_role("button", name="Enqueue the edited job").click()
    expect(page.get_by_text("declines: Input should be a valid integer")).to_be_visible()
    page.get_by_role("textbox", name="Payload").fill('{"number": "S-007", "declines": 0}')
    page.get_by_role("button", name="Enqueue the edited job").click()

    expect(page.get_by_text("The letter stays, and says so.")).to_be_visible()
    page.get_by_role("row", name="replaced by").locator(".pq-quiet a").click()
    expect(page.get_by_text("Ready in high")).to_be_visible()
    site.run("runworker", "--burst", "--lanes", "high")
    site.run("runauditor", "--once")
    page.reload()
    expect(page.get_by_text("It succeeded")).to_be_visible()


def test_letters_are_purged_by_their_cause_with_a_reason(site: Site, open_as: Callable[..., Page]) -> None:
    site.bury(ODD, 230)
    page = open_as()
    page.goto(f"{OWN}dead/")

    page.locator(".pq-chips a").filter(has_text="shop.Odd").click()
    page.get_by_role("link", name="Purge 230 matching…").click()
    page.get_by_role("textbox", name="Reason").fill("duplicates of incident 812")
    page.get_by_role("button", name="Purge 230 letters").click()

    expect(page.get_by_role("heading", name="Purge of 230 letters: done")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("purged 230 of 230")).to_be_visible()
    assert site.raw.hlen(site.keys.letters) == 0


def test_a_run_can_be_stopped_left_and_gone_on_with(site: Site, open_as: Callable[..., Page]) -> None:
    site.bury(ODD, 30)
    page = open_as()
    page.goto(f"{OWN}dead/requeue/")
    page.get_by_label("10 a second").check()
    page.get_by_role("textbox", name="Reason").fill("the gateway is back")
    page.get_by_role("button", name="Requeue 30 letters").click()
    expect(page.locator("[data-run-text]")).to_contain_text("requeued 5 of 30")

    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("heading", name="Requeue of 30 letters: stopped")).to_be_visible()
    where, left = page.url, site.raw.hlen(site.keys.letters)
    page.close()

    other = open_as()
    other.goto(where)
    assert 0 < left == site.raw.hlen(site.keys.letters)
    other.get_by_role("button", name="Go on").click()
    expect(other.get_by_role("heading", name="Requeue of 30 letters: done")).to_be_visible(timeout=60_000)
    assert site.raw.hlen(site.keys.letters) == 0


def test_some_are_selected_and_the_page_says_how_many(site: Site, open_as: Callable[..., Page]) -> None:
    site.bury(ODD, 5)
    page = open_as()
    page.goto(f"{OWN}dead/")
    purge = page.locator("[data-needs-selection]").filter(has_text="Purge…")
    expect(purge).to_be_disabled()

    for box in page.get_by_role("checkbox", name="Select …").all()[:2]:
        box.check()
    expect(page.get_by_text("2 of 5 selected")).to_be_visible()
    purge.click()

    expect(page.get_by_role("heading", name="Purge 2 dead letters?")).to_be_visible()
    page.get_by_role("textbox", name="Reason").fill("duplicates")
    page.get_by_role("button", name="Purge 2 letters").click()
    expect(page.get_by_text("Purged 2 letters: duplicates.")).to_be_visible()
    assert site.raw.hlen(site.keys.letters) == 3


def test_keys_lead_from_letter_to_letter_and_after_one_was_tended_the_next_has_the_focus(
    site: Site, open_as: Callable[..., Page]
) -> None:
    oldest, third, second, newest = (job.id for job in site.bury(ODD, 4))
    page = open_as(viewport={"width": 1280, "height": 320})
    page.goto(f"{OWN}dead/?lane=high")

    for _ in range(2):
        page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("#pq-id")).to_have_text(second)
    page.keyboard.press("j")
    expect(page.locator("#pq-id")).to_have_text(third)
    page.keyboard.press("k")
    expect(page.locator("#pq-id")).to_have_text(second)
    page.get_by_role("link", name="Purge").click()
    page.get_by_role("textbox", name="Reason").fill("just a duplicate")
    page.get_by_role("button", name="Purge 1 letter").click()

    expect(page.get_by_text("Purged 1 letter: just a duplicate.")).to_be_in_viewport()
    expect(page).to_have_url(re.compile(rf"/queue/dead/\?lane=high#letter-{third}$"))
    expect(page.locator(f"#letter-{third}")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#pq-id")).to_have_text(third)
    assert [site.raw.hexists(site.keys.letters, job) for job in (newest, second, third, oldest)] == [1, 0, 1, 1]


def test_without_javascript_links_lead_from_letter_to_letter_and_back(site: Site, open_as: Callable[..., Page]) -> None:
    oldest, middle, newest = (job.id for job in site.bury(ODD, 3))
    page = open_as(java_script_enabled=False)
    page.goto(f"{OWN}dead/?lane=high")

    page.locator(f"#letter-{newest}").click()
    page.get_by_role("link", name="Older").click()
    expect(page.locator("#pq-id")).to_have_text(middle)
    page.get_by_role("link", name="Back to the list").click()

    expect(page).to_have_url(re.compile(rf"/queue/dead/\?lane=high#letter-{middle}$"))
    expect(page.locator(f"#letter-{oldest}")).to_be_visible()


def test_a_key_leads_to_the_field_that_finds_a_job(site: Site, open_as: Callable[..., Page]) -> None:
    (job,) = site.bury(ODD)
    page = open_as()
    page.goto(OWN)

    page.keyboard.press("/")
    page.keyboard.type(f' "{job.id}" ')
    page.keyboard.press("Enter")

    expect(page.get_by_text("after 1 of 5 attempts")).to_be_visible()


def test_without_javascript_a_run_is_done_by_its_button(site: Site, open_as: Callable[..., Page]) -> None:
    site.bury(ODD, 3)
    page = open_as(java_script_enabled=False)
    page.goto(f"{OWN}dead/purge/")
    page.get_by_role("textbox", name="Reason").fill("duplicates")
    page.get_by_role("button", name="Purge 3 letters").click()

    page.get_by_role("button", name="Go on").click()

    expect(page.get_by_text("purged 3 of 3")).to_be_visible()
