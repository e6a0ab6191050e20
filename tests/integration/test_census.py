"""census: where every job is, and each that is not in exactly one place."""

import threading
from collections.abc import Callable, Iterator
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from redis import Redis

from priqueue import QueueUnavailable, wiring
from priqueue.coordinator import Census
from priqueue.coordinator.census import Count, Finding
from priqueue.jobs import Job
from tests.support.queues import FAILURE, Queue


def census(queue: Queue) -> Count:
    taken = Census(queue.client, queue.settings, queue.clock)
    try:
        return taken.take()
    finally:
        taken.close()


def one_everywhere(queue: Queue) -> dict[str, str]:
    """Put a job into each place and return it by the place's name."""
    (dead,) = queue.buried(lane="low")
    (held,) = queue.claimed(lane="high")
    (ready,) = queue.enqueue(lane="default")
    (delayed,) = queue.enqueue(lane="low", delay_ms=60_000)
    return {"dead": dead.id, "in flight": held.job.id, "ready": ready.id, "delayed": delayed.id}


def test_jobs_that_are_each_in_one_place_are_only_counted(queue: Queue) -> None:
    one_everywhere(queue)
    before = queue.everything()

    assert census(queue) == Count(4, [], 0)

    assert queue.everything() == before


def test_more_than_a_batch_of_jobs_is_counted_whole(real_queue: Queue) -> None:
    queue = real_queue
    queue.enqueue(number=2_500)
    queue.enqueue(number=1_200, lane="low", delay_ms=60_000)

    assert census(queue) == Count(3_700, [], 0)


def test_a_job_that_is_nowhere_is_named(queue: Queue) -> None:
    job_id = one_everywhere(queue)["ready"]
    queue.raw.lrem(queue.keys.lane("default"), 0, job_id)

    (finding,) = census(queue).findings

    assert finding == Finding(job_id)
    assert str(finding) == f"job {job_id} is in no place"


def test_a_job_in_two_places_is_named_with_both(queue: Queue) -> None:
    job_id = one_everywhere(queue)["ready"]
    queue.raw.zadd(queue.keys.delayed("low"), {job_id: 1})

    (finding,) = census(queue).findings

    assert str(finding) == f"job {job_id} is delayed in low, and ready in default"


def test_a_job_twice_in_one_lane_is_named(queue: Queue) -> None:
    job_id = one_everywhere(queue)["ready"]
    queue.raw.lpush(queue.keys.lane("default"), job_id)

    (finding,) = census(queue).findings

    assert finding.places == ("ready in default", "ready in default")


@pytest.mark.parametrize("place", ["dead", "in flight", "ready", "delayed"])
def test_an_id_without_a_job_is_named_wherever_it_is(queue: Queue, place: str) -> None:
    job_id = one_everywhere(queue)[place]
    queue.raw.hdel(queue.keys.jobs, job_id)

    (finding,) = census(queue).findings

    assert (finding.id, finding.has_job) == (job_id, False)
    assert str(finding).startswith(f"id {job_id} is {place}")


def test_a_lane_that_left_the_configuration_is_a_place_too(make_queue: Callable[..., Queue]) -> None:
    before = make_queue(LANES={"high": 6, "bulk": 1})
    before.enqueue(number=2, lane="bulk")
    after = make_queue(LANES={"high": 6}, NAMESPACE=before.settings.namespace)

    assert census(after) == Count(2, [], 0)


@pytest.mark.parametrize("name", ["lane:low", "delayed:low", "inflight", "letters", "jobs"])
def test_a_foreign_value_is_named_by_its_key(queue: Queue, name: str) -> None:
    queue.enqueue(lane="default")
    key = queue.keys.prefix + name
    queue.raw.delete(key)
    queue.raw.set(key, "foreign")

    findings = census(queue).findings

    assert f"key {key} holds a foreign value" in [str(finding) for finding in findings]


def test_of_very_many_that_seem_wrong_a_thousand_are_looked_at_and_the_others_counted(real_queue: Queue) -> None:
    queue = real_queue
    queue.enqueue(number=1_300)
    queue.raw.delete(queue.keys.lane("default"))

    count = census(queue)

    assert (count.jobs, len(count.findings), count.more) == (1_300, 1_000, 300)


def test_while_jobs_move_nobody_is_accused(real_queue: Queue) -> None:
    queue = real_queue.on_the_servers_clock()
    mover = Queue(Redis(port=queue.client.connection_pool.connection_kwargs["port"]), queue.settings, clock=None)
    mover.register("w", concurrency=200)
    mover.enqueue(number=2_000)
    mover.enqueue(number=2_000, lane="low", delay_ms=5)
    stop, turns = threading.Event(), []

    def move() -> None:
        while not stop.is_set():
            claims = mover.coordinator.pull("w", 60)
            acked, retried, buried, released = (claims[number::4] for number in range(4))
            mover.coordinator.turn("w", 0, acked)
            for claim in retried:
                mover.coordinator.retry(claim, FAILURE, delay_s=0.005)
            for claim in buried:
                mover.coordinator.bury(claim, FAILURE)
            mover.coordinator.requeue([claim.job.id for claim in buried], caller="user:1", reason="again")
            mover.coordinator.release(*released)
            mover.coordinator.promote(100)
            mover.enqueue(number=10)
            turns.append(len(claims))

    moving = threading.Thread(target=move)
    moving.start()
    try:
        found, looks = list(census(queue).findings), 1
        while looks < 5 or len(turns) < 5:  # as often as it takes for much to have moved
            found, looks = [*found, *census(queue).findings], looks + 1
    finally:
        stop.set()
        moving.join()

    assert found == []


def test_a_queue_that_is_away_is_said(real_queue: Queue) -> None:
    with pytest.raises(QueueUnavailable):
        Census(Redis(port=1), real_queue.settings).take()


# ── the command ──


@pytest.fixture
def configured(queue: Queue) -> Iterator[Queue]:
    with wiring.override(queue.coordinator):
        yield queue


def reconciled() -> str:
    out = StringIO()
    call_command("lanestats", "--reconcile", stdout=out)
    return out.getvalue()


def test_the_command_says_that_all_is_well(configured: Queue) -> None:
    one_everywhere(configured)

    assert reconciled() == "4 jobs, each in exactly one place\n"


def test_the_command_names_what_is_wrong_in_harmless_lines_and_fails(configured: Queue) -> None:
    configured.coordinator.enqueue(Job(name="shop.note", payload={}))
    configured.raw.lpush(configured.keys.lane("low"), "x\x1b[2J")
    out = StringIO()

    with pytest.raises(CommandError, match="1 things are wrong among 1 jobs"):
        call_command("lanestats", "--reconcile", stdout=out)

    assert out.getvalue() == "id x\\x1b[2J is ready in low, and there is no job\n"
