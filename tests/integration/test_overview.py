"""One look at the whole queue."""

from collections.abc import Iterator

import pytest
from redis import Redis

from priqueue.coordinator.overview import Cause, Overview
from priqueue.coordinator.queued import Lanes, Queued
from priqueue.jobs import Failure, from_ms
from tests.support.queues import HANDLER, START_MS, Queue
from tests.support.trips import trips_of


@pytest.fixture
def overview(queue: Queue) -> Iterator[Overview]:
    reader = Overview(queue.client, queue.settings, queue.clock)
    yield reader
    reader.close()


@pytest.fixture
def lanes(queue: Queue) -> Iterator[Lanes]:
    reader = Lanes(queue.client, queue.settings, queue.clock)
    yield reader
    reader.close()


def test_causes_come_with_what_is_new_of_them_the_growing_ones_first(queue: Queue, overview: Overview) -> None:
    queue.buried(number=3, failure=Failure(error="KeyError"))
    queue.clock.advance(601)
    queue.buried(number=2, failure=Failure(error="CardDeclined"))

    snapshot = overview.snapshot()

    assert snapshot.causes == [
        Cause(name=f"CardDeclined {HANDLER}", error="CardDeclined", handler=HANDLER, number=2, recent=2),
        Cause(name=f"KeyError {HANDLER}", error="KeyError", handler=HANDLER, number=3, recent=0),
    ]
    assert (snapshot.buried, snapshot.stats.dead) == (2, 5)


def test_a_new_cause_is_seen_beside_twenty_that_are_older_and_larger(queue: Queue, overview: Overview) -> None:
    for number in range(20):
        queue.buried(number=3, failure=Failure(error=f"Old{number:02}"))
    queue.clock.advance(601)
    queue.buried(number=2, failure=Failure(error="New"))

    snapshot = overview.snapshot()

    assert [(cause.error, cause.recent) for cause in snapshot.causes] == [
        ("New", 2),
        *((f"Old{number:02}", 0) for number in range(19)),
    ]
    assert snapshot.buried == 2


def test_what_was_buried_is_counted_over_all_causes_however_many_grow(queue: Queue, overview: Overview) -> None:
    for number in range(30):
        queue.buried(failure=Failure(error=f"New{number}"))

    snapshot = overview.snapshot()

    assert (len(snapshot.causes), snapshot.buried) == (20, 30)


def test_it_says_what_each_worker_holds_and_since_when_each_duty_is_silent(queue: Queue, overview: Overview) -> None:
    claims = queue.claimed(number=2)
    queue.coordinator.promote()
    queue.coordinator.reclaim()
    queue.clock.advance(7)

    snapshot = overview.snapshot()

    assert {worker: sorted(ids) for worker, ids in snapshot.held.items()} == {
        "worker": sorted(claim.job.id for claim in claims)
    }
    assert snapshot.seen_s == {"ticker": 7.0, "sweeper": 7.0}


def test_it_counts_the_audit_events_that_wait(queue: Queue, overview: Overview) -> None:
    queue.enqueue(number=3)

    assert overview.snapshot().backlog == 3


def test_the_server_tells_its_memory_and_that_it_has_no_limit(real_queue: Queue) -> None:
    reader = Overview(real_queue.client, real_queue.settings)

    snapshot = reader.snapshot()
    reader.close()

    assert snapshot.memory_bytes > 0
    assert snapshot.memory_limit_bytes is None


def test_a_server_that_hides_its_memory_tells_the_rest(real_queue: Queue) -> None:
    name = f"user-of-{real_queue.settings.namespace}"
    real_queue.raw.execute_command("ACL", "SETUSER", name, "on", ">geheim", "~*", "+@all", "-info")
    real_queue.enqueue(lane="low")
    port = real_queue.raw.connection_pool.connection_kwargs["port"]
    with Redis(port=port, username=name, password="geheim") as client:
        reader = Overview(client, real_queue.settings, real_queue.clock)
        snapshot = reader.snapshot()
        reader.close()

    assert (snapshot.stats.lanes["low"].ready, snapshot.memory_bytes, snapshot.memory_limit_bytes) == (1, None, None)


@pytest.mark.parametrize("is_full", [True, False])
def test_one_look_is_two_round_trips_the_second_for_what_the_first_named(
    real_queue: Queue, monkeypatch: pytest.MonkeyPatch, is_full: bool
) -> None:
    queue = real_queue
    if is_full:
        for number in range(30):
            queue.buried(failure=Failure(error=f"Error{number}"))
        queue.claimed(lane="high")
        queue.enqueue(number=9, lane="low")
        queue.enqueue(lane="low", delay_ms=9_000)
        queue.coordinator.pause("low", caller="user:1", reason="x")
    reader = Overview(queue.client, queue.settings, queue.clock)
    reader.snapshot()
    trips = trips_of(monkeypatch)

    snapshot = reader.snapshot()
    reader.close()

    assert trips == ["MULTI", "HMGET"]
    assert (snapshot.stats.dead, snapshot.buried) == ((30, 30) if is_full else (0, 0))


def test_the_head_of_a_lane_is_what_is_taken_next_and_since_when_it_waits(queue: Queue, lanes: Lanes) -> None:
    first, second = queue.enqueue(number=2, lane="low", caller="key:billing")
    queue.raw.hset(queue.keys.since, first.id, START_MS)
    queue.enqueue(lane="low", number=1)

    head = lanes.head("low", 2)

    assert [(job.id, job.handler, job.caller) for job in head] == [
        (job.id, HANDLER, "key:billing") for job in (first, second)
    ]
    assert head[0].at == from_ms(START_MS)


def test_the_next_due_come_with_their_times(queue: Queue, lanes: Lanes) -> None:
    later, sooner = (queue.enqueue(lane="low", delay_ms=delay_ms)[0] for delay_ms in (9_000, 4_000))

    due = lanes.next_due("low", 50)

    assert due == [
        Queued(id=job.id, handler=HANDLER, caller="system", at=from_ms(START_MS + delay_ms))
        for job, delay_ms in ((sooner, 4_000), (later, 9_000))
    ]


def test_an_id_without_a_job_is_stepped_over(queue: Queue, lanes: Lanes) -> None:
    (job,) = queue.enqueue(lane="low")
    queue.raw.lpush(queue.keys.lane("low"), "ghost")

    assert [found.id for found in lanes.head("low", 50)] == [job.id]
