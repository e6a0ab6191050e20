"""The pages of dead letters: find the cause, read why, act on one, on some, on all, and never twice."""

import re

import pytest
from django.test import Client
from django.utils.html import escape

from priqueue import dead_letters
from priqueue.jobs import Failure
from tests.shop.jobs import send_receipt
from tests.support.queues import CAUSE, HANDLER, Queue
from tests.support.tending import ADMIN_DEAD, DEAD, bury, link, listed
from tests.support.visiting import EVERYTHING, sent, shown_queue, text, token, visitor, with_every_right

pytestmark = pytest.mark.django_db
queue, person = shown_queue, with_every_right
BOTH = pytest.mark.parametrize("dead", [DEAD, ADMIN_DEAD])
DECLINED = Failure(error="shop.CardDeclined", message="do_not_honour", traceback="Traceback …\n")


def notes(queue: Queue) -> list[tuple[str, str]]:
    """Return action and outcome of the audit events of people."""
    events = [event for _, event in queue.raw.xrange(queue.keys.audit)]
    return [(event["action"], event["outcome"]) for event in events if event["caller"].startswith("user:")]


# ── the list ──


@BOTH
def test_letters_are_listed_newest_first_with_their_cause_and_how_often_it_was(
    queue: Queue, person: Client, dead: str
) -> None:
    (other,) = bury(queue, failure=Failure(error="KeyError"))
    made = bury(queue, 2, failure=DECLINED, lane="low", caller="key:billing")

    page = person.get(dead)

    assert listed(page) == [*made, other]
    assert f"2 shop.CardDeclined {HANDLER}" in text(page)
    assert "shop.CardDeclined: do_not_honour" in text(page)
    assert "3 dead letters" in text(page)


FILTERS = [
    ("lane=low", [0]),
    (f"cause=KeyError+{HANDLER}", [1]),
    ("caller=user:9", [2]),
    ("handler=tests.shop.jobs.note", [3, 2, 1, 0]),
    ("handler=nobody", []),
    ("since=2027-01-15T08:00:02", [3, 2]),
    ("until=2027-01-15T08:00:01", [1, 0]),
    ("lane=low&caller=user:9", []),
]


@pytest.mark.parametrize(("query", "shown"), FILTERS)
def test_a_filter_shows_what_fits_all_of_it(queue: Queue, person: Client, query: str, shown: list[int]) -> None:
    made = [
        *bury(queue, lane="low"), *bury(queue, failure=Failure(error="KeyError")), *bury(queue, caller="user:9"),
        *bury(queue),
    ]  # fmt: skip

    page = person.get(f"{DEAD}?{query}")

    assert listed(page) == [made[at] for at in shown]


@pytest.mark.parametrize("query", ["since=yesterday", "at=x", f"lane={'x' * 70}", "lane=%00", "older=" + "9" * 300])
def test_a_filter_that_is_not_understood_shows_nothing_and_acts_on_nothing(
    queue: Queue, person: Client, query: str
) -> None:
    bury(queue)

    page = person.get(f"{DEAD}?{query}")

    assert listed(page) == []
    assert "is not understood" in text(page)


@pytest.mark.parametrize("cursor", ["abc", "-1-1-a", "1", "%s"])
def test_a_cursor_from_no_letter_leads_to_the_newest(queue: Queue, person: Client, cursor: str) -> None:
    made = bury(queue)

    assert listed(person.get(DEAD, {"older": cursor, "lane": "default"}, follow=True)) == made


@pytest.mark.parametrize("place", ["older=999999999999-1-a", "newer=999999999999-1-a", "newer=9007199254740991-0-x"])
def test_a_cursor_far_out_costs_nothing_and_breaks_nothing(queue: Queue, person: Client, place: str) -> None:
    bury(queue, 3)

    assert person.get(f"{DEAD}?{place}").status_code == 200


def test_pages_follow_each_other_both_ways_and_keep_the_filter(queue: Queue, person: Client) -> None:
    made = bury(queue, 60, lane="low")
    bury(queue, 3)

    first = person.get(f"{DEAD}?lane=low")
    second = person.get(DEAD + link(first, "Older"))
    oldest = person.get(DEAD + link(first, "Oldest"))
    back = person.get(DEAD + link(oldest, "Newer"))

    assert [listed(page) for page in (first, second, oldest, back)] == [
        made[:25], made[25:50], made[35:60], made[10:35],
    ]  # fmt: skip
    assert listed(person.get(DEAD + link(second, "Newest"))) == made[:25]


def test_going_to_a_time_shows_what_was_buried_then_or_before(queue: Queue, person: Client) -> None:
    made = bury(queue, 5)

    assert listed(person.get(f"{DEAD}?at=2027-01-15T08:00:02")) == made[2:]


def test_an_empty_list_and_one_without_a_match_have_words_of_their_own(queue: Queue, person: Client) -> None:
    assert "No dead letters." in text(person.get(DEAD))
    assert "Nothing matches lane=low" in text(person.get(f"{DEAD}?lane=low"))


def test_the_number_of_a_cause_is_said_on_its_buttons(queue: Queue, person: Client) -> None:
    bury(queue, 30)

    assert "Requeue 30 matching…" in text(person.get(DEAD, {"cause": CAUSE}))
    assert "Purge 30…" in text(person.get(DEAD))
    assert "Requeue all matching…" in text(person.get(DEAD, {"lane": "default"}))


def test_only_what_a_visitor_may_is_offered(queue: Queue) -> None:
    (job_id,) = bury(queue)

    def offered(*codenames: str) -> set[str]:
        client = visitor("view_queue", *codenames)
        body = client.get(DEAD).content.decode() + client.get(f"{DEAD}{job_id}/").content.decode()
        return {name for name in ("requeue", "purge", "edit") if f"/{name}/" in body}

    assert offered() == set()
    assert offered("requeue_letter") == {"requeue"}
    assert offered("purge_letter") == {"purge"}
    assert offered("requeue_letter", "view_payload") == {"requeue", "edit"}


# ── one letter ──

TRACE = """Traceback (most recent call last):
  File "/usr/lib/python3.11/asyncio/runners.py", line 190, in run
    return runner.run(main)
  File "/srv/shop/jobs.py", line 12, in charge
    gateway.charge(card)
  File "/srv/venv/site-packages/gateway/client.py", line 5, in charge
    raise CardDeclined("do_not_honour")
shop.CardDeclined: do_not_honour
"""


@BOTH
def test_a_letter_begins_with_why_it_failed_and_where_in_the_projects_own_code(
    queue: Queue, person: Client, dead: str
) -> None:
    failure = Failure(error="shop.CardDeclined", message="do_not_honour", traceback=TRACE)
    (job_id,) = bury(queue, failure=failure, payload={"order_id": 7}, lane="low", correlation_id="request-7")

    page = person.get(f"{dead}{job_id}/")

    body = page.content.decode()
    assert "<h1>shop.CardDeclined: do_not_honour</h1>" in body
    assert "In your code: shop/jobs.py, line 12, in charge" in text(page)
    assert re.findall(r"<strong>  File &quot;([^&]*)", body) == ["/srv/shop/jobs.py"]
    assert body.count("of libraries</summary>") == 2
    assert "{\n  &quot;order_id&quot;: 7\n}" in body
    assert "request-7" in text(page)


def test_other_attempts_are_folds_that_say_what_is_the_same(queue: Queue, person: Client) -> None:
    (claim,) = queue.claimed()
    for error in ("OSError", "ValueError"):
        queue.coordinator.retry(claim, Failure(error=error, message="no", traceback="here"), delay_s=0)
        queue.coordinator.promote()
        (claim,) = queue.coordinator.pull("worker")
    queue.coordinator.bury(claim, Failure(error="ValueError", message="no", traceback="here"))

    page = text(person.get(f"{DEAD}{claim.job.id}/"))

    assert "Attempt 2: same error" in page
    assert "Attempt 1: OSError" in page
    assert "The same traceback as attempt 1" in page


def test_a_lost_worker_is_told_as_what_it_is(queue: Queue, person: Client) -> None:
    (claim,) = queue.claimed()
    for _ in range(queue.settings.max_crashes):
        queue.lapse()
        queue.coordinator.pull("worker")

    page = text(person.get(f"{DEAD}{claim.job.id}/"))

    assert "the worker was lost" in page
    assert "(no trace)" in page


def test_a_letter_that_is_one_no_more_says_where_it_went(queue: Queue, person: Client) -> None:
    (job_id,) = bury(queue)
    queue.coordinator.requeue([job_id], caller="user:7", reason="fixed")

    page = person.get(f"{DEAD}{job_id}/")

    assert page.status_code == 200
    assert "It is ready in default" in text(page)


def test_what_was_never_there_is_not_found(queue: Queue, person: Client) -> None:
    page = person.get(f"{DEAD}no-such-job/")

    assert page.status_code == 404
    assert "Never seen here" in text(page)


# ── payloads are for those who may see them ──

SECRET = Failure(error="shop.CardDeclined", message="card 4!4! of ben", traceback=TRACE.replace("do_not", "4!4!"))


@pytest.mark.parametrize("path", ["", "{}/", "{}/requeue/", "{}/purge/", "requeue/", "purge/", "export/"])
def test_without_the_right_nothing_that_may_quote_a_payload_is_shown_but_the_errors_type(
    queue: Queue, path: str
) -> None:
    (job_id,) = bury(queue, failure=SECRET, payload={"card": "4!4!"})
    others = [name for name in EVERYTHING if name != "view_payload"]

    page = visitor(*others, "view_auditevent").get(DEAD + path.format(job_id))

    body = b"".join(page).decode() if page.streaming else page.content.decode()
    assert "4!4!" not in body
    assert "shop.CardDeclined" in body or path.startswith("{}/") or path.endswith("e/")


def test_what_is_hidden_says_its_size_and_what_it_takes(queue: Queue) -> None:
    (job_id,) = bury(queue, failure=SECRET, payload={"card": "4!4!"})

    shown = text(visitor("view_queue").get(f"{DEAD}{job_id}/"))

    assert "Payload hidden (15 bytes). Needs “Can view payloads, error messages and tracebacks”." in shown
    assert "Message and trace hidden." in shown


# ── requeue and purge: one, and those selected ──


@BOTH
@pytest.mark.parametrize(("verb", "past", "left"), [("requeue", "Requeued", "ready"), ("purge", "Purged", None)])
def test_one_letter_is_tended_with_a_reason(
    queue: Queue, person: Client, dead: str, verb: str, past: str, left: str | None
) -> None:
    job_id, other = bury(queue, 2)

    page = sent(person, f"{dead}{job_id}/{verb}/", reason="gateway is back", until_ms=str(queue.clock.now_ms))

    assert f"{past} 1 letter: gateway is back." in text(page)
    assert queue.places() == {other: "dead"} | ({job_id: left} if left else {})
    assert notes(queue) == [
        (verb, "intended"), (verb, "ready" if verb == "requeue" else "gone"),
        (verb, f"{past} 1 letter: gateway is back."),
    ]  # fmt: skip


def test_those_selected_are_tended_and_the_others_are_not(queue: Queue, person: Client) -> None:
    first, second, third = bury(queue, 3)
    where = f"{DEAD}purge/?id={first}&id={third}"

    asked = person.get(where)
    page = sent(person, where, reason="duplicates", until_ms=str(queue.clock.now_ms))

    assert "Purge 2 dead letters?" in text(asked)
    assert "Purged 2 letters: duplicates." in text(page)
    assert queue.places() == {second: "dead"}


def test_a_confirmation_changes_nothing_by_being_looked_at(queue: Queue, person: Client) -> None:
    (job_id,) = bury(queue)
    before = queue.everything()

    for path in (f"{job_id}/requeue/", f"{job_id}/purge/", f"requeue/?id={job_id}", "purge/", f"{job_id}/edit/"):
        assert person.get(DEAD + path).status_code == 200

    assert queue.everything() == before


def test_a_double_click_purges_once_and_shows_the_first_outcome(queue: Queue, person: Client) -> None:
    (job_id,) = bury(queue)
    where = f"{DEAD}{job_id}/purge/"
    fields = {"token": token(person.get(where)), "reason": "twice", "until_ms": str(queue.clock.now_ms)}

    pages = [person.post(where, fields, follow=True) for _ in range(2)]

    assert "Purged 1 letter" in text(pages[0])
    assert "it was done once" in text(pages[1])
    assert [event for event in notes(queue) if event == ("purge", "gone")] == [("purge", "gone")]


def test_a_letter_that_died_again_after_it_was_looked_at_is_left_alone(queue: Queue, person: Client) -> None:
    (job_id,) = bury(queue)
    where = f"{DEAD}{job_id}/requeue/"
    page = person.get(where)
    until_ms = re.search(r'name="until_ms" value="(\d+)"', page.content.decode())[1]
    queue.coordinator.requeue([job_id], caller="user:9", reason="faster")
    queue.clock.advance(1)
    queue.coordinator.bury(queue.coordinator.pull("worker")[0], DECLINED)

    told = person.post(where, {"token": token(page), "reason": "x", "until_ms": until_ms}, follow=True)

    assert "Requeued 0 of 1 letter." in text(told)
    assert queue.places() == {job_id: "dead"}


def test_a_time_to_come_is_not_believed(queue: Queue, person: Client) -> None:
    (job_id,) = bury(queue)
    where = f"{DEAD}{job_id}/purge/"

    sent(person, where, reason="x", until_ms=str(2**52))

    assert queue.places() == {}


def test_a_second_operator_hears_that_somebody_was_faster(queue: Queue, person: Client) -> None:
    (job_id,) = bury(queue)
    where = f"{DEAD}{job_id}/purge/"
    asked = person.get(where)
    sent(visitor(*EVERYTHING), where, reason="first", until_ms=str(queue.clock.now_ms))

    fields = {"token": token(asked), "reason": "second", "until_ms": str(queue.clock.now_ms)}
    told = text(person.post(where, fields, follow=True))

    assert "Purged 0 of 1 letter. 1 other was gone, replaced, or buried anew meanwhile, and left alone." in told
    assert person.get(where).status_code == 409


def test_more_than_a_hundred_cannot_be_selected(queue: Queue, person: Client) -> None:
    query = "&".join(f"id={number}" for number in range(101))

    assert person.get(f"{DEAD}purge/?{query}").status_code == 400


# ── edit and requeue ──


def test_an_edited_copy_is_enqueued_and_both_are_linked(queue: Queue, person: Client) -> None:
    (job_id,) = bury(queue, name=send_receipt.name, payload={"order_id": 7, "email": "a@b"}, lane="high")

    page = sent(person, f"{DEAD}{job_id}/edit/", payload='{"order_id": 8, "email": "c@d"}', reason="a typo")

    (copy_id,) = [found for found, place in queue.places().items() if place == "ready"]
    copy = queue.inspector.job(copy_id).job
    assert (copy.payload, copy.replaces, copy.lane) == ({"order_id": 8, "email": "c@d"}, job_id, "high")
    assert f"edited copy of …{job_id[-8:]}" in text(page)
    letter = person.get(f"{DEAD}{job_id}/")
    assert f"Replaced by {copy_id}" in text(letter)
    assert "/requeue/" not in letter.content.decode()
    assert f"replaced by …{copy_id[-8:]}" in text(person.get(DEAD))


@pytest.mark.parametrize(
    ("payload", "fault"),
    [
        ('{"order_id": "7a", "email": "c@d"}', "order_id: Input should be a valid integer"),
        ('{"order_id": 7}', "email is missing"),
        ('{"order_id": 7, "email": "x", "more": 1}', "more is no argument of this handler"),
        ('{"order_id": 7,', "not JSON"),
        ("[]", "dict"),
        ("", "required"),
        ('{"order_id": 7, "order_id": 8, "email": "x"}', "given twice"),
    ],
)
def test_an_edit_that_its_handler_would_not_take_is_refused_at_the_field(
    queue: Queue, person: Client, payload: str, fault: str
) -> None:
    (job_id,) = bury(queue, name=send_receipt.name, payload={"order_id": 7, "email": "a@b"})

    page = sent(person, f"{DEAD}{job_id}/edit/", payload=payload, reason="a typo")

    assert page.status_code == 422
    assert fault in text(page)
    assert escape(payload) in page.content.decode()
    assert queue.places() == {job_id: "dead"}


def test_a_letter_that_was_replaced_is_neither_edited_nor_requeued_again(queue: Queue, person: Client) -> None:
    (job_id,) = bury(queue)
    edit, requeue = (person.get(f"{DEAD}{job_id}/{path}/") for path in ("edit", "requeue"))
    dead_letters.replace(job_id, {"n": 1}, reason="x", caller="user:9", copy_id="copy")

    for path in ("edit", "requeue"):
        assert person.get(f"{DEAD}{job_id}/{path}/").status_code == 409
    edited = person.post(
        f"{DEAD}{job_id}/edit/", {"token": token(edit), "reason": "x", "payload": '{"n": 2}'}, follow=True
    )
    requeued = person.post(
        f"{DEAD}{job_id}/requeue/",
        {"token": token(requeue), "reason": "x", "until_ms": str(queue.clock.now_ms)}, follow=True,
    )  # fmt: skip

    assert "Somebody was faster: copy was enqueued in its place." in text(edited)
    assert "Requeued 0 of 1 letter." in text(requeued)
    assert queue.places() == {job_id: "dead", "copy": "ready"}
