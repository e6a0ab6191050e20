"""Section A of the fault matrix: a worker that is told to end, in time, too late, or just as it claims."""

import random
import signal
from collections import Counter
from collections.abc import Callable

import pytest

from tests.faults.checker import WORK, audit, check, drain, produce
from tests.faults.fleet import (
    FOUR_SLOTS,
    bound_s,
    claim_and_stop,
    kill,
    let_pass,
    start_workers,
    worker_id,
)
from tests.support.processes import Live

Report = Callable[..., None]
MakeLive = Callable[..., Live]


def test_a5_a_terminated_worker_finishes_what_is_in_flight_and_leaves_with_0(
    make_live: MakeLive, figure: Report
) -> None:
    live = make_live(SHUTDOWN_GRACE_S=5)
    worker, other = start_workers(live, 2, *FOUR_SLOTS)
    produce(live, WORK, 60, payload={"seconds": 0.4})
    live.until(lambda: len(live.history("end")) >= 8)
    name, told_ms = worker_id(live, worker), live.inspector.now_ms()

    worker.send_signal(signal.SIGTERM)
    code = worker.wait(10)
    taken_s = (live.inspector.now_ms() - told_ms) / 1000
    drain(live)

    found = check(live)
    late = [
        at_ms for at_ms, event in audit(live, "claim") if event["caller"] == f"worker:{name}" and at_ms > told_ms + 200
    ]
    # A claim that was under way when it was told is given back at once, unrun; nothing else is.
    given_back = [at_ms for at_ms, _ in audit(live, "release") if not told_ms - 200 < at_ms < told_ms + 200]
    assert (found.faults(), code, other.poll(), late, given_back) == ({}, 0, None, [], [])
    figure("A5", "s to leave, with jobs of 0.4 s", taken_s, "≤ 1", taken_s <= 1)
    figure("A5", "second starts", found.double_starts, "0", found.double_starts == 0)


@pytest.mark.parametrize("how", ["the grace is over", "a second signal"])
def test_a6_what_a_terminated_worker_cannot_finish_is_back_in_its_lane_at_once(
    make_live: MakeLive, figure: Report, how: str
) -> None:
    live = make_live(SHUTDOWN_GRACE_S=2)
    worker = live.start_worker("--concurrency", "3")
    jobs = {lane: produce(live, WORK, lane=lane, payload={"seconds": 60})[0].id for lane in live.settings.lane_names}
    live.until(lambda: len(live.history("start")) == 3)
    told_ms = live.inspector.now_ms()

    worker.send_signal(signal.SIGTERM)
    if how == "a second signal":
        live.until(lambda: "drains" in live.log(worker))
        worker.send_signal(signal.SIGTERM)
    code = worker.wait(3)
    taken_s = (live.inspector.now_ms() - told_ms) / 1000

    lanes = {lane: live.raw.lrange(live.coordinator.keys.lane(lane), 0, -1) for lane in jobs}
    copies = max(Counter(job_id for ids in lanes.values() for job_id in ids).values())
    assert (code, lanes, live.raw.hgetall(live.coordinator.keys.attempts)) == (
        0,
        {lane: [jobs[lane]] for lane in jobs},
        {},
    )
    assert [event["action"] for _, event in audit(live, "retry", "reclaim", "bury")] == []
    figure("A6", f"copies of a job, {how}", copies, "1", copies == 1)
    limit_s = 3 if how == "the grace is over" else 1
    figure("A6", f"s to leave, {how}", taken_s, f"≤ {limit_s}", taken_s <= limit_s)


def test_a6_a_worker_killed_within_its_grace_leaves_each_job_once(make_live: MakeLive, figure: Report) -> None:
    live = make_live(SHUTDOWN_GRACE_S=20)
    live.start("runsweeper")
    worker = live.start_worker("--concurrency", "3")
    jobs = produce(live, WORK, 3, payload={"seconds": 60}, lane="low")
    live.until(lambda: len(live.history("start")) == 3)

    worker.send_signal(signal.SIGTERM)
    live.until(lambda: "drains" in live.log(worker))
    kill(live, worker)
    live.until(lambda: not live.raw.hlen(live.coordinator.keys.inflight))

    copies = Counter(live.raw.lrange(live.coordinator.keys.lane("low"), 0, -1))
    assert copies == {job.id: 1 for job in jobs}
    assert len(audit(live, "reclaim")) == 3
    figure("A6", "copies of a job, killed within the grace", max(copies.values()), "1", set(copies.values()) == {1})


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_a7_thirty_workers_terminated_as_they_claim_leave_no_lease_without_an_owner(
    live: Live, figure: Report, chance: random.Random
) -> None:
    live.start("runsweeper")
    left = 0
    for _ in range(30):
        worker = live.start("runworker", *FOUR_SLOTS)
        live.until(lambda started=worker: worker_id(live, started))
        produce(live, WORK, 8)
        let_pass(live, chance.uniform(0, 0.005))
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == 0
        left += live.raw.hlen(live.coordinator.keys.inflight)
    start_workers(live, 1, *FOUR_SLOTS)
    drain(live)

    found = check(live)
    assert (found.faults(), found.double_starts, live.inspector.stats().lanes["default"].reclaimed) == ({}, 0, 0)
    figure("A7", "leases left by 30 workers", left, "0", left == 0)


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_a7_claims_that_die_with_their_worker_before_it_knows_of_them_lapse_and_run(
    make_live: MakeLive, figure: Report, chance: random.Random
) -> None:
    live = make_live(MAX_CRASHES=1000)
    live.start("runsweeper")
    produce(live, WORK, 6000)

    died_with = claim_and_stop(live, 2000, 0.5, chance)
    live.until(lambda: not live.raw.hlen(live.coordinator.keys.inflight), bound_s(live))
    start_workers(live, 1, *FOUR_SLOTS)
    drain(live)

    found, reclaimed = check(live), live.inspector.stats().lanes["default"].reclaimed
    assert (found.faults(), found.double_starts) == ({}, 0)
    held = reclaimed == died_with > 100
    figure("A7", "claims taken over, of 2000 starts, half of which died with theirs", reclaimed, f"{died_with}", held)
