"""The pages of many letters at once: counted up to a moment, gone through in steps, stopped, gone on with."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from priqueue import dead_letters
from priqueue.coordinator import letters
from priqueue.jobs import Failure
from tests.support.queues import CAUSE, HANDLER, START_MS, Queue
from tests.support.visiting import EVERYTHING, OWN, shown_queue, text, token, visitor, with_every_right

pytestmark = pytest.mark.django_db
queue, person = shown_queue, with_every_right
DEAD = f"{OWN}dead/"
BOTH = pytest.mark.parametrize("dead", [DEAD, "/admin/priqueue/deadletter/"])
JSON = {"Accept": "application/json"}


def bury(queue: Queue, number: int, **options: Any) -> None:
    """Bury jobs, and let time pass, so that they are before the bound of what is counted then."""
    for at in range(0, number, 100):
        queue.buried(number=min(100, number - at), **options)
    queue.clock.advance(1)


def hidden(page: Any) -> dict[str, str]:
    """Return the hidden fields of a question's form."""
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.content.decode())
    return {name: value for name, value in found if name in ("token", "counted")}


def begun(client: Client, where: str, **fields: str) -> Any:
    """Confirm, and return the page of the run that has begun."""
    asked = client.get(where)
    return client.post(where, {**hidden(asked), **fields}, follow=True)


def address(page: Any) -> str:
    return str(page.redirect_chain[-1][0])


def driven(client: Client, where: str, rounds: int = 100) -> dict[str, Any]:
    """Drive a run as its page does, to its end."""
    for _ in range(rounds):
        told = client.post(where, {"do": "work"}, headers=JSON).json()
        if told["state"] != "going":
            return told
    raise AssertionError(told)


@BOTH
def test_all_that_match_are_purged_with_a_reason_and_the_page_says_what_came_of_it(
    queue: Queue, person: Client, dead: str
) -> None:
    bury(queue, 230, lane="low")
    bury(queue, 3, lane="high")
    where = f"{dead}purge/?lane=low"

    asked = text(person.get(where))
    run = begun(person, where, reason="duplicates of incident 812")
    told = driven(person, address(run))

    assert "Purge 230 dead letters?" in asked
    assert "lane=low" in asked
    assert "Purge of 230 letters has begun." in text(run)
    assert told["text"] == "purged 230 of 230"
    assert list(queue.places().values()) == ["dead"] * 3
    assert "Purge of 230 letters: done" in text(person.get(address(run)))


def test_a_run_leaves_its_intent_its_outcome_and_a_row_for_each_letter(queue: Queue, person: Client) -> None:
    bury(queue, 3)

    run = begun(person, f"{DEAD}purge/", reason="old")
    driven(person, address(run))

    by = f"user:{User.objects.get().pk}"
    events = [event for _, event in queue.raw.xrange(queue.keys.audit) if event["caller"] == by]
    assert [(event["action"], event["outcome"]) for event in events] == [
        ("purge", "intended"), *[("purge", "gone")] * 3, ("purge", "done: purged 3 of 3"),
    ]  # fmt: skip
    assert {event["reason"] for event in events} == {"old"}
    assert events[0]["correlation_id"] == events[-1]["correlation_id"] != ""
    assert events[0]["input"] == "3 letters: all letters"


def test_letters_that_are_buried_after_the_count_are_never_touched(queue: Queue, person: Client) -> None:
    bury(queue, 5)
    where = f"{DEAD}requeue/?cause={CAUSE}"
    asked = person.get(where)
    bury(queue, 4)

    run = person.post(where, {**hidden(asked), "reason": "x", "per_s": "0"}, follow=True)
    told = driven(person, address(run))

    assert "Requeue 5 dead letters?" in text(asked)
    assert told["text"] == "requeued 5 of 5"
    assert sorted(queue.places().values()) == ["dead"] * 4 + ["ready"] * 5


def test_what_somebody_else_took_meanwhile_is_told(queue: Queue, person: Client) -> None:
    bury(queue, 10)
    run = begun(person, f"{DEAD}purge/", reason="x")
    dead_letters.purge(dead_letters.select(limit=4), reason="faster", caller="user:9")

    assert driven(person, address(run))["text"] == "purged 6 of 10, 4 were gone already"


def test_a_double_click_begins_one_run(queue: Queue, person: Client) -> None:
    bury(queue, 10)
    where = f"{DEAD}purge/"
    fields = {**hidden(person.get(where)), "reason": "x"}

    pages = [person.post(where, fields, follow=True) for _ in range(2)]

    assert address(pages[0]) == address(pages[1])
    assert len(queue.raw.keys(queue.keys.run("*"))) == 1


def test_two_operators_purge_each_letter_once(queue: Queue, person: Client) -> None:
    bury(queue, 250)
    other = visitor(*EVERYTHING)
    runs = [(client, address(begun(client, f"{DEAD}purge/", reason="x"))) for client in (person, other)]

    told = [driven(client, where) for client, where in runs]

    assert [each["state"] for each in told] == ["done", "done"]
    assert [action for action, _, job in queue.events() if job].count("purge") == 250
    assert queue.places() == {}


def test_a_stopped_run_waits_until_somebody_goes_on_by_its_address(queue: Queue, person: Client) -> None:
    bury(queue, 10)
    where = address(begun(person, f"{DEAD}purge/", reason="x"))

    stopped = person.post(where, {"do": "stop"}, follow=True)
    still = person.post(where, {"do": "work"}, headers=JSON).json()
    other = visitor(*EVERYTHING)
    other.post(where, {"do": "go on"})
    told = driven(other, where)

    assert "Purge of 10 letters: stopped" in text(stopped)
    assert (still["state"], still["done"]) == ("stopped", 0)
    assert told["text"] == "purged 10 of 10"


def test_without_a_script_each_press_of_the_button_does_a_step(queue: Queue, person: Client) -> None:
    bury(queue, 10)
    run = begun(person, f"{DEAD}requeue/", reason="x", per_s="10")

    after = person.post(address(run), {"do": "work"}, follow=True)

    assert "requeued 5 of 10, 5 left" in text(after)
    assert 'value="work"' in after.content.decode()


def test_a_requeue_goes_no_faster_than_it_was_told(queue: Queue, person: Client) -> None:
    bury(queue, 100)
    where = address(begun(person, f"{DEAD}requeue/", reason="x", per_s="10"))

    told = [person.post(where, {"do": "work"}, headers=JSON).json() for _ in range(3)]

    assert [each["done"] for each in told] == [5, 5, 5]
    assert told[-1]["wait_ms"] == 500
    assert "about 9.5 s to go" in told[-1]["text"]


def test_a_run_of_what_was_replaced_leaves_it_out(queue: Queue, person: Client) -> None:
    bury(queue, 3)
    job_id = next(dead_letters.scan()).id
    dead_letters.replace(job_id, {"n": 1}, reason="x", caller="user:9", copy_id="copy")

    asked = text(person.get(f"{DEAD}requeue/"))

    assert "Requeue 2 dead letters?" in asked
    assert "Purge 3 dead letters?" in text(person.get(f"{DEAD}purge/"))


# ── counting ──


def test_a_large_number_is_counted_on_in_steps_and_then_stands(
    queue: Queue, person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters, "_LOOKED_AT_BY_A_COUNT", 1_000)
    monkeypatch.setattr(letters, "_COUNT_S", 60)
    fill(queue, 2_500)
    where, told = f"{DEAD}purge/?handler={HANDLER}", []

    first = person.get(where)
    page = person.get(where, headers=JSON)
    while page["Content-Type"].startswith("application/json"):
        told.append(page.json()["number"])
        where = DEAD + "purge/" + page.json()["next"]
        page = person.get(where, headers=JSON)

    assert "More than 1,000 so far" in text(first)
    assert "Purge 2,500" not in text(first)
    assert told == ["1,000", "2,000"]
    assert "Purge 2,500 dead letters?" in text(page)
    run = person.post(where, {**hidden(page), "reason": "x"}, follow=True)
    assert driven(person, address(run))["text"] == "purged 2,500 of 2,500"


def test_a_count_cannot_be_made_up_or_taken_for_another_filter(queue: Queue, person: Client) -> None:
    bury(queue, 3, lane="low")
    bury(queue, 3, lane="high")
    asked = hidden(person.get(f"{DEAD}purge/?lane=low"))
    fields = {"reason": "x", "token": token(person.get(f"{DEAD}purge/"))}

    for counted in ("made up", asked["counted"]):
        page = person.post(f"{DEAD}purge/", {**fields, "counted": counted})
        assert page.status_code == 422
        assert "counted too long ago" in text(page)

    assert set(queue.places().values()) == {"dead"}


def test_a_filter_that_is_not_understood_is_no_reason_to_purge_everything(queue: Queue, person: Client) -> None:
    bury(queue, 3)

    for query in ("since=x", "lane=%00", f"lane={'x' * 99}"):
        assert person.get(f"{DEAD}purge/?{query}").status_code == 400
        assert person.post(f"{DEAD}purge/?{query}", {"reason": "x"}).status_code == 400

    assert set(queue.places().values()) == {"dead"}


@pytest.mark.parametrize("verb", ["requeue", "purge"])
def test_a_run_that_is_not_there_or_of_another_kind_is_not_found(queue: Queue, person: Client, verb: str) -> None:
    bury(queue, 1)
    other = {"requeue": "purge", "purge": "requeue"}[verb]
    run = address(begun(person, f"{DEAD}{other}/", reason="x", per_s="0"))

    assert person.get(f"{DEAD}{verb}/nobody/").status_code == 404
    assert person.post(run.replace(f"/{other}/", f"/{verb}/"), {"do": "work"}).status_code == 404
    assert set(queue.places().values()) == {"dead"}


def test_a_requeue_while_letters_die_again_takes_each_once_a_click(queue: Queue, person: Client) -> None:
    bury(queue, 150)
    where = address(begun(person, f"{DEAD}requeue/", reason="x", per_s="100"))
    told: dict[str, Any] = {"state": "going"}

    while told["state"] == "going":
        told = person.post(where, {"do": "work"}, headers=JSON).json()
        queue.clock.advance(1)
        for claim in queue.coordinator.pull("worker", 100):
            queue.coordinator.bury(claim, Failure(error="ValueError"))

    assert told["text"] == "requeued 150 of 150"
    assert [action for action, _, job in queue.events() if job].count("requeue") == 150
    assert set(queue.places().values()) == {"dead"}


def fill(queue: Queue, number: int) -> None:
    """Write letters as bury would have left them."""
    ids = [f"job-{at:06}" for at in range(number)]
    letter = f'{{"lane":"low","cause":"{CAUSE}","handler":"{HANDLER}","caller":"c","buried_at_ms":{START_MS}}}'
    queue.raw.hset(queue.keys.letters, mapping=dict.fromkeys(ids, letter))
    queue.raw.hset(queue.keys.jobs, mapping=dict.fromkeys(ids, "{}"))
    queue.raw.lpush(queue.keys.dead, *ids)
    queue.clock.advance(1)


def test_nothing_that_matches_is_nothing_to_confirm(queue: Queue, person: Client) -> None:
    bury(queue, 1, lane="low")

    for verb in ("requeue", "purge"):
        page = person.get(f"{DEAD}{verb}/?lane=high")
        assert page.status_code == 409
        assert f"Nothing to {verb} matches: lane=high" in text(page)


def test_an_old_count_is_asked_about_again_and_can_then_be_confirmed(queue: Queue, person: Client) -> None:
    bury(queue, 3)
    where = f"{DEAD}purge/"
    fields = {"token": token(person.get(where)), "reason": "x", "counted": "old"}

    again = person.post(where, fields)
    run = person.post(where, {**fields, **hidden(again)}, follow=True)

    assert "counted too long ago" in text(again)
    assert driven(person, address(run))["text"] == "purged 3 of 3"
