"""Row E10: a job runs exactly as often as is written, whatever makes each run end; what it is never changes."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from redis import Redis

from priqueue import dead_letters, retry, wiring
from priqueue.exceptions import Bury, Retry, Timeout
from priqueue.executor import Outcome, execute, failed
from priqueue.jobs import Claim, Failure, Job
from priqueue.retry import Again, GiveUp
from priqueue.settler import Settler
from tests.faults.endings.jobs import echo
from tests.support.queues import Queue, test_settings

RUNS = {0: 1, 1: 1, 2: 2, 5: 5}  # max attempts → runs
CRASHED = Failure(error="WorkerLost", message="signal 9")


@pytest.fixture
def queue(client: Redis) -> Iterator[Queue]:
    queue = Queue(client, test_settings(MAX_CRASHES=3))
    queue.register()
    with wiring.override(queue.coordinator):
        yield queue


@pytest.fixture(autouse=True)
def nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.shop.history.write", lambda *_, **__: None)


def next_claim(queue: Queue) -> Claim | None:
    queue.clock.advance(timedelta(days=1).total_seconds())
    queue.coordinator.reclaim()  # a day of silence begins with a grace
    queue.coordinator.promote()
    return next(iter(queue.coordinator.pull("worker")), None)


def settle(queue: Queue, outcome: Outcome) -> None:
    settler = Settler(queue.coordinator, lambda _: None)
    settler.add([outcome])
    settler.settle_others()


def run_to_the_end(queue: Queue) -> int:
    runs = 0
    while claim := next_claim(queue):
        settle(queue, execute(claim, queue.settings))
        runs += 1
    return runs


def always_failing(queue: Queue, **options: Any) -> Job:
    payload = {"value": [1], "failures": 10**6}
    (job,) = queue.enqueue(name=echo.name, payload=payload, lane="low", **options)
    return job


@pytest.mark.parametrize("max_attempts", RUNS)
def test_e10_a_job_that_always_fails_runs_as_often_as_it_may(
    queue: Queue, figure: Callable[..., None], max_attempts: int
) -> None:
    job = always_failing(queue, max_attempts=max_attempts)

    runs = run_to_the_end(queue)

    bound = RUNS[max_attempts]
    figure("E10", f"runs of a job that always fails, max_attempts {max_attempts}", runs, f"= {bound}", runs == bound)

    assert queue.places() == {job.id: "dead"}
    assert len(queue.trail(job.id)) == RUNS[max_attempts]


def test_e10_a_letter_that_is_requeued_has_all_its_runs_again(queue: Queue) -> None:
    job = always_failing(queue, max_attempts=3)
    runs = [run_to_the_end(queue)]

    dead_letters.requeue(dead_letters.select(), reason="once more", caller="user:1")

    runs.append(run_to_the_end(queue))
    assert (runs, queue.places()) == ([3, 3], {job.id: "dead"})


def test_e10_crashes_releases_and_lost_workers_cost_no_attempt(queue: Queue) -> None:
    """failure, lost worker, release, crash, timeout, release, failure: three failures, two crashes."""
    always_failing(queue, max_attempts=3)
    seen = []

    def claimed() -> Claim:
        claim = next_claim(queue)
        assert claim is not None
        seen.append((claim.attempt, claim.crashes))
        return claim

    settle(queue, execute(claimed(), queue.settings))
    claimed()
    queue.lapse()
    queue.coordinator.release(claimed(), reason="SIGTERM")
    queue.coordinator.crash(claimed(), CRASHED)
    settle(queue, failed(claimed(), Timeout("too long"), queue.settings))
    queue.coordinator.release(claimed(), reason="SIGTERM")
    settle(queue, execute(claimed(), queue.settings))

    assert seen == [(1, 0), (2, 0), (2, 1), (2, 1), (2, 2), (3, 2), (3, 2)]
    assert next_claim(queue) is None
    assert set(queue.places().values()) == {"dead"}


@pytest.mark.parametrize("how", ["lost", "crash"])
def test_e10_crashes_bury_at_their_own_number_however_many_attempts_are_left(
    queue: Queue, figure: Callable[..., None], how: str
) -> None:
    job = always_failing(queue, max_attempts=100)
    runs = 0
    while claim := next_claim(queue):
        runs += 1
        if how == "lost":
            queue.lapse()
        else:
            queue.coordinator.crash(claim, CRASHED)

    assert queue.places() == {job.id: "dead"}
    bound = queue.settings.max_crashes
    figure("E10", f"runs until buried, {how}", runs, f"= {bound}", runs == bound)


def test_e10_what_a_handler_does_to_its_arguments_never_reaches_the_next_attempt(queue: Queue) -> None:
    options = {"caller": "user:7", "correlation_id": "request-9", "timeout": 17, "max_attempts": 3}
    job = always_failing(queue, **options)
    seen = []
    while claim := next_claim(queue):
        settle(queue, execute(claim, queue.settings))
        seen.append((claim.job, claim.job.payload_text(), claim.lane))

    assert seen == [(job, job.payload_text(), "low")] * 3


class Limits:
    backoff_s, backoff_max_s = 2, 600


def test_e10_the_backoff_grows_to_its_cap_and_never_overflows() -> None:
    def wait_s(attempt: int, random: float) -> float:
        decision = retry.decide(
            attempt, ValueError(), max_attempts=10**6, backoff=None, limits=Limits(), random=lambda: random
        )
        assert isinstance(decision, Again)
        return decision.delay_s

    middle = [wait_s(attempt, 0.5) for attempt in range(1, 1_002)]
    assert middle == sorted(middle)
    assert (middle[:3], middle[-1], max(middle)) == ([2, 4, 8], 600, 600)
    assert (wait_s(1, 0), wait_s(1, 1), wait_s(10**6 - 1, 1)) == (1.8, 2.2, 600)


@pytest.mark.parametrize("max_attempts", [0, 1, 5])
@pytest.mark.parametrize("error", [ValueError(), SystemExit(), Retry(after=5), Timeout()])
def test_e10_no_error_gets_more_attempts_than_there_are(error: BaseException, max_attempts: int) -> None:
    decisions = [
        retry.decide(attempt, error, max_attempts=max_attempts, backoff=1, limits=Limits()) for attempt in range(1, 7)
    ]

    assert [type(decision) for decision in decisions].index(GiveUp) == max(max_attempts - 1, 0)
    assert retry.decide(1, Bury("no"), max_attempts=max_attempts, backoff=1, limits=Limits()) == GiveUp()
