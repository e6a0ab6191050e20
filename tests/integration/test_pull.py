"""pull: a worker's long poll. Claim, or wait and claim."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from priqueue import WorkerDraining, WorkerNotRegistered
from priqueue.coordinator import Coordinator
from tests.support.queues import Queue
from tests.support.waiting import until


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    """A thread for the one who waits."""
    with ThreadPoolExecutor(1) as executor:
        yield executor


def _is_waiting(queue: Queue, aside: ThreadPoolExecutor, wait: Callable[[], object]) -> Future[object]:
    """Start a wait in a thread and return when it has claimed in vain at least once."""
    queue.raw.hdel(queue.keys.heartbeats, "w")
    future = aside.submit(wait)
    until(lambda: queue.raw.hexists(queue.keys.heartbeats, "w"))
    return future


def test_a_pull_that_finds_work_does_not_wait(queue: Queue) -> None:
    queue.enqueue()
    queue.register("w")

    assert len(queue.coordinator.pull("w", timeout_s=60)) == 1


def test_a_pull_that_finds_nothing_ends_with_its_time(queue: Queue) -> None:
    queue.register("w")

    assert queue.coordinator.pull("w", timeout_s=0.05) == []


def test_a_waiting_pull_gets_a_job_that_comes_in(queue: Queue, aside: ThreadPoolExecutor) -> None:
    queue.register("w")
    waiting = _is_waiting(queue, aside, lambda: queue.coordinator.pull("w", timeout_s=30))

    (job,) = queue.enqueue()

    assert [claim.job for claim in waiting.result(10)] == [job]


def test_a_waiting_pull_gets_a_delayed_job_when_it_is_promoted(queue: Queue, aside: ThreadPoolExecutor) -> None:
    queue.register("w")
    (job,) = queue.enqueue(delay_ms=1_000)
    waiting = _is_waiting(queue, aside, lambda: queue.coordinator.pull("w", timeout_s=30))
    queue.clock.advance(1)

    queue.coordinator.promote()

    assert [claim.job for claim in waiting.result(10)] == [job]


def test_a_waiting_pull_gets_a_job_whose_lane_is_resumed(queue: Queue, aside: ThreadPoolExecutor) -> None:
    queue.register("w")
    queue.coordinator.pause("default", caller="user:1", reason="quiet")
    (job,) = queue.enqueue()
    waiting = _is_waiting(queue, aside, lambda: queue.coordinator.pull("w", timeout_s=30))

    queue.coordinator.resume("default", caller="user:1")

    assert [claim.job for claim in waiting.result(10)] == [job]


def test_a_waiting_pull_hears_at_once_that_its_worker_is_to_drain(queue: Queue, aside: ThreadPoolExecutor) -> None:
    queue.register("w")
    waiting = _is_waiting(queue, aside, lambda: queue.coordinator.pull("w", timeout_s=30))

    queue.coordinator.drain("w", caller="user:1")

    with pytest.raises(WorkerDraining):
        waiting.result(10)


def test_a_full_worker_gets_nothing_at_once(queue: Queue) -> None:
    queue.enqueue(number=2)
    queue.register("w", concurrency=1)
    queue.coordinator.pull("w")

    assert queue.coordinator.pull("w", timeout_s=60) == []


def test_an_unknown_worker_is_refused_at_once(queue: Queue) -> None:
    with pytest.raises(WorkerNotRegistered):
        queue.coordinator.pull("w", timeout_s=60)


def test_a_worker_that_another_process_registered_waits_for_its_own_lanes(
    queue: Queue, aside: ThreadPoolExecutor
) -> None:
    queue.register("w", ["low"])
    other = Coordinator(queue.client, queue.settings, queue.clock)
    waiting = _is_waiting(queue, aside, lambda: other.pull("w", timeout_s=30))
    queue.enqueue(lane="high")

    (job,) = queue.enqueue(lane="low")

    assert [claim.job for claim in waiting.result(10)] == [job]
    assert queue.tokens() == {"high": 1}


def test_waiting_takes_the_token_and_says_so(queue: Queue) -> None:
    queue.enqueue()

    assert queue.coordinator.wait(["default"], 30) is True

    assert queue.tokens() == {}


def test_waiting_for_other_lanes_leaves_the_token_and_ends_with_its_time(queue: Queue) -> None:
    queue.enqueue()

    assert queue.coordinator.wait(["high", "low"], 0.05) is False

    assert queue.tokens() == {"default": 1}


def test_waiting_for_what_is_due_hears_of_an_earlier_time(queue: Queue) -> None:
    queue.enqueue(delay_ms=1_000)

    assert queue.coordinator.wait_for_due(30) is True

    assert queue.tokens() == {}


def test_the_jobs_come_in_the_pickers_order(queue: Queue) -> None:
    for lane in ("low", "default", "high"):
        queue.enqueue(number=10, lane=lane)
    queue.register("w")

    claims = queue.coordinator.pull("w", 10)

    assert [claim.lane for claim in claims] == ["high"] * 6 + ["default"] * 3 + ["low"]
