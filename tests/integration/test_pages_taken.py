"""Who took a letter away, and when: on the empty list, on its own page, and where somebody came too late."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client

from priqueue import dead_letters, wiring
from priqueue.audit import pages
from tests.support.auditing import auditor
from tests.support.queues import Queue
from tests.support.tending import ADMIN_DEAD, DEAD, bury
from tests.support.visiting import EVERYTHING, OWN, pages_of, sent, text, token, visitor

pytestmark = pytest.mark.django_db
BOTH = pytest.mark.parametrize("dead", [DEAD, ADMIN_DEAD])
NONE_LEFT = "No dead letters. Nothing has failed for good that was not dealt with."


@pytest.fixture
def queue(real_queue: Queue, audit_database: str) -> Iterator[Queue]:
    """A queue on a real server, shown by the pages of both mounts, whose audit events are stored."""
    with pages_of(real_queue):
        yield real_queue


@pytest.fixture
def person(queue: Queue) -> Client:
    return visitor(*EVERYTHING, "view_auditevent")


@pytest.fixture
def ana(queue: Queue) -> str:
    return f"user:{User.objects.create_user('ana').pk}"


def store(queue: Queue) -> None:
    """Let the audit events so far be stored."""
    while auditor(queue).run_once() == 0:
        pass


def taken(queue: Queue, action: str, *ids: str, caller: str, reason: str = "old") -> None:
    """Let somebody requeue or purge letters, and its rows be stored."""
    getattr(queue.coordinator, action)(ids, caller=caller, reason=reason)
    store(queue)


def no_database(*_: object, **__: object) -> Any:
    raise OperationalError("no route")


# ── the empty list ──


@BOTH
@pytest.mark.parametrize(("action", "past"), [("purge", "purged"), ("requeue", "requeued")])
def test_the_empty_list_says_what_became_of_the_last_letter(
    queue: Queue, person: Client, ana: str, dead: str, action: str, past: str
) -> None:
    first, second = bury(queue, 2)
    taken(queue, "requeue" if action == "purge" else "purge", first, caller="user:999")
    queue.clock.advance(5)
    taken(queue, action, second, caller=ana, reason="duplicates")

    shown = text(person.get(dead))

    assert f"No dead letters. The last one was {past} by ana ({ana}) in " in shown
    assert ": duplicates." in shown
    assert NONE_LEFT not in shown


def test_what_somebody_only_meant_to_do_is_not_what_became_of_the_last(queue: Queue, person: Client, ana: str) -> None:
    first, second = bury(queue, 2)
    taken(queue, "purge", first, caller=ana)
    purge = f"{DEAD}{second}/purge/"
    fields = {"token": token(person.get(purge)), "reason": "late", "until_ms": str(queue.clock.now_ms)}
    taken(queue, "purge", second, caller=ana, reason="first")
    person.post(purge, fields)
    store(queue)

    assert f"The last one was purged by ana ({ana})" in text(person.get(DEAD))
    assert "late" not in text(person.get(DEAD))


def test_a_list_that_is_empty_by_its_filter_or_was_always_empty_tells_of_nobody(
    queue: Queue, person: Client, ana: str
) -> None:
    assert NONE_LEFT in text(person.get(DEAD))
    taken(queue, "purge", *bury(queue), caller=ana)

    assert "The last one" not in text(person.get(f"{DEAD}?lane=low"))
    assert "The last one" in text(person.get(DEAD))


def test_rows_of_another_queue_in_the_same_log_are_not_told_of(queue: Queue, person: Client, ana: str) -> None:
    other = queue.with_settings()
    taken(other, "purge", *bury(other), caller=ana)

    assert NONE_LEFT in text(person.get(DEAD))


def test_with_the_log_off_the_empty_list_tells_of_nobody(queue: Queue, person: Client, ana: str) -> None:
    taken(queue, "purge", *bury(queue), caller=ana)
    off = queue.with_settings(AUDIT="off", NAMESPACE=queue.settings.namespace)

    with wiring.override(off.coordinator):
        assert NONE_LEFT in text(person.get(DEAD))


def test_without_the_logs_database_the_empty_list_tells_of_nobody(
    queue: Queue, person: Client, ana: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken(queue, "purge", *bury(queue), caller=ana)
    monkeypatch.setattr(pages, "newest", no_database)

    page = person.get(DEAD)

    assert page.status_code == 200
    assert NONE_LEFT in text(page)


def test_what_a_later_version_may_quote_is_not_shown_without_the_right(queue: Queue) -> None:
    (job_id,) = bury(queue)
    queue.raw.delete(queue.keys.audit)
    queue.coordinator.purge([job_id], caller="user:9", reason="old")
    queue.raw.delete(queue.keys.audit)
    ended = {"action": "purge", "caller": "user:9", "job": job_id, "outcome": "gone", "payload": "card of ben"}
    queue.raw.xadd(queue.keys.audit, ended)
    store(queue)

    whole, without = (text(visitor("view_queue", *more).get(DEAD)) for more in (("view_payload",), ()))

    assert "The last one was purged by user:9" in whole
    assert "card of ben" in whole
    assert "The last one was purged by user:9" in without
    assert "card of ben" not in without


def test_the_log_is_read_off_its_index_however_much_was_noted_since(queue: Queue, person: Client, ana: str) -> None:
    taken(queue, "purge", *bury(queue), caller=ana)
    queue.raw.xtrim(queue.keys.audit, 0)
    for _ in range(pages.SIZE):
        queue.raw.xadd(queue.keys.audit, {"action": "purge", "caller": ana, "outcome": "intended"})
    store(queue)

    assert NONE_LEFT in text(person.get(DEAD))


# ── the page of a letter that is gone ──


@BOTH
@pytest.mark.parametrize(("action", "past"), [("purge", "Purged"), ("requeue", "Requeued")])
def test_the_page_of_a_letter_that_is_gone_says_who_took_it(
    queue: Queue, person: Client, ana: str, dead: str, action: str, past: str
) -> None:
    (job_id,) = bury(queue)
    taken(queue, action, job_id, caller=ana, reason="duplicates")

    shown = text(person.get(f"{dead}{job_id}/"))

    assert f"{past} by ana ({ana})" in shown
    assert ": duplicates." in shown


def test_a_letter_whose_end_is_not_stored_yet_was_seen_all_the_same(queue: Queue, person: Client, ana: str) -> None:
    (job_id,) = bury(queue)
    store(queue)
    queue.coordinator.purge([job_id], caller=ana, reason="old")

    for where in (f"{DEAD}{job_id}/", f"{OWN}jobs/?id={job_id}"):
        page = person.get(where)
        assert page.status_code == 200
        assert "The audit log does not tell how it ended, or not yet" in text(page)
        assert "Never seen here" not in text(page)


def test_a_letter_that_was_replaced_says_who_edited_it(queue: Queue, person: Client, ana: str) -> None:
    (job_id,) = bury(queue)
    dead_letters.replace(job_id, {"n": 1}, reason="a typo", caller=ana, copy_id="copy")
    store(queue)

    assert f"Replaced by copy , an edited copy. ana ({ana}) enqueued it" in text(person.get(f"{DEAD}{job_id}/"))
    assert f"It was replaced by ana ({ana})" in text(person.get(f"{DEAD}{job_id}/edit/"))
    assert f"It was replaced by ana ({ana})" in text(person.get(f"{DEAD}{job_id}/requeue/"))


# ── who came too late ──


@pytest.mark.parametrize("verb", ["requeue", "purge"])
def test_a_question_about_a_letter_that_is_gone_says_who_took_it(
    queue: Queue, person: Client, ana: str, verb: str
) -> None:
    (job_id,) = bury(queue)
    taken(queue, "purge", job_id, caller=ana)

    page = person.get(f"{DEAD}{job_id}/{verb}/")

    assert page.status_code == 409
    assert f"None of these is a dead letter any more. It was purged by ana ({ana}) 0.0 s ago." in text(page)


def test_an_act_that_came_too_late_for_some_says_who_took_them(queue: Queue, person: Client, ana: str) -> None:
    made = bury(queue, 6)
    where = f"{DEAD}requeue/?" + "&".join(f"id={job_id}" for job_id in made)
    fields = {"token": token(person.get(where)), "reason": "the gateway is back", "until_ms": str(queue.clock.now_ms)}
    dead_letters.replace(made[5], {"n": 1}, reason="a typo", caller="key:billing", copy_id="copy")
    taken(queue, "purge", made[0], made[2], caller=ana)
    taken(queue, "requeue", made[4], caller="user:999")

    asked = text(person.get(where))
    told = text(person.post(where, fields, follow=True))

    by = (
        f"2 were purged by ana ({ana}) 0.0 s ago. 1 was replaced by key:billing 0.0 s ago. "
        "1 was requeued by user:999 0.0 s ago."
    )
    assert (
        f"3 letters are gone meanwhile, and left out. 1 letter was replaced by edited copies, and left out. {by}"
        in asked
    )
    assert f"Requeued 2 of 6 letters. {by}" in told
    assert queue.event()["outcome"] == "Requeued 2 of 6 letters."


def test_who_edits_a_letter_that_somebody_else_edited_hears_who_it_was(queue: Queue, person: Client, ana: str) -> None:
    (job_id,) = bury(queue, payload={"n": 1})
    edit = f"{DEAD}{job_id}/edit/"
    fields = {"token": token(person.get(edit)), "reason": "x", "payload": '{"n": 3}'}
    dead_letters.replace(job_id, {"n": 2}, reason="a typo", caller=ana, copy_id="copy")
    store(queue)

    told = text(person.post(edit, fields, follow=True))

    assert f"copy was enqueued in its place. It was replaced by ana ({ana}) 0.0 s ago. Nothing was changed." in told


def test_without_the_logs_database_an_act_tells_what_it_did_all_the_same(
    queue: Queue, person: Client, ana: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = bury(queue, 2)
    where = f"{DEAD}purge/?id={first}&id={second}"
    taken(queue, "purge", first, caller=ana)
    monkeypatch.setattr(pages, "of_jobs", no_database)

    told = text(sent(person, where, reason="old", until_ms=str(queue.clock.now_ms)))

    assert "Purged 1 of 2 letters. 1 other was gone, replaced, or buried anew meanwhile, and left alone." in told


# ── names ──


def test_letters_tell_users_by_name(queue: Queue, person: Client, ana: str) -> None:
    (job_id,) = bury(queue, caller=ana)

    assert f"ana ({ana})" in text(person.get(DEAD))
    assert f"ana ({ana})" in text(person.get(f"{DEAD}{job_id}/"))
