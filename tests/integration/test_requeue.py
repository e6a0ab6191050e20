"""requeue: dead → ready, by a person."""

from collections.abc import Callable

import pytest

from priqueue.jobs import Failure
from tests.support.queues import CAUSE, FAILURE, HANDLER, START_MS, Queue

BY = {"caller": "user:1", "reason": "fixed"}


def test_a_requeued_job_waits_at_the_tail_of_its_lane_with_all_attempts_before_it(queue: Queue) -> None:
    (job,) = queue.buried(lane="low")
    (waiting,) = queue.enqueue(lane="low")
    queue.clock.advance(1)

    assert queue.coordinator.requeue([job.id], **BY) == [job.id]

    ready = {"low": [waiting.id, job.id]}
    expected = queue.expected(ready=ready, since={job.id: START_MS + 1_000}, dead=[job.id])
    assert queue.state() == expected
    assert queue.raw.zrange(queue.keys.cause(CAUSE), 0, -1) == []


def test_its_trail_stays_and_its_attempts_begin_anew(queue: Queue) -> None:
    (job,) = queue.buried()
    queue.coordinator.requeue([job.id], **BY)

    (claim,) = queue.coordinator.pull("worker")

    assert (claim.job, claim.attempt, claim.crashes) == (job, 1, 0)
    assert queue.trail(job.id) == [("ValueError", "here", False)]


def test_it_leaves_an_event_that_says_who_and_why_and_is_counted(queue: Queue) -> None:
    (job,) = queue.buried(lane="low", correlation_id="request-7")

    queue.coordinator.requeue([job.id], **BY)

    assert queue.event() == {
        "action": "requeue", "caller": "user:1", "job": job.id, "handler": HANDLER, "lane": "low",
        "outcome": "ready", "reason": "fixed", "correlation_id": "request-7", "at": str(START_MS),
    }  # fmt: skip
    assert queue.counters()["requeued:low"] == 1


def test_it_wakes_a_worker_of_the_lane(queue: Queue) -> None:
    (job,) = queue.buried()
    queue.raw.delete(queue.keys.wake("default"))

    queue.coordinator.requeue([job.id], **BY)

    assert queue.tokens() == {"default": 1}


def test_the_letters_that_stay_keep_their_cause_and_their_number(queue: Queue) -> None:
    first, second = queue.buried(number=2)
    (other,) = queue.buried(failure=Failure(error="OSError"))

    queue.coordinator.requeue([first.id], **BY)

    state = queue.state()
    assert state["causes"] == {CAUSE: 1, f"OSError {HANDLER}": 1}
    assert set(state["letters"]) == {second.id, other.id}
    assert queue.raw.zrange(queue.keys.cause(CAUSE), 0, -1) == [second.id]


def test_the_list_of_the_dead_keeps_a_hole_that_is_noted(queue: Queue) -> None:
    first, second = queue.buried(number=2)

    queue.coordinator.requeue([first.id], **BY)

    assert queue.state()["dead"] == [second.id, first.id]
    assert queue.raw.hgetall(queue.keys.holes) == {first.id: "1"}


def test_a_job_that_dies_again_is_listed_anew(queue: Queue) -> None:
    (job,) = queue.buried()
    queue.coordinator.requeue([job.id], **BY)
    (claim,) = queue.coordinator.pull("worker")

    queue.coordinator.bury(claim, FAILURE)

    assert queue.state()["dead"] == [job.id, job.id]
    assert queue.raw.hgetall(queue.keys.holes) == {job.id: "1"}
    assert queue.state()["causes"] == {CAUSE: 1}
    assert queue.places() == {job.id: "dead"}


@pytest.mark.parametrize("place", ["ready", "delayed", "in flight", "gone"])
def test_what_is_not_dead_is_left_alone(queue: Queue, place: str) -> None:
    (claim,) = queue.claimed()
    if place == "ready":
        queue.coordinator.release(claim)
    elif place == "delayed":
        queue.coordinator.retry(claim, FAILURE, delay_s=5)
    elif place == "gone":
        queue.coordinator.ack(claim)
    before = queue.everything()

    assert queue.coordinator.requeue([claim.job.id], **BY) == []

    assert queue.everything() == before


def test_again_it_finds_nothing_to_do(queue: Queue) -> None:
    (job,) = queue.buried()
    queue.coordinator.requeue([job.id], **BY)
    before = queue.everything()

    assert queue.coordinator.requeue([job.id], **BY) == []

    assert queue.everything() == before


def test_one_id_given_twice_is_requeued_once(queue: Queue) -> None:
    (job,) = queue.buried()

    assert queue.coordinator.requeue([job.id, job.id], **BY) == [job.id]

    assert queue.state()["ready"]["default"] == [job.id]


def test_a_lost_reply_requeues_once_and_still_says_what_it_did(queue: Queue) -> None:
    jobs = queue.buried(number=3)
    queue.eat_replies()

    done = queue.coordinator.requeue([job.id for job in jobs], **BY)

    assert done == [job.id for job in jobs]
    assert queue.state()["ready"]["default"] == done
    assert queue.counters()["requeued:default"] == 3


def test_more_than_a_hundred_go_in_batches_and_in_their_order(queue: Queue) -> None:
    ids = [job.id for batch in range(3) for job in queue.buried(number=70)]

    assert queue.coordinator.requeue(ids, **BY) == ids

    assert queue.state()["ready"]["default"] == ids


def test_letters_buried_later_than_asked_are_left_alone(queue: Queue) -> None:
    (early,) = queue.buried()
    queue.clock.advance(1)
    (late,) = queue.buried()

    done = queue.coordinator.requeue([early.id, late.id], **BY, until_ms=START_MS)

    assert done == [early.id]
    assert queue.places() == {early.id: "ready", late.id: "dead"}


def test_a_letter_that_dies_again_while_a_requeue_goes_on_is_not_taken_twice(queue: Queue) -> None:
    (job,) = queue.buried()
    began_ms = queue.clock.now_ms
    queue.coordinator.requeue([job.id], **BY, until_ms=began_ms)
    (claim,) = queue.coordinator.pull("worker")
    queue.clock.advance(0.001)
    queue.coordinator.bury(claim, FAILURE)

    assert queue.coordinator.requeue([job.id], **BY, until_ms=began_ms) == []

    assert queue.places() == {job.id: "dead"}


def test_without_audit_of_all_a_persons_requeue_is_still_audited(make_queue: Callable[..., Queue]) -> None:
    queue = make_queue(AUDIT="callers")
    (job,) = queue.buried()

    queue.coordinator.requeue([job.id], **BY)

    assert queue.events() == [("requeue", "user:1", job.id)]
