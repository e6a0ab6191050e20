"""A worker that was away for long ends a job that others had taken over: whatever it says is refused."""

from collections.abc import Callable

import pytest

from priqueue import LeaseLost
from priqueue.coordinator import Coordinator
from priqueue.jobs import Claim, Failure
from tests.support.queues import Queue

FAILURE = Failure(error="ValueError", message="A", traceback="A")
SAY: dict[str, Callable[[Coordinator, Claim], None]] = {
    "ack": lambda coordinator, claim: coordinator.ack(claim),
    "retry": lambda coordinator, claim: coordinator.retry(claim, FAILURE, delay_s=1),
    "bury": lambda coordinator, claim: coordinator.bury(claim, FAILURE),
    "release": lambda coordinator, claim: coordinator.release(claim),
}


def swept(queue: Queue) -> Claim:
    """Return the claim of a worker that was silent for three leases; its job is ready again."""
    (claim,) = queue.claimed(worker_id="first")
    for _ in range(3):
        queue.coordinator.reclaim()
        queue.clock.advance(queue.settings.lease_s)
    queue.coordinator.reclaim()
    queue.register("second")
    return claim


def acked_by_another(queue: Queue) -> None:
    (claim,) = queue.coordinator.pull("second")
    queue.coordinator.ack(claim)


def in_flight_at_another(queue: Queue) -> None:
    queue.coordinator.pull("second")


def buried_by_another(queue: Queue) -> None:
    (claim,) = queue.coordinator.pull("second")
    queue.coordinator.bury(claim, Failure(error="KeyError", message="B", traceback="B"))


def buried_and_purged(queue: Queue) -> None:
    buried_by_another(queue)
    queue.coordinator.purge(list(queue.state()["letters"]), caller="user:1", reason="old")


@pytest.mark.parametrize("meanwhile", [acked_by_another, in_flight_at_another, buried_by_another, buried_and_purged])
@pytest.mark.parametrize("how", SAY)
def test_what_a_late_worker_says_of_a_swept_job_is_refused_and_changes_nothing(
    how: str, meanwhile: Callable[[Queue], None], queue: Queue
) -> None:
    late = swept(queue)
    meanwhile(queue)
    before = queue.state(), queue.places(), queue.events()

    with pytest.raises(LeaseLost, match=late.job.id):
        SAY[how](queue.coordinator, late)

    assert (queue.state(), queue.places(), queue.events()) == before


@pytest.mark.parametrize("meanwhile", [acked_by_another, in_flight_at_another, buried_by_another, buried_and_purged])
def test_a_late_beat_hears_that_the_lease_is_lost(meanwhile: Callable[[Queue], None], queue: Queue) -> None:
    late = swept(queue)
    meanwhile(queue)
    before = queue.state()

    lost = queue.coordinator.beat("first", [late])

    assert lost == [late.job.id]
    assert queue.state() == before
