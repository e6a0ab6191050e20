"""From the list to a letter and back: to the same place, at the letter that comes next, and to nowhere else."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from priqueue.exceptions import QueueUnavailable
from priqueue.jobs import Failure
from priqueue.views import reading
from tests.support.queues import HANDLER, Queue
from tests.support.tending import ADMIN_DEAD, DEAD, bury, link, links, listed, opening
from tests.support.visiting import sent, shown_queue, text, token, with_every_right

pytestmark = pytest.mark.django_db
queue, person = shown_queue, with_every_right
BOTH = pytest.mark.parametrize("dead", [DEAD, ADMIN_DEAD])


def told(queue: Queue, client: Client, where: str, **fields: str) -> tuple[str, Any]:
    """Send a question's form; return the address that it leads to, and the page there."""
    page = sent(client, where, reason="the gateway is back", until_ms=str(queue.clock.now_ms), **fields)
    return str(page.redirect_chain[-1][0]), page


def selected(queue: Queue, client: Client, listing: str, verb: str, *ids: str) -> str:
    """Tick letters of a list and send its form; return where that leads to."""
    query = urlencode([*hidden(client.get(listing)), *(("id", each) for each in ids)])
    return told(queue, client, f"{DEAD}{verb}/?{query}")[0]


def hidden(page: Any) -> list[tuple[str, str]]:
    """Return the hidden fields of the form in which letters are ticked."""
    (form,) = re.findall(r'<form method="get" class="pq-letters".*?</form>', page.content.decode(), re.DOTALL)
    return re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form)


# ── back to the list ──


@BOTH
@pytest.mark.parametrize("action", ["Requeue", "Purge"])
def test_after_a_letter_was_tended_the_list_is_the_same_and_the_next_letter_is_pointed_at(
    queue: Queue, person: Client, dead: str, action: str
) -> None:
    made = bury(queue, 30, lane="low")
    bury(queue, 2)
    second = dead + link(person.get(f"{dead}?lane=low"), "Older")
    letter = opening(person.get(second), made[26])

    where, page = told(queue, person, link(person.get(letter), action))

    assert where == f"{second}#letter-{made[27]}"
    assert listed(page) == [made[25], *made[27:]]


def test_an_edited_letter_leads_back_to_the_list_as_well(queue: Queue, person: Client) -> None:
    made = bury(queue, 3, payload={"n": 1})
    edit = link(person.get(opening(person.get(f"{DEAD}?lane=default"), made[1])), "Edit &amp; requeue")

    where, page = told(queue, person, edit, payload='{"n": 2}')

    assert where == f"{DEAD}?lane=default#letter-{made[2]}"
    assert "The letter stays, and says so." in text(page)
    assert len(links(page, f"…{next(job for job, at in queue.places().items() if at == 'ready')[-8:]}")) == 1


def test_after_the_oldest_letter_comes_the_one_before_it(queue: Queue, person: Client) -> None:
    made = bury(queue, 3)

    where, _ = told(queue, person, link(person.get(opening(person.get(DEAD), made[2])), "Purge"))

    assert where == f"{DEAD}#letter-{made[1]}"


def test_after_the_last_of_a_page_the_next_one_is_drawn_onto_it(queue: Queue, person: Client) -> None:
    made = bury(queue, 27)

    where, page = told(queue, person, link(person.get(opening(person.get(DEAD), made[24])), "Purge"))

    assert where == f"{DEAD}#letter-{made[25]}"
    assert listed(page) == [*made[:24], made[25]]


def test_who_went_on_beyond_the_page_comes_back_to_the_list_from_there_on(queue: Queue, person: Client) -> None:
    made = bury(queue, 30)
    page = person.get(opening(person.get(DEAD), made[24]))
    for _ in range(3):
        page = person.get(link(page, "Older"))

    where, listing = told(queue, person, link(page, "Purge"))

    assert where.endswith(f"#letter-{made[28]}")
    assert listed(listing) == made[28:]


def test_the_last_letter_of_all_leads_back_to_an_empty_list(queue: Queue, person: Client) -> None:
    (job_id,) = bury(queue)

    where, page = told(queue, person, link(person.get(opening(person.get(DEAD), job_id)), "Purge"))

    assert where == DEAD
    assert "No dead letters." in text(page)


def test_after_those_selected_comes_the_one_behind_the_last_of_them(queue: Queue, person: Client) -> None:
    made = bury(queue, 6, lane="low")

    where = selected(queue, person, f"{DEAD}?lane=low", "purge", made[1], made[3])

    assert where == f"{DEAD}?lane=low#letter-{made[4]}"
    assert queue.places().keys() == {*made} - {made[1], made[3]}


def test_a_button_for_those_selected_with_none_selected_means_the_filter_and_no_more(
    queue: Queue, person: Client
) -> None:
    bury(queue, 2, lane="low")
    bury(queue, 3)

    page = person.get(f"{DEAD}purge/", dict(hidden(person.get(f"{DEAD}?lane=low"))))

    assert "Purge 2 dead letters?" in text(page)


def test_a_letter_that_is_opened_by_its_address_alone_leads_back_to_the_whole_list(
    queue: Queue, person: Client
) -> None:
    made = bury(queue, 3)

    where, _ = told(queue, person, f"{DEAD}{made[1]}/purge/")

    assert where == f"{DEAD}#letter-{made[2]}"


def test_what_was_done_is_told_also_when_the_list_cannot_be_read_any_more(
    queue: Queue, person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bury(queue, 3)
    purge = link(person.get(opening(person.get(DEAD), made[1])), "Purge")
    monkeypatch.setattr(reading.desk().letters, "beside", away)

    where, page = told(queue, person, purge)

    assert where == DEAD
    assert "Purged 1 letter" in text(page)


def away(*_: object, **__: object) -> None:
    raise QueueUnavailable("away")


# ── no other place ──


@pytest.mark.parametrize(
    "given",
    [
        "here=//evil.example", "here=https://evil.example/", "older=//evil.example", "next=//evil.example",
        "lane=//evil.example", "here=%0d%0aLocation:x", "here=1-1-x", "since=x&here=1-1-x", "older=" + "9" * 300,
        "here=" + "9" * 300,
    ],
)  # fmt: skip
def test_no_address_leads_anywhere_but_to_the_list(queue: Queue, person: Client, given: str) -> None:
    first, second = bury(queue, 2)

    assert person.get(f"{DEAD}{first}/?{given}").status_code == 200
    purge = f"{DEAD}{first}/purge/?{given}"
    page = person.post(purge, {"token": token(person.get(purge)), "reason": "x", "until_ms": str(2**50)})

    assert page.status_code == 302
    assert re.fullmatch(rf"{DEAD}(\?(lane|older|newer)=[^#]*)?(#letter-{second})?", page["Location"])


# ── from letter to letter ──


@BOTH
def test_a_letters_page_leads_to_those_beside_it_within_the_filter_it_was_opened_from(
    queue: Queue, person: Client, dead: str
) -> None:
    low: list[str] = []
    for _ in range(3):
        low = [*bury(queue, lane="low"), *low]
        bury(queue)
    middle = person.get(opening(person.get(f"{dead}?lane=low"), low[1]))

    newer, older = person.get(link(middle, "Newer")), person.get(link(middle, "Older"))

    assert low[0] in text(newer)
    assert low[2] in text(older)
    assert (links(newer, "Newer"), links(older, "Older")) == ([], [])
    assert link(older, "Newer") == opening(person.get(f"{dead}?lane=low"), low[1])
    assert link(middle, "Back to the list") == f"{dead}?lane=low#letter-{low[1]}"


def test_a_letter_that_is_one_no_more_still_leads_to_those_beside_it(queue: Queue, person: Client) -> None:
    made = bury(queue, 3)
    where = opening(person.get(DEAD), made[1])
    queue.coordinator.purge([made[1]], caller="user:7", reason="x")

    page = person.get(where)

    assert made[0] in text(person.get(link(page, "Newer")))
    assert made[2] in text(person.get(link(page, "Older")))


def test_where_the_next_letter_is_too_far_away_the_list_looks_on(
    queue: Queue, person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("priqueue.coordinator.order.BATCH", 5)
    monkeypatch.setattr("priqueue.coordinator.letters._LOOKED_AT_BY_A_PAGE", 5)
    (far,) = bury(queue, failure=Failure(error="KeyError"), lane="low")
    bury(queue, 30)
    (near,) = bury(queue, lane="low")
    page = person.get(opening(person.get(f"{DEAD}?lane=low"), near))

    looked = person.get(link(page, "Older"))
    for _ in range(10):
        if listed(looked):
            break
        looked = person.get(DEAD + link(looked, "Look on, at older ones"))

    assert listed(looked) == [far]
    assert f"KeyError {HANDLER}" in text(looked)
