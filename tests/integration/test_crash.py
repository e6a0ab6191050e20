"""crash: in flight → ready, marked as suspect | dead at max_crashes, when the process that ran it alone has died."""

from collections.abc import Callable

import pytest

from priqueue import LeaseLost
from priqueue.jobs import Failure, State
from tests.support.queues import Queue

DEATH = Failure(error="WorkerLost", message="the process that ran it died: exit code 7")


def test_a_crashed_job_goes_back_to_the_head_of_its_lane_with_the_crash_counted(queue: Queue) -> None:
    (claim,) = queue.claimed()
    (other,) = queue.enqueue()
    queue.clock.advance(1)

    queue.coordinator.crash(claim, DEATH)

    state = queue.state()
    assert state["ready"]["default"] == [claim.job.id, other.id]
    assert state["attempts"] == {claim.job.id: "0 1 s"}
    assert state["since"] == {claim.job.id: queue.clock.now_ms}
    assert (state["in flight"], state["slots"]) == ({}, {})
    assert queue.events()[-1] == ("crash", "worker:worker", claim.job.id)
    assert queue.counters()["crashed:default"] == 1


def test_it_is_claimed_as_a_suspect_until_it_has_failed_or_gone(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.crash(claim, DEATH)

    (again,) = queue.coordinator.pull("worker")
    queue.coordinator.retry(again, DEATH, delay_s=0)
    queue.coordinator.promote()
    (third,) = queue.coordinator.pull("worker")

    assert (claim.suspect, again.suspect, third.suspect) == (False, True, False)
    assert (again.attempt, again.crashes) == (1, 1)
    assert (third.attempt, third.crashes) == (2, 1)


def test_at_the_last_crash_it_is_dead_with_its_payload_and_each_death_in_its_trail(
    make_queue: Callable[..., Queue],
) -> None:
    queue = make_queue(MAX_CRASHES=3)
    (claim,) = queue.claimed()
    queue.coordinator.crash(claim, DEATH)
    (again,) = queue.coordinator.pull("worker")

    queue.coordinator.crash(again, DEATH, deaths=2)

    status = queue.inspector.job(claim.job.id)
    assert status is not None
    assert (status.state, status.attempt, status.crashes) == (State.DEAD, 0, 3)
    assert status.job.payload == claim.job.payload
    assert [(attempt.crash, attempt.message) for attempt in status.trail] == [(True, DEATH.message)] * 3
    assert queue.state()["causes"] == {"WorkerLost tests.shop.jobs.note": 1}


def test_a_late_crash_is_refused_and_changes_nothing(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.ack(claim)
    before = queue.everything()

    with pytest.raises(LeaseLost, match=claim.job.id):
        queue.coordinator.crash(claim, DEATH)

    assert queue.everything() == before


def test_a_repeat_has_its_effect_once(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.crash(claim, DEATH)
    before = queue.everything()

    queue.coordinator.crash(claim, DEATH, repeat=True)

    assert queue.everything() == before
