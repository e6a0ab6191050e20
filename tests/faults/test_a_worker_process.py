"""Section A of the fault matrix: what happens to a worker's process. Killed, frozen, started anew."""

import random
import signal
from collections.abc import Callable

import pytest

from tests.faults.checker import WORK, audit, check, drain, percentile, produce, watched
from tests.faults.fleet import (
    FOUR_SLOTS,
    SLOTS,
    Kill,
    Process,
    bound_s,
    frozen,
    kill,
    leases_of,
    let_pass,
    recoveries_s,
    start_workers,
    taken_early,
    worker_id,
)
from tests.support.processes import Live

Report = Callable[..., None]
MakeLive = Callable[..., Live]
WORKERS = 4
SHORT = {"seconds": 0.05}


def victim(live: Live, workers: list[Process], chance: random.Random) -> Process:
    """Return a worker that has work to lose."""
    busy = live.until(lambda: [each for each in workers if leases_of(live, worker_id(live, each) or "nobody")])
    return chance.choice(busy)


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("kills", "number"), [(3, 2500), pytest.param(30, 20_000, marks=pytest.mark.chaos)])
def test_a1_one_of_four_workers_killed_every_two_seconds_loses_no_job(
    make_live: MakeLive, figure: Report, chance: random.Random, kills: int, number: int
) -> None:
    live = make_live(MAX_CRASHES=20)
    live.start("runsweeper")
    workers, done = start_workers(live, WORKERS, *FOUR_SLOTS), []
    with watched(live) as imbalances:
        produce(live, WORK, number, payload=SHORT)
        for _ in range(kills):
            let_pass(live, 2)
            lost = victim(live, workers, chance)
            done.append(kill(live, lost))
            workers[workers.index(lost)] = live.start("runworker", *FOUR_SLOTS)
        drain(live, 120)

    found, in_flight = check(live), sum(len(each.deadlines_ms) for each in done)
    times_s, about = recoveries_s(live, done), f"of {number}, {kills} kills"
    assert imbalances == []
    figure("A1", f"jobs lost {about}", len(found.lost), "0", not found.lost)
    figure("A1", f"jobs acked twice {about}", len(found.double_effects), "0", not found.double_effects)
    figure("A1", f"second starts {about}", found.double_starts, f"≤ {in_flight}", found.double_starts <= in_flight)
    figure(
        "A1", f"taken before the lease was over {about}", len(taken_early(live, done)), "0", not taken_early(live, done)
    )
    p95_s = percentile(times_s, 0.95)
    figure("A1", f"s to the next claim, p95 {about}", p95_s, f"≤ {bound_s(live):.1f}", p95_s <= bound_s(live))
    assert found.faults() == {}


@pytest.mark.chaos
def test_a1_with_default_settings_all_jobs_of_a_killed_worker_are_claimed_again_within_11_s(
    make_live: MakeLive, figure: Report
) -> None:
    live = make_live(HEARTBEAT_S=5, SWEEP_S=1, TICK_S=1, SOCKET_TIMEOUT_S=2, PULL_TIMEOUT_S=5)
    live.start("runsweeper")
    first = live.start_worker("--concurrency", "8")
    produce(live, WORK, 8, payload={"seconds": 3})
    live.until(lambda: len(live.history("start")) == 8)
    start_workers(live, 1, "--concurrency", "8")

    ended = kill(live, first)
    drain(live)

    slowest_s = max(recoveries_s(live, [ended]))
    assert (check(live).faults(), len(ended.deadlines_ms)) == ({}, 8)
    figure("A1", "s to the next claim of all 8 jobs, default settings", slowest_s, "≤ 11", slowest_s <= 11)


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_a2_all_workers_killed_at_once_lose_no_job(live: Live, figure: Report) -> None:
    live.start("runsweeper")
    workers = start_workers(live, WORKERS, *FOUR_SLOTS)
    usual_s = seconds_for(live, 5000, lambda: None)

    def kill_all() -> None:
        let_pass(live, 10)
        done.extend(kill(live, worker) for worker in workers)
        start_workers(live, WORKERS, *FOUR_SLOTS)

    done: list[Kill] = []
    with watched(live) as imbalances:
        taken_s = seconds_for(live, 5000, kill_all)

    found = check(live)
    # Workers are there from the first claim on; before it they start, for as long as this machine needs.
    away_s = (min(at_ms for at_ms, _ in audit(live, "claim") if at_ms > done[-1].at_ms) - done[-1].at_ms) / 1000
    waited_s = max(recoveries_s(live, done)) - away_s
    assert (found.faults(), imbalances) == ({}, [])
    figure("A2", "jobs lost of 5000", len(found.lost), "0", not found.lost)
    most = WORKERS * SLOTS
    figure("A2", "second starts", found.double_starts, f"≤ {most}", found.double_starts <= most)
    figure(
        "A2",
        "s to the next claim, once workers are there",
        waited_s,
        f"≤ {bound_s(live):.1f}",
        waited_s <= bound_s(live),
    )
    limit_s = usual_s * 1.25 + away_s + bound_s(live)
    figure("A2", f"s to drain, beside {usual_s:.0f} s unharmed", taken_s, f"≤ {limit_s:.0f}", taken_s <= limit_s)


def seconds_for(live: Live, number: int, meanwhile: Callable[[], None]) -> float:
    """Return how long jobs of 50 ms take."""
    before_ms = live.inspector.now_ms()
    produce(live, WORK, number, payload=SHORT)
    meanwhile()
    drain(live, 200)
    return (live.inspector.now_ms() - before_ms) / 1000


def test_a3_what_a_worker_says_that_was_frozen_for_three_leases_is_refused(live: Live, figure: Report) -> None:
    live.start("runsweeper")
    zombie = live.start_worker(*FOUR_SLOTS)
    jobs = produce(live, WORK, SLOTS, payload={"seconds": 1.5})
    live.until(lambda: len(live.history("start")) == SLOTS)
    name = worker_id(live, zombie)
    start_workers(live, 1, *FOUR_SLOTS)

    with frozen(zombie):
        let_pass(live, 3 * live.settings.lease_s)
    live.until(lambda: len(live.history("end")) == 2 * SLOTS)
    drain(live)
    zombie.send_signal(signal.SIGTERM)
    assert zombie.wait(10) == 0

    found, late = check(live), SLOTS
    accepted = sum(event["caller"] == f"worker:{name}" for _, event in audit(live, "ack", "retry", "bury", "release"))
    assert (found.faults(), found.double_starts) == ({}, SLOTS)
    assert {event["job"] for _, event in audit(live, "ack")} == {job.id for job in jobs}
    assert live.log(zombie).count("lost the lease") >= SLOTS
    figure(
        "A3", "late acks refused, of those tried", f"{late - accepted} of {late}", f"{late} of {late}", accepted == 0
    )


@pytest.mark.chaos
def test_a4_a_worker_frozen_for_less_than_a_lease_less_a_beat_loses_no_job(
    live: Live, figure: Report, chance: random.Random
) -> None:
    live.start("runsweeper")
    worker = live.start_worker(*FOUR_SLOTS)
    pause_s = 0.8 * (live.settings.lease_s - live.settings.heartbeat_s)
    produce(live, WORK, 300, payload={"seconds": 0.5})

    for _ in range(50):
        with frozen(worker):
            let_pass(live, pause_s)
        let_pass(live, live.settings.heartbeat_s * chance.uniform(0.5, 1.5))
    drain(live)

    found, reclaimed = check(live), live.inspector.stats().lanes["default"].reclaimed
    assert (found.faults(), found.double_starts) == ({}, 0)
    figure("A4", f"jobs taken in 50 pauses of {pause_s:.1f} s", reclaimed, "0", reclaimed == 0)


def test_a14_a_worker_started_again_under_its_id_does_not_keep_the_old_leases_alive(live: Live, figure: Report) -> None:
    live.start("runsweeper")
    first = live.start_worker(*FOUR_SLOTS, "--worker-id", "same")
    produce(live, WORK, SLOTS, payload={"seconds": 2})
    live.until(lambda: len(live.history("start")) == SLOTS)

    ended = kill(live, first)
    live.start("runworker", *FOUR_SLOTS, "--worker-id", "same")
    drain(live)

    slowest_s, found = max(recoveries_s(live, [ended])), check(live)
    assert (found.faults(), found.double_starts, taken_early(live, [ended])) == ({}, SLOTS, [])
    limit_s = bound_s(live) + 1.5  # it has to start first
    figure("A14", "s to the next claim", slowest_s, f"≤ {limit_s:.1f}", slowest_s <= limit_s)
