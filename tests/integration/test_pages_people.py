"""On every page a user has a name beside the caller, for one query at most, and a page goes on without names."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from priqueue.models import AuditEvent
from priqueue.views import people
from tests.support.auditing import auditor
from tests.support.queues import HANDLER, Queue
from tests.support.reviewing import LIST
from tests.support.visiting import ADMIN, EVERYTHING, OWN, pages_of, text, visitor

pytestmark = pytest.mark.django_db
BOTH = pytest.mark.parametrize("mount", [ADMIN, OWN])


@pytest.fixture
def queue(real_queue: Queue, audit_database: str) -> Iterator[Queue]:
    """A queue on a real server, shown by the pages of both mounts, whose audit events are stored."""
    with pages_of(real_queue):
        yield real_queue


@pytest.fixture
def person(queue: Queue) -> Client:
    return visitor(*EVERYTHING, "view_auditevent")


@pytest.fixture
def ana(person: Client) -> str:
    """Somebody as pages tell of her: the name, and the caller."""
    return f"ana (user:{User.objects.create_user('ana').pk})"


@pytest.fixture
def ben(person: Client) -> str:
    return f"ben (user:{User.objects.create_user('ben').pk})"


def caller(told: str) -> str:
    return told.partition("(")[2].rstrip(")")


def store(queue: Queue) -> None:
    """Let the audit events so far be stored."""
    while auditor(queue).run_once() == 0:
        pass


def asked(client: Client, where: str) -> tuple[str, int]:
    """Return what a page shows, and how many queries for names it made."""
    with CaptureQueriesContext(connection) as queries:
        shown = text(client.get(where, follow=True))
    return shown, sum('"auth_user"."id" IN (' in query["sql"] for query in queries)


@BOTH
def test_who_paused_a_lane_is_named_on_every_page(queue: Queue, person: Client, ana: str, mount: str) -> None:
    queue.coordinator.pause("low", caller=caller(ana), reason="bank maintenance")

    for path in ("", "workers/", "lanes/high/", "lanes/low/pause/"):
        assert f"low is paused by {ana}, without an end" in asked(person, mount + path)[0], path
    for path in ("", "lanes/low/"):
        shown, number = asked(person, mount + path)
        assert f"Paused by {ana}" in shown
        assert number == 1
    resume, number = asked(person, f"{mount}lanes/low/resume/")
    assert (f"{ana} paused it: bank maintenance" in resume, number) == (True, 1)
    assert f"low is paused by {ana}" in person.get(f"{mount}data/").json()["parts"]["status"]


@BOTH
def test_whose_jobs_wait_and_run_is_named_for_one_query(
    queue: Queue, person: Client, ana: str, ben: str, mount: str
) -> None:
    queue.coordinator.pause("low", caller=caller(ben), reason="x")
    for who in (ana, ben):
        queue.claimed(lane="high", caller=caller(who))
        (job,) = queue.enqueue(lane="low", caller=caller(who))
        queue.enqueue(lane="low", caller=caller(who), delay_ms=9_000)

    workers, of_workers = asked(person, f"{mount}workers/")
    lane, of_lane = asked(person, f"{mount}lanes/low/")
    cancel, of_cancel = asked(person, f"{mount}jobs/{job.id}/cancel/")

    assert [workers.count(f"{HANDLER} high, from {who}") for who in (ana, ben)] == [1, 1]
    assert lane.count(ana) == 2
    assert f"ready, from {ben}." in cancel
    assert [of_workers, of_lane, of_cancel] == [1, 1, 1]


@BOTH
def test_a_job_and_its_life_name_who_asked_for_it(queue: Queue, person: Client, ana: str, ben: str, mount: str) -> None:
    (kept,), (gone,) = (queue.enqueue(lane="low", caller=caller(ana)) for _ in range(2))
    queue.coordinator.cancel(gone.id, lane="low", caller=caller(ben), reason="not needed")
    store(queue)

    found, of_found = asked(person, f"{mount}jobs/?id={kept.id}")
    told, of_told = asked(person, f"{mount}jobs/?id={gone.id}")

    assert f"{HANDLER} · {ana} · correlation" in found
    assert f"enqueue {ana}" in found
    assert f"Cancelled by {ben}" in told
    assert [of_found, of_told] == [1, 1]


def test_the_audit_log_names_them_in_its_list_and_in_each_row(queue: Queue, person: Client, ana: str, ben: str) -> None:
    queue.enqueue(number=3, lane="low", caller=caller(ana))
    queue.coordinator.pause("low", caller=caller(ben), reason="x")
    store(queue)

    listed, of_list = asked(person, LIST)
    row = AuditEvent.objects.get(action="pause")
    one, of_one = asked(person, f"{LIST}{row.id}/change/")

    assert (listed.count(f"enqueue {ana}"), listed.count(f"pause {ben}"), of_list) == (3, 1, 1)
    assert f"Caller: {ben}" in one
    assert of_one == 1
    assert asked(person, f"{LIST}?caller={caller(ana)}")[0].count(f"enqueue {ana}") == 3


def test_a_page_that_tells_of_no_user_asks_for_no_name(queue: Queue, person: Client) -> None:
    queue.coordinator.pause("low", caller="command:alice", reason="x")
    queue.claimed(caller="key:billing")

    assert [asked(person, f"{OWN}{path}")[1] for path in ("", "workers/", "lanes/low/")] == [0, 0, 0]


def test_without_the_users_table_pages_tell_of_callers(
    queue: Queue, person: Client, ana: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OperationalError("no connection")

    queue.coordinator.pause("low", caller=caller(ana), reason="x")
    monkeypatch.setattr(people, "_rows", fail)

    for path in ("", "lanes/low/", "workers/"):
        page = person.get(OWN + path)
        assert page.status_code == 200
        assert f"low is paused by {caller(ana)}, without an end" in text(page)
