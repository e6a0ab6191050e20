"""retry: in flight → delayed, after a failure."""

import json

import pytest

from priqueue import LeaseLost
from priqueue.jobs import Failure
from tests.support.queues import FAILURE, HANDLER, START_MS, Queue


def test_a_failed_job_waits_for_its_next_attempt(queue: Queue) -> None:
    (claim,) = queue.claimed(lane="low")

    queue.coordinator.retry(claim, FAILURE, delay_s=2.5)

    job_id = claim.job.id
    delayed = {"low": {job_id: START_MS + 2_500}}
    assert queue.state() == queue.expected(delayed=delayed, attempts={job_id: "1 0"})


def test_it_leaves_an_event_and_is_counted(queue: Queue) -> None:
    (claim,) = queue.claimed(lane="low", correlation_id="request-7")

    queue.coordinator.retry(claim, FAILURE, delay_s=1)

    assert queue.event() == {
        "action": "retry", "caller": "worker:worker", "job": claim.job.id, "handler": HANDLER, "lane": "low",
        "outcome": "delayed", "reason": "ValueError: no", "correlation_id": "request-7", "at": str(START_MS),
    }  # fmt: skip
    assert queue.counters()["retried:low"] == 1


def test_a_wait_of_nothing_is_over_in_the_same_millisecond(real_queue: Queue) -> None:
    queue = real_queue.on_the_servers_clock()
    claims = queue.claimed(number=20)

    moved = []
    for claim in claims:
        queue.coordinator.retry(claim, FAILURE, delay_s=0)
        moved.append(queue.coordinator.promote())

    assert moved == [1] * 20


def test_the_trail_keeps_what_happened_where_and_when(queue: Queue) -> None:
    (claim,) = queue.claimed()

    queue.coordinator.retry(claim, FAILURE, delay_s=1)

    (line,) = queue.raw.lrange(queue.keys.trail(claim.job.id), 0, -1)
    token, _, at_ms, record = line.split(" ", 3)
    assert (token, int(at_ms)) == (claim.token, START_MS)
    assert json.loads(record) == {
        "error": "ValueError", "message": "no", "crash": False, "attempt": 1, "worker": "worker",
        "traceback": "here",
    }  # fmt: skip


def _failed(queue: Queue, *tracebacks: str) -> str:
    """Let one job fail with these tracebacks and return its id."""
    (claim,) = queue.claimed()
    for traceback in tracebacks:
        failure = Failure(error="ValueError", message="no", traceback=traceback)
        queue.coordinator.retry(claim, failure, delay_s=0)
        queue.coordinator.promote()
        (claim,) = queue.coordinator.pull("worker")
    return claim.job.id


def test_a_traceback_equal_to_the_one_before_is_said_and_not_repeated(queue: Queue) -> None:
    job_id = _failed(queue, "here", "here", "there", "here")

    tracebacks = [traceback for _, traceback, _ in queue.trail(job_id)]
    assert tracebacks == ["here", "the same as of the attempt before", "there", "here"]


def test_the_trail_is_bounded_and_keeps_the_newest(queue: Queue) -> None:
    job_id = _failed(queue, *(str(number) for number in range(30)))

    assert [traceback for _, traceback, _ in queue.trail(job_id)] == [str(number) for number in range(5, 30)]


def test_failures_add_up(queue: Queue) -> None:
    job_id = _failed(queue, "a", "b", "c")

    assert queue.state()["attempts"] == {job_id: "3 0"}
    assert queue.state()["in flight"][job_id]["attempt"] == 4


def test_a_failure_leaves_the_crashes_as_they_were(queue: Queue) -> None:
    queue.claimed()
    queue.lapse()
    (claim,) = queue.coordinator.pull("worker")

    queue.coordinator.retry(claim, FAILURE, delay_s=1)

    assert queue.state()["attempts"] == {claim.job.id: "1 1"}


def test_the_earliest_retry_wakes_the_ticker(queue: Queue) -> None:
    queue.enqueue(delay_ms=5_000)
    (claim,) = queue.claimed()
    queue.raw.delete(queue.keys.wake_ticker, queue.keys.wake("default"))

    queue.coordinator.retry(claim, FAILURE, delay_s=4)

    assert queue.tokens() == {"ticker": 1}


def test_a_retry_later_than_the_earliest_wakes_nobody(queue: Queue) -> None:
    queue.enqueue(delay_ms=5_000)
    (claim,) = queue.claimed()
    queue.raw.delete(queue.keys.wake_ticker, queue.keys.wake("default"))

    queue.coordinator.retry(claim, FAILURE, delay_s=6)

    assert queue.tokens() == {}


def test_a_late_retry_is_refused_and_changes_nothing(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.lapse()
    before = queue.everything()

    with pytest.raises(LeaseLost, match=claim.job.id):
        queue.coordinator.retry(claim, FAILURE, delay_s=1)

    assert queue.everything() == before


def test_a_retry_for_a_job_that_another_worker_holds_by_now_is_refused(queue: Queue) -> None:
    (old,) = queue.claimed(worker_id="a")
    queue.register("b")
    queue.lapse()
    queue.coordinator.pull("b")
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.retry(old, FAILURE, delay_s=1)

    assert queue.everything() == before


def test_a_late_retry_does_not_bring_a_dead_job_back(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.bury(claim, FAILURE)
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.retry(claim, FAILURE, delay_s=1)

    assert queue.everything() == before


@pytest.mark.parametrize("repeat", [False, True])
def test_a_late_retry_does_not_bring_a_purged_job_back(queue: Queue, repeat: bool) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.bury(claim, FAILURE)
    queue.coordinator.purge([claim.job.id], caller="user:1", reason="spam")
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.retry(claim, FAILURE, delay_s=1, repeat=repeat)

    assert queue.everything() == before


def test_a_second_retry_is_refused_unless_it_is_a_repeat(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.retry(claim, FAILURE, delay_s=1)
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.retry(claim, FAILURE, delay_s=1)

    assert queue.everything() == before


def test_a_repeat_is_done_already(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.retry(claim, FAILURE, delay_s=1)
    before = queue.everything()

    queue.coordinator.retry(claim, FAILURE, delay_s=1, repeat=True)

    assert queue.everything() == before


def test_a_repeat_is_done_already_when_the_job_runs_again_by_now(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.retry(claim, FAILURE, delay_s=0)
    queue.coordinator.promote()
    queue.coordinator.pull("worker")
    before = queue.everything()

    queue.coordinator.retry(claim, FAILURE, delay_s=0, repeat=True)

    assert queue.everything() == before


def test_a_repeat_whose_first_call_never_came_through_retries(queue: Queue) -> None:
    (claim,) = queue.claimed()

    queue.coordinator.retry(claim, FAILURE, delay_s=1, repeat=True)

    assert queue.places() == {claim.job.id: "delayed"}


def test_a_repeat_is_refused_when_the_job_was_reclaimed_instead(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.lapse()
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.retry(claim, FAILURE, delay_s=1, repeat=True)

    assert queue.everything() == before


def test_a_lost_reply_counts_one_failure(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.eat_replies()

    queue.coordinator.retry(claim, FAILURE, delay_s=1)

    assert queue.state()["attempts"] == {claim.job.id: "1 0"}
    assert queue.trail(claim.job.id) == [("ValueError", "here", False)]


def test_a_lapsed_lease_that_nobody_reclaimed_still_stands(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.clock.advance(60)

    queue.coordinator.retry(claim, FAILURE, delay_s=1)

    delayed = {"default": {claim.job.id: START_MS + 61_000}}
    assert queue.state() == queue.expected(delayed=delayed, attempts={claim.job.id: "1 0"})
