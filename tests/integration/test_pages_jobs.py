"""The field that finds a job: by its id however it was pasted, by a correlation id, and what is said of it then."""

import re
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client

from priqueue.audit import pages
from priqueue.exceptions import QueueUnavailable
from priqueue.jobs import Failure, new_id
from tests.support.auditing import store
from tests.support.queues import HANDLER, Queue
from tests.support.visiting import ADMIN, EVERYTHING, OWN, stored_queue, text, visitor

pytestmark = pytest.mark.django_db
queue = stored_queue
BOTH = pytest.mark.parametrize("mount", [ADMIN, OWN])


@pytest.fixture
def person(queue: Queue) -> Client:
    return visitor(*EVERYTHING, "view_auditevent")


def find(client: Client, wanted: str, mount: str = OWN) -> Any:
    return client.get(f"{mount}jobs/", {"id": wanted}, follow=True)


@BOTH
def test_a_job_is_found_in_each_of_its_places(queue: Queue, person: Client, mount: str) -> None:
    (ready,) = queue.enqueue(lane="low")
    (delayed,) = queue.enqueue(delay_ms=60_000)
    (claim,) = queue.claimed(lane="high")
    (dead,) = queue.buried(lane="high")

    pages = [text(find(person, job.id, mount)) for job in (ready, delayed, claim.job, dead)]

    assert "Ready in low , attempt 1 of 5" in pages[0]
    assert "Delayed in default , due" in pages[1]
    assert "In flight on worker in high" in pages[2]
    assert "Dead in high , after 1 of 5 attempts" in pages[3]
    assert ["Cancel the job" in page for page in pages] == [True, True, False, False]
    assert ["Open the dead letter" in page for page in pages] == [False, False, False, True]


@pytest.mark.parametrize("around", ["  {}\n", '"{}"', "'{}',", "«{}»", "(“{}”)", "\u200b{}\ufeff", "id: {};"[4:]])
def test_an_id_is_found_however_it_was_pasted(queue: Queue, person: Client, around: str) -> None:
    (job,) = queue.enqueue()

    assert "Ready in default" in text(find(person, around.format(job.id)))


def test_a_correlation_id_leads_to_its_job_or_to_a_list_of_them(queue: Queue, person: Client) -> None:
    (single,) = queue.enqueue(correlation_id="request-1")
    first, second = queue.enqueue(number=2, correlation_id="request-2")
    store(queue)

    assert single.id in text(find(person, "request-1"))
    listed = text(find(person, "request-2"))
    assert "2 jobs of one request" in listed
    assert first.id in listed
    assert second.id in listed


def test_what_ended_is_told_from_the_audit_log(queue: Queue, person: Client) -> None:
    (acked,) = queue.claimed()
    queue.coordinator.ack(acked)
    (cancelled,) = queue.enqueue()
    queue.coordinator.cancel(cancelled.id, lane="default", caller="user:9", reason="a mistake")
    (purged,) = queue.buried()
    queue.coordinator.purge([purged.id], caller="user:9", reason="old")
    store(queue)

    assert "It succeeded" in text(find(person, acked.job.id))
    assert "Cancelled by user:9" in text(find(person, cancelled.id))
    gone = text(person.get(f"{OWN}dead/{purged.id}/"))
    assert "Purged by user:9" in gone
    assert ": old" in gone


def test_how_it_ended_quotes_no_payload_to_those_who_may_not_see_it(queue: Queue) -> None:
    queue.enqueue()
    ended = {"action": "cancel", "caller": "user:9", "job": "gone", "outcome": "gone", "payload": "card 4242"}
    queue.raw.xadd(queue.keys.audit, ended)  # as a later version might say it
    store(queue)

    whole, without = (text(find(visitor("view_queue", *more), "gone")) for more in (("view_payload",), ()))

    assert "Cancelled by user:9" in whole
    assert "4242" in whole
    assert "Cancelled by user:9" in without
    assert "4242" not in without


def test_what_was_never_there_says_what_ids_look_like(queue: Queue, person: Client) -> None:
    page = find(person, new_id())

    assert page.status_code == 404
    assert "Never seen here. Ids look like" in text(page)


@pytest.mark.parametrize(
    "nonsense", ["", "   ", "\0", "%" * 100_000, "(a+)+$", "x" * 1_000_000, "[", "\\", "*", "é" * 300]
)
def test_nonsense_is_found_nowhere_in_no_time(queue: Queue, person: Client, nonsense: str) -> None:
    page = person.get(f"{OWN}jobs/", {"id": nonsense[:60_000]})

    assert page.status_code in (200, 404)


def test_a_life_is_told_from_its_beginning_and_hides_what_may_quote_a_payload(queue: Queue) -> None:
    (job,) = queue.buried(failure=Failure(error="ValueError", message="card 4242", traceback="4242"))
    store(queue)
    where = f"{OWN}dead/{job.id}/"

    whole = text(visitor(*EVERYTHING, "view_auditevent").get(where))
    without = text(visitor("view_queue", "view_auditevent").get(where))
    none = text(visitor("view_queue", "view_payload").get(where))

    assert "ValueError: card 4242" in whole
    assert "dead ValueError" in without
    assert "4242" not in without
    assert "Needs “Can view audit event”." in none


def test_without_the_audit_database_the_page_goes_on_and_says_so(
    queue: Queue, person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = queue.buried()
    (ready,) = queue.enqueue(name=HANDLER)

    def away(*_: object, **__: object) -> None:
        raise OperationalError("no route")

    monkeypatch.setattr(pages, "page", away)

    for where in (f"{OWN}dead/{job.id}/", f"{OWN}jobs/?id={ready.id}", f"{OWN}jobs/?id=nobody"):
        page = person.get(where)
        assert page.status_code == 200
        assert "Audit log unavailable: OperationalError" in text(page)
        assert "no route" not in text(page)
        assert re.search(r"events wait in Redis, none lost\.|so what became of it is not known here\.", text(page))


def test_without_the_audit_database_and_redis_nobody_claims_to_know_how_many_events_wait(
    queue: Queue, person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = queue.enqueue()
    person.get(OWN)

    def away(*_: object, **__: object) -> None:
        raise OperationalError("no route")

    def silent(*_: object) -> None:
        raise QueueUnavailable("the queue did not answer: TimeoutError")

    monkeypatch.setattr(pages, "page", away)
    monkeypatch.setattr("priqueue.coordinator.overview.Overview.snapshot", silent)

    shown = text(person.get(f"{OWN}jobs/?id={job.id}"))

    assert "Audit log unavailable: OperationalError; how many events wait in Redis is not known." in shown
    assert "none lost" not in shown
