"""Section A of the fault matrix: what handlers do to the process they run in. They end it, hang, hold its lock."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.faults.checker import WORK, check, drain, misplaced, produce, watched
from tests.faults.fleet import is_alive, start_workers
from tests.support import forking
from tests.support.processes import ROOT, Live

Report = Callable[..., None]
FOUR_SLOTS = ("--concurrency", "4")
DIE = "tests.shop.jobs.die"
RAISED = [
    "SystemExit", "KeyboardInterrupt", "GeneratorExit", "CancelledError", "BaseExceptionGroup", "MemoryError",
    "RecursionError",
]  # fmt: skip


def starts(live: Live) -> Counter[str]:
    return Counter(line["id"] for line in live.history("start"))


def buried(live: Live) -> set[str]:
    return set(live.raw.hkeys(live.coordinator.keys.letters))


def seconds_for_good_jobs(live: Live, poison: int = 0, how: str = "") -> tuple[float, set[str]]:
    """Return how long 200 good jobs take, with poison among them, and the ids of the poison."""
    before_ms = live.inspector.now_ms()
    produce(live, WORK, 20, payload={"seconds": 0.1})
    bad = produce(live, DIE, poison, payload={"how": how}) if poison else []
    good = {job.id for job in produce(live, WORK, 180, payload={"seconds": 0.1})}
    live.until(lambda: good <= {line["id"] for line in live.history("end")}, 60)
    return (live.inspector.now_ms() - before_ms) / 1000, {job.id for job in bad}


def longest_pause_s(live: Live) -> float:
    """Return the longest time in which no run ended."""
    return max(later["at"] - earlier["at"] for earlier, later in pairwise(live.history("end")))


@pytest.mark.parametrize(
    "how", ["exit", pytest.param("kill", marks=pytest.mark.chaos), pytest.param("segfault", marks=pytest.mark.chaos)]
)
def test_a8_one_poison_job_among_200_is_buried_after_its_crashes_and_nobody_else_is(
    live: Live, figure: Report, how: str
) -> None:
    start_workers(live, 2, *FOUR_SLOTS)
    usual_s, _ = seconds_for_good_jobs(live)
    with watched(live) as imbalances:
        taken_s, poison = seconds_for_good_jobs(live, poison=1, how=how)
        drain(live)

    (bad,), crashes = poison, live.settings.max_crashes
    found, status = check(live), live.inspector.job(bad)
    assert status is not None
    assert (found.faults(), imbalances, status.job.payload) == ({}, [], {"how": how})
    assert [(attempt.error, attempt.crash) for attempt in status.trail] == [("WorkerLost", True)] * crashes
    assert live.inspector.stats().lanes["default"].acked == 400
    figure("A8", f"crashes until dead, by {how}", starts(live)[bad], f"{crashes}", starts(live)[bad] == crashes)
    figure("A8", f"innocents buried, by {how}", len(buried(live) - poison), "0", buried(live) == poison)
    pause_s, limit_s = longest_pause_s(live), usual_s + crashes
    figure(
        "A8",
        f"s for 200 good jobs, beside {usual_s:.1f} unharmed, by {how}",
        taken_s,
        f"≤ {limit_s:.1f}",
        taken_s <= limit_s,
    )
    figure("A8", f"longest s without an end, by {how}", pause_s, "≤ 1", pause_s <= 1)


@pytest.mark.chaos
def test_a8_a_job_that_takes_all_memory_fails_and_the_others_go_on(live: Live, figure: Report) -> None:
    live.start("runticker")
    live.start_worker(*FOUR_SLOTS)
    (bad,) = produce(live, "tests.faults.jobs.devour", max_attempts=2)
    produce(live, WORK, 40, payload={"seconds": 0.05})
    drain(live)

    found, status = check(live), live.inspector.job(bad.id)
    assert status is not None
    assert (found.faults(), [attempt.error for attempt in status.trail]) == ({}, ["MemoryError"] * 2)
    figure("A8", "innocents buried, for want of memory", len(buried(live) - {bad.id}), "0", buried(live) == {bad.id})


@pytest.mark.chaos
@pytest.mark.timeout(240)
def test_a9_ten_poison_jobs_among_a_thousand_are_buried_and_the_others_finish(live: Live, figure: Report) -> None:
    start_workers(live, 2, *FOUR_SLOTS)
    poison = set()
    with watched(live) as imbalances:
        for number in range(10):
            poison |= {job.id for job in produce(live, DIE, payload={"how": ["exit", "kill", "segfault"][number % 3]})}
            produce(live, WORK, 99, payload={"seconds": 0.05})
        drain(live, 180)

    found, crashes = check(live), live.settings.max_crashes
    deaths = sum(starts(live)[each] for each in poison)
    acked = live.inspector.stats().lanes["default"].acked
    assert (found.faults(), imbalances, buried(live) - poison) == ({}, [], set())
    figure("A9", "good jobs done", acked, "990", acked == 990)
    figure("A9", "dead", len(buried(live)), "10", len(buried(live)) == 10)
    figure("A9", "processes ended", deaths, f"≤ {10 * crashes}", deaths <= 10 * crashes)


def test_a10_whatever_a_handler_raises_is_a_failure_and_costs_no_slot(live: Live, figure: Report) -> None:
    live.start_worker(*FOUR_SLOTS)
    jobs = {
        job.id: kind
        for kind in RAISED
        for job in produce(live, "tests.faults.jobs.raise_one", 8, payload={"kind": kind}, max_attempts=1)
    }
    drain(live)
    produce(live, "tests.faults.jobs.count_slots")
    live.until(lambda: live.history("slots"))
    produce(live, WORK, 4, payload={"seconds": 1})
    live.until(lambda: len(live.history("end")) == 5)

    found = check(live)
    errors = {job_id: live.inspector.job(job_id).trail[0].error for job_id in jobs}  # type: ignore[union-attr]
    assert (found.faults(), found.double_starts, buried(live)) == ({}, 0, set(jobs))
    assert {job_id: error.rpartition(".")[2] for job_id, error in errors.items()} == jobs
    assert len({line["pid"] for line in live.history() if "pid" in line}) == 1
    last = [line["what"] for line in live.history() if line["what"] in ("start", "end")][-8:]
    assert last == ["start"] * 4 + ["end"] * 4
    alive = live.history("slots")[0]["alive"]
    figure("A10", "threads for jobs after 56 such ends", alive, "4", alive == 4)


@pytest.mark.parametrize("where", ["event", "socket"])
def test_a11_a_run_in_every_slot_that_hangs_is_ended_and_its_slot_is_back(
    live: Live, figure: Report, where: str
) -> None:
    live.start("runticker")
    live.start("runsweeper")
    live.start_worker(*FOUR_SLOTS)
    hung = produce(
        live, "tests.faults.jobs.block", 4, payload={"where": where}, lane="high", timeout=0.5, max_attempts=2
    )
    live.until(lambda: len(live.history("start")) == 4)
    produce(live, WORK, 20, payload={"seconds": 0.1})
    drain(live)

    found = check(live)
    trails = {job.id: [each.error for each in live.inspector.job(job.id).trail] for job in hung}  # type: ignore[union-attr]
    assert (found.faults(), live.inspector.stats().lanes["high"].reclaimed) == ({}, 0)
    assert trails == {job.id: ["Timeout"] * 2 for job in hung}
    runs = max(starts(live)[job.id] for job in hung)
    figure("A11", f"runs of a job that hangs, on {where}, with two attempts", runs, "2", runs == 2)
    figure(
        "A11",
        f"jobs done after 4 of 4 slots hung on {where}",
        len(live.history("end")),
        "20",
        len(live.history("end")) == 20,
    )


@pytest.mark.chaos
def test_a12_a_run_that_holds_the_interpreter_lock_for_three_leases_costs_nobody_a_lease(
    live: Live, figure: Report
) -> None:
    live.start("runsweeper")
    live.start_worker(*FOUR_SLOTS)
    (hog,) = produce(live, "tests.faults.jobs.backtrack", payload={"length": 27})
    produce(live, WORK, 3, payload={"seconds": 0.1})
    drain(live)

    found = check(live)
    held_s = next(line["at"] for line in live.history("end") if line["id"] == hog.id) - live.history("start")[0]["at"]
    reclaimed = live.inspector.stats().lanes["default"].reclaimed
    assert (found.faults(), found.double_starts) == ({}, 0)
    figure(
        "A12",
        "leases for which the lock was held",
        held_s / live.settings.lease_s,
        "≥ 3",
        held_s >= 3 * live.settings.lease_s,
    )
    figure("A12", "jobs taken from the worker", reclaimed, "0", reclaimed == 0)
    figure("A12", "jobs acked twice", len(found.double_effects), "0", not found.double_effects)


@pytest.mark.chaos
def test_a13_eight_processes_forked_after_the_connection_was_used_enqueue_their_jobs_once(
    live: Live, figure: Report
) -> None:
    done = subprocess.run([sys.executable, "-m", "tests.support.forking"], cwd=ROOT, env=live.environ(), stderr=-1)

    wanted, stored = forking.CHILDREN * forking.EACH + 1, live.raw.hlen(live.coordinator.keys.jobs)
    assert (done.returncode, misplaced(live)) == (0, [])
    figure("A13", f"jobs there, of {wanted} enqueued by 8 forks", stored, f"{wanted}", stored == wanted)
    errors = done.stderr.count(b"ERROR") + done.stderr.count(b"Traceback")
    figure("A13", "protocol errors of 8 forks", errors, "0", errors == 0)


@pytest.mark.parametrize("how", ["exits", "comes back"])
def test_a13_a_process_that_a_handler_forks_speaks_for_nobody(live: Live, figure: Report, how: str) -> None:
    live.start("runsweeper")
    live.start_worker(*FOUR_SLOTS)
    produce(live, "tests.faults.jobs.fork", 20, payload={"how": how})
    produce(live, WORK, 20, payload={"seconds": 0.05})
    drain(live)

    found, pids = check(live), {line["pid"] for line in live.history("end")}
    lane = live.inspector.stats().lanes["default"]
    assert (found.faults(), found.double_starts, lane.reclaimed, lane.released) == ({}, 0, 0, 0)
    assert len({line["pid"] for line in live.history("start")}) == 1
    figure("A13", f"runs ended by a fork that {how}", len(pids) - 1, "0", len(pids) == 1)


@pytest.mark.parametrize("how", ["lives on", "is another program"])
def test_a13_a_fork_that_outlives_its_process_does_not_hide_the_death(live: Live, figure: Report, how: str) -> None:
    live.start_worker(*FOUR_SLOTS)
    produce(live, "tests.faults.jobs.fork", payload={"how": how})
    (line,) = live.until(lambda: live.history("end"))
    produce(live, WORK, 1, payload={"seconds": 0.5})
    live.until(lambda: len(live.history("start")) == 2)

    os.kill(line["pid"], signal.SIGKILL)
    drain(live, 20)

    if is_alive(line["child"]):
        os.kill(line["child"], signal.SIGKILL)
    found = check(live)
    assert found.faults() == {}
    figure("A13", f"jobs lost behind a fork that {how}", len(found.lost), "0", not found.lost)
