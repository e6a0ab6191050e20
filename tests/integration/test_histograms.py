"""Histograms: how long jobs waited and ran, counted by the scripts that claim and settle them."""

from dataclasses import replace
from itertools import pairwise

import pytest

from priqueue.coordinator.calls import born_ms
from priqueue.coordinator.histograms import BOUNDS_MS
from priqueue.jobs import Claim
from tests.support.queues import FAILURE, Queue


def since(queue: Queue, measure: str) -> dict[str, int]:
    """Return what was measured of one thing, without the ranges' common beginning."""
    found = queue.measured().items()
    return {name.removeprefix(f"{measure}_"): number for name, number in found if name.startswith(measure)}


def test_a_job_has_waited_from_its_ids_own_time_to_its_claim(queue: Queue) -> None:
    (job,) = queue.enqueue(lane="low")
    queue.register()
    queue.clock.now_ms = born_ms(job.id) + 80

    queue.coordinator.pull("worker")

    assert queue.measured() == {"wait_le_100:low": 1, "wait_ms:low": 80}


@pytest.mark.parametrize(
    ("waited_ms", "bound"), [(0, 5), (5, 5), (6, 10), *((ms + 1, above) for ms, above in pairwise(BOUNDS_MS))]
)
def test_a_wait_is_counted_in_the_range_it_is_in(queue: Queue, waited_ms: int, bound: int) -> None:
    (job,) = queue.enqueue()
    queue.register()
    queue.clock.now_ms = born_ms(job.id) + waited_ms

    queue.coordinator.pull("worker")

    assert queue.measured() == {f"wait_le_{bound}:default": 1, "wait_ms:default": waited_ms} | (
        {} if waited_ms else {"wait_ms:default": 0}
    )


def test_a_wait_beyond_the_last_range_is_counted_all_the_same(queue: Queue) -> None:
    (job,) = queue.enqueue()
    queue.register()
    queue.clock.now_ms = born_ms(job.id) + BOUNDS_MS[-1] + 1

    queue.coordinator.pull("worker")

    assert queue.measured() == {"wait_le_inf:default": 1, "wait_ms:default": BOUNDS_MS[-1] + 1}


def test_a_job_of_a_clock_that_is_ahead_has_waited_for_nothing(queue: Queue) -> None:
    (job,) = queue.enqueue()
    queue.register()
    queue.clock.now_ms = born_ms(job.id) - 3_600_000

    queue.coordinator.pull("worker")

    assert queue.measured() == {"wait_le_5:default": 1, "wait_ms:default": 0}


def test_a_job_whose_id_tells_no_time_is_not_measured(queue: Queue) -> None:
    queue.enqueue(id="f47ac10b-58cc-4372-a567-0e02b2c3d479")
    queue.register()

    queue.coordinator.pull("worker")

    assert queue.measured() == {}


def test_a_delayed_job_waits_from_its_promotion_and_is_late_from_its_due_time(queue: Queue) -> None:
    queue.enqueue(lane="low", delay_ms=1_000)
    queue.register()
    queue.clock.advance(1.2)
    queue.coordinator.promote()
    queue.clock.advance(0.03)

    (claim,) = queue.coordinator.pull("worker")

    assert claim.ready_since_ms == queue.clock.now_ms - 30
    assert queue.measured() == {
        "wait_le_50:low": 1, "wait_ms:low": 30, "lateness_le_250:low": 1, "lateness_ms:low": 230,
    }  # fmt: skip


def test_a_retried_job_is_late_from_the_end_of_its_backoff(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.retry(claim, FAILURE, delay_s=2)
    queue.clock.advance(2.004)
    queue.coordinator.promote()

    queue.coordinator.pull("worker")

    assert since(queue, "lateness") == {"le_5:default": 1, "ms:default": 4}


def test_a_released_job_waits_anew_from_its_release_and_is_not_late(queue: Queue) -> None:
    (claim,) = queue.claimed()
    before = queue.measured()
    queue.coordinator.release(claim)
    queue.clock.advance(0.2)

    queue.coordinator.pull("worker")

    added = {name: number - before.get(name, 0) for name, number in queue.measured().items()}
    assert {name: number for name, number in added.items() if number} == {
        "wait_le_250:default": 1, "wait_ms:default": 200,
    }  # fmt: skip


def ran(claims: list[Claim], *times_ms: int | None) -> list[Claim]:
    return [replace(claim, run_ms=ms) for claim, ms in zip(claims, times_ms, strict=True)]


def test_each_way_to_settle_a_run_counts_how_long_it_took(queue: Queue) -> None:
    acked, also_acked, retried, buried = ran(queue.claimed(number=4, lane="high"), 7, 80, 30_001, 3_600_001)

    queue.coordinator.turn("worker", 0, [acked, also_acked])
    queue.coordinator.retry(retried, FAILURE, delay_s=1)
    queue.coordinator.bury(buried, FAILURE)

    assert since(queue, "run") == {
        "le_10:high": 1, "le_100:high": 1, "le_60000:high": 1, "le_inf:high": 1,
        "ms:high": 7 + 80 + 30_001 + 3_600_001,
    }  # fmt: skip


def test_a_run_that_nobody_measured_is_settled_and_not_counted(queue: Queue) -> None:
    acked, retried, buried = queue.claimed(number=3)

    queue.coordinator.ack(acked)
    queue.coordinator.retry(retried, FAILURE, delay_s=1)
    queue.coordinator.bury(buried, FAILURE)

    assert since(queue, "run") == {}
    assert queue.state()["jobs"] == {retried.job.id, buried.job.id}


def test_a_run_whose_lease_is_lost_or_which_is_settled_already_is_not_counted_again(queue: Queue) -> None:
    (claim,) = ran(queue.claimed(), 7)
    queue.coordinator.ack(claim)
    before = queue.measured()

    queue.coordinator.ack(claim, repeat=True)

    assert queue.measured() == before


def test_the_series_hold_the_ranges_and_the_totals_the_sums_too(queue: Queue) -> None:
    (claim,) = ran(queue.claimed(), 7)
    queue.coordinator.ack(claim)

    series = queue.raw.hgetall(queue.keys.series(queue.clock.now_ms))

    in_series = {name: int(number) for name, number in series.items() if name.startswith(("wait", "run"))}
    assert in_series == {name: number for name, number in queue.measured().items() if "_le_" in name}
    assert queue.measured()["run_ms:default"] == 7
