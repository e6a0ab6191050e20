"""The mission: what this queue is for, sentence by sentence."""

from collections import Counter

import pytest

import priqueue
from priqueue.coordinator import Coordinator, Inspector
from priqueue.executor import Verdict, execute
from priqueue.jobs import Claim, Job, State
from priqueue.sweeper import Sweeper
from priqueue.ticker import Ticker
from tests.support.queues import FAILURE, HANDLER, START_MS, Queue

ALL = ("high", "default", "low")


@priqueue.job(name="tests.mission.keeps_failing", backoff=2)
def keeps_failing(n: int) -> None:
    """Fail, whatever comes."""
    raise ValueError(f"no luck with {n}")


def _lanes(claims: list[Claim]) -> list[str]:
    return [claim.lane for claim in claims]


def test_a_high_and_a_low_job_the_high_one_is_dispatched_first(queue: Queue) -> None:
    queue.enqueue(lane="low")
    queue.enqueue(lane="high")
    queue.register("w")

    claims = [*queue.coordinator.pull("w"), *queue.coordinator.pull("w")]

    assert _lanes(claims) == ["high", "low"]


def test_one_job_per_lane_high_then_default_then_low(queue: Queue) -> None:
    for lane in ("low", "default", "high"):
        queue.enqueue(lane=lane)
    queue.register("w")

    claims = [claim for _ in ALL for claim in queue.coordinator.pull("w")]

    assert _lanes(claims) == ["high", "default", "low"]


def test_the_default_lane_flooded_with_a_hundred_the_low_job_is_dispatched_within_the_weighted_window(
    queue: Queue,
) -> None:
    queue.enqueue(number=100, lane="default")
    queue.enqueue(lane="low")
    queue.register("w")

    claims = [claim for _ in range(10) for claim in queue.coordinator.pull("w")]

    assert _lanes(claims).index("low") == 3


def test_a_flood_of_all_lanes_sixty_thirty_and_ten_of_any_hundred_picks(queue: Queue) -> None:
    for lane in ALL:
        queue.enqueue(number=150, lane=lane)
    queue.register("w", concurrency=1_000)

    picks = _lanes([claim for _ in range(22) for claim in queue.coordinator.pull("w", 10)])

    windows = [Counter(picks[start : start + 100]) for start in range(len(picks) - 99)]
    assert all(window == {"high": 60, "default": 30, "low": 10} for window in windows)


def test_a_worker_with_a_limit_of_two_holds_two_and_a_third_pull_gives_nothing_until_one_is_acked(
    queue: Queue,
) -> None:
    jobs = queue.enqueue(number=3)
    queue.register("w", concurrency=2)
    first, second = [*queue.coordinator.pull("w"), *queue.coordinator.pull("w")]

    refused = queue.coordinator.pull("w")
    queue.coordinator.ack(first)
    (third,) = queue.coordinator.pull("w")

    assert refused == []
    assert [claim.job for claim in (first, second, third)] == jobs
    assert queue.state() == queue.expected(second, third)


def test_a_worker_is_lost_in_mid_job_and_the_job_is_ready_after_two_missed_beats_and_one_sweep_never_before(
    queue: Queue,
) -> None:
    (claim,) = queue.claimed()
    sweeper = Sweeper(queue.coordinator, queue.inspector)
    places = []

    for _ in range(11):
        sweeper.run_once()
        places.append(queue.places()[claim.job.id])
        queue.clock.advance(queue.settings.sweep_s)

    assert queue.settings.lease_s == 2 * queue.settings.heartbeat_s == 10
    assert places == ["in flight"] * 10 + ["ready"]


def test_a_job_delayed_by_two_seconds_is_in_no_lane_before_its_time_and_in_its_lane_after(queue: Queue) -> None:
    (job,) = queue.enqueue(lane="low", delay_ms=2_000)
    ticker = Ticker(queue.coordinator, queue.inspector)
    queue.clock.advance(1.999)
    ticker.run_once()
    before = queue.state()
    queue.clock.advance(0.001)

    ticker.run_once()

    assert before == queue.expected(delayed={"low": {job.id: START_MS + 2_000}})
    assert queue.state() == queue.expected(ready={"low": [job.id]}, since={job.id: START_MS + 2_000})


def _run_once(queue: Queue) -> Verdict:
    """Claim, run and settle one job, as a worker does."""
    (claim,) = queue.coordinator.pull("w")
    outcome = execute(claim, queue.settings)
    assert outcome.failure is not None
    if outcome.verdict is Verdict.RETRY:
        queue.coordinator.retry(claim, outcome.failure, delay_s=outcome.delay_s)
    else:
        queue.coordinator.bury(claim, outcome.failure)
    return outcome.verdict


@pytest.mark.django_db
def test_a_job_that_keeps_failing_is_dead_lettered_at_the_cap_not_on_a_lane_with_its_payload_and_its_trace(
    queue: Queue,
) -> None:
    job = Job(name=keeps_failing.name, payload={"n": 7}, max_attempts=3, caller="user:42")
    queue.coordinator.enqueue(job)
    queue.register("w")

    verdicts = []
    while queue.places() != {job.id: "dead"}:
        verdicts.append(_run_once(queue))
        queue.clock.advance(2)
        queue.coordinator.promote()

    assert verdicts == [Verdict.RETRY, Verdict.RETRY, Verdict.BURY]
    assert queue.state()["ready"] == {"high": [], "default": [], "low": []}
    assert queue.coordinator.pull("w") == []
    status = queue.inspector.job(job.id)
    assert status is not None
    assert (status.state, status.attempt, status.job.payload) == (State.DEAD, 3, {"n": 7})
    assert [(line.error, line.message, line.attempt) for line in status.trail] == [
        ("ValueError", "no luck with 7", attempt) for attempt in (1, 2, 3)
    ]
    assert "keeps_failing" in status.trail[0].traceback


@pytest.mark.parametrize("restarts", [1, 3])
def test_every_process_of_the_queue_restarts_and_jobs_in_flight_delayed_and_ready_are_all_still_there(
    queue: Queue, restarts: int
) -> None:
    (held,) = queue.claimed()
    (delayed,) = queue.enqueue(delay_ms=5_000)
    (ready,) = queue.enqueue(lane="low")
    (dead,) = queue.buried(lane="high")
    before = queue.everything()

    for _ in range(restarts):
        coordinator = Coordinator(queue.client, queue.settings, queue.clock)
        inspector = Inspector(queue.client, queue.settings, queue.clock)
        coordinator.promote()

    assert queue.everything() == before
    states = {job.id: inspector.job(job.id).state for job in (held.job, delayed, ready, dead)}  # type: ignore[union-attr]
    assert states == {
        held.job.id: State.IN_FLIGHT, delayed.id: State.DELAYED, ready.id: State.READY, dead.id: State.DEAD,
    }  # fmt: skip
    coordinator.ack(held)
    assert coordinator.requeue([dead.id], caller="user:1", reason="fixed") == [dead.id]


def test_a_released_retried_and_delayed_job_waits_for_a_later_process_just_as_well(queue: Queue) -> None:
    released, retried = queue.claimed(number=2)
    queue.coordinator.release(released)
    queue.coordinator.retry(retried, FAILURE, delay_s=2)
    (delayed,) = queue.enqueue(delay_ms=2_000)
    queue.clock.advance(2)
    later = Coordinator(queue.client, queue.settings, queue.clock)
    later.promote()
    later.register("later", lanes=ALL, concurrency=9)

    claims = later.pull("later", 9)

    assert [claim.job.id for claim in claims] == [released.job.id, retried.job.id, delayed.id]
    assert {claim.job.name for claim in claims} == {HANDLER}
