"""cancel: delayed or ready → gone."""

import pytest

from priqueue import PriqueueError
from priqueue.coordinator import Refusal
from tests.support.queues import FAILURE, HANDLER, START_MS, Queue


def _cancel(queue: Queue, job_id: str, lane: str = "default") -> bool:
    return queue.coordinator.cancel(job_id, lane=lane, caller="user:1", reason="changed my mind")


def test_a_ready_job_is_gone_and_the_others_keep_their_order(queue: Queue) -> None:
    first, second, third = queue.enqueue(number=3)

    assert _cancel(queue, second.id) is True

    assert queue.state() == queue.expected(ready={"default": [first.id, third.id]})


def test_a_delayed_job_is_gone(queue: Queue) -> None:
    job, other = queue.enqueue(number=2, delay_ms=5_000)

    assert _cancel(queue, job.id) is True

    assert queue.state() == queue.expected(delayed={"default": {other.id: START_MS + 5_000}})


def test_a_job_that_failed_before_leaves_nothing(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.retry(claim, FAILURE, delay_s=5)

    assert _cancel(queue, claim.job.id) is True

    assert queue.state() == queue.expected()
    assert queue.trail(claim.job.id) == []


def test_it_leaves_an_event_that_says_who_and_why_and_is_counted(queue: Queue) -> None:
    (job,) = queue.enqueue(lane="low", correlation_id="request-7")

    _cancel(queue, job.id, "low")

    assert queue.event() == {
        "action": "cancel", "caller": "user:1", "job": job.id, "handler": HANDLER, "lane": "low",
        "outcome": "gone", "reason": "changed my mind", "correlation_id": "request-7", "at": str(START_MS),
    }  # fmt: skip
    assert queue.counters()["cancelled:low"] == 1


def test_a_job_in_flight_is_refused_and_nothing_changes(queue: Queue) -> None:
    (claim,) = queue.claimed()
    before = queue.everything()

    assert _cancel(queue, claim.job.id) is False

    assert queue.everything() == before


def test_a_dead_job_is_refused_and_nothing_changes(queue: Queue) -> None:
    (job,) = queue.buried()
    before = queue.everything()

    assert _cancel(queue, job.id) is False

    assert queue.everything() == before


def test_a_job_that_is_not_there_is_refused_and_nothing_changes(queue: Queue) -> None:
    queue.enqueue()
    before = queue.everything()

    assert _cancel(queue, "nowhere") is False

    assert queue.everything() == before


def test_a_job_of_another_lane_is_refused_and_nothing_changes(queue: Queue) -> None:
    (job,) = queue.enqueue(lane="low")
    before = queue.everything()

    assert _cancel(queue, job.id, "high") is False

    assert queue.everything() == before


def test_again_it_finds_nothing_to_do(queue: Queue) -> None:
    (job,) = queue.enqueue()
    _cancel(queue, job.id)
    before = queue.everything()

    assert _cancel(queue, job.id) is False

    assert queue.everything() == before


def test_a_lost_reply_cancels_once_and_still_says_so(queue: Queue) -> None:
    (job,) = queue.enqueue()
    queue.eat_replies()

    assert _cancel(queue, job.id) is True

    assert queue.state() == queue.expected()
    assert queue.counters()["cancelled:default"] == 1


def test_a_foreign_value_at_the_lane_is_an_error_and_the_job_stays(queue: Queue) -> None:
    (job,) = queue.enqueue()
    queue.raw.set(queue.keys.lane("default"), "foreign")
    before = queue.everything()

    with pytest.raises(PriqueueError, match="WRONGTYPE"):
        _cancel(queue, job.id)

    assert queue.everything() == before


def test_who_came_too_late_hears_who_holds_the_job(queue: Queue) -> None:
    (claim,) = queue.claimed(worker_id="web1:311:x")
    (dead,) = queue.buried()

    def refused(job_id: str) -> Refusal | None:
        return queue.coordinator.try_to_cancel(job_id, lane="default", caller="user:1")

    assert refused(claim.job.id) == Refusal(state="in flight", worker="web1:311:x")
    assert refused(dead.id) == Refusal(state="dead")
    assert refused("nowhere") == Refusal(state="gone")
    (ready,) = queue.enqueue()
    assert refused(ready.id) is None
    assert refused(ready.id) == Refusal(state="gone")
