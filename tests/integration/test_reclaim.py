"""reclaim: in flight → ready at the head of its lane, or dead, when its lease lapsed."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.queues import HANDLER, START_MS, Queue

LOST = f"WorkerLost {HANDLER}"


def test_a_job_whose_lease_lapsed_is_the_next_of_its_lane(queue: Queue) -> None:
    (claim,) = queue.claimed(lane="low")
    (waiting,) = queue.enqueue(lane="low")
    queue.coordinator.reclaim()
    queue.clock.advance(10)

    assert queue.coordinator.reclaim() == 1

    job_id = claim.job.id
    assert queue.state() == queue.expected(
        ready={"low": [job_id, waiting.id]}, attempts={job_id: "0 1"}, since={job_id: START_MS + 10_000}
    )


def test_one_millisecond_before_its_deadline_a_lease_stands(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.reclaim()
    queue.clock.advance(9.999)

    assert queue.coordinator.reclaim() == 0

    assert queue.state() == queue.expected(claim)


def test_it_leaves_an_event_and_is_counted(queue: Queue) -> None:
    (claim,) = queue.claimed(lane="low", correlation_id="request-7")

    queue.lapse()

    assert queue.event() == {
        "action": "reclaim", "caller": "sweeper", "job": claim.job.id, "handler": HANDLER, "lane": "low",
        "outcome": "ready", "reason": "worker lost: worker", "correlation_id": "request-7",
        "at": str(START_MS + 10_000),
    }  # fmt: skip
    assert queue.counters()["reclaimed:low"] == 1


def test_it_wakes_a_worker_of_the_lane(queue: Queue) -> None:
    queue.claimed()
    queue.raw.delete(queue.keys.wake("default"))

    queue.lapse()

    assert queue.tokens() == {"default": 1}


def test_into_a_paused_lane_it_wakes_nobody(queue: Queue) -> None:
    queue.claimed()
    queue.coordinator.pause("default", caller="user:1", reason="quiet")
    queue.raw.delete(queue.keys.wake("default"))

    queue.lapse()

    assert queue.tokens() == {}


def test_only_lapsed_leases_are_taken_over(queue: Queue) -> None:
    (lapsed,) = queue.claimed()
    queue.coordinator.reclaim()
    queue.clock.advance(5)
    (fresh,) = queue.claimed()
    queue.clock.advance(5)

    assert queue.coordinator.reclaim() == 1

    assert queue.places() == {lapsed.job.id: "ready", fresh.job.id: "in flight"}
    assert queue.state()["slots"] == {"worker": 1}


def test_a_limit_holds_and_the_next_sweep_takes_the_rest(queue: Queue) -> None:
    queue.claimed(number=5)
    queue.coordinator.reclaim()
    queue.clock.advance(10)

    taken = [queue.coordinator.reclaim(limit=2) for _ in range(4)]

    assert taken == [2, 2, 1, 0]


def test_a_second_sweeper_finds_nothing_left(queue: Queue) -> None:
    queue.claimed()
    queue.lapse()
    before = queue.everything()

    assert queue.coordinator.reclaim() == 0

    assert queue.everything() == before


def test_a_lost_reply_counts_one_crash(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.reclaim()
    queue.clock.advance(10)
    queue.eat_replies()

    queue.coordinator.reclaim()

    assert queue.state()["attempts"] == {claim.job.id: "0 1"}


def test_a_crash_counts_apart_from_failures(queue: Queue) -> None:
    queue.claimed()
    queue.lapse()

    (again,) = queue.coordinator.pull("worker")

    assert (again.attempt, again.crashes) == (1, 1)


def _crashed(queue: Queue, times: int) -> str:
    """Let a job's worker be lost so many times and return the job's id."""
    (claim,) = queue.claimed(caller="user:42")
    queue.lapse()
    for _ in range(times - 1):
        queue.coordinator.pull("worker")
        queue.lapse()
    return claim.job.id


def test_one_crash_before_the_cap_the_job_is_ready_again(queue: Queue) -> None:
    job_id = _crashed(queue, 2)

    assert queue.places() == {job_id: "ready"}


def test_at_the_cap_the_job_is_buried_with_its_handler_and_caller(queue: Queue) -> None:
    job_id = _crashed(queue, 3)

    letter = {
        "lane": "default", "cause": LOST, "handler": HANDLER, "caller": "user:42",
        "buried_at_ms": queue.clock.now_ms,
    }  # fmt: skip
    assert queue.state() == queue.expected(
        dead=[job_id], letters={job_id: letter}, causes={LOST: 1}, attempts={job_id: "0 3"}
    )
    assert queue.event()["outcome"] == "dead"


def test_each_crash_leaves_its_own_record_in_the_trail(queue: Queue) -> None:
    job_id = _crashed(queue, 3)

    assert queue.trail(job_id) == [("WorkerLost", "", True)] * 3


def test_the_crashes_can_be_read_by_people(queue: Queue) -> None:
    job_id = _crashed(queue, 2)

    status = queue.inspector.job(job_id)

    assert status is not None
    assert [(line.crash, line.worker, line.attempt) for line in status.trail] == [(True, "worker", 1)] * 2
    assert "no beat for 10000 ms" in status.trail[0].message


def test_the_crash_cap_is_a_setting(make_queue: Callable[..., Queue]) -> None:
    queue = make_queue(MAX_CRASHES=1)
    (claim,) = queue.claimed()

    queue.lapse()

    assert queue.places() == {claim.job.id: "dead"}


# ── the grace ──


def test_the_first_reclaim_of_all_holds_nothing(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.clock.advance(3_600)

    assert queue.coordinator.reclaim() == 1

    assert queue.places() == {claim.job.id: "ready"}


def test_after_a_silence_longer_than_a_lease_nothing_is_reclaimed_for_one_more(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.reclaim()
    queue.clock.advance(10.001)

    taken = [queue.coordinator.reclaim()]
    queue.clock.advance(9.999)
    taken.append(queue.coordinator.reclaim())
    assert queue.state() == queue.expected(claim)
    queue.clock.advance(0.001)
    taken.append(queue.coordinator.reclaim())

    assert taken == [0, 0, 1]
    assert queue.places() == {claim.job.id: "ready"}


def test_a_silence_of_exactly_a_lease_needs_no_grace(queue: Queue) -> None:
    queue.claimed()
    queue.coordinator.reclaim()
    queue.clock.advance(10)

    assert queue.coordinator.reclaim() == 1


def test_in_the_grace_a_worker_that_lives_keeps_its_job(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.reclaim()
    queue.clock.advance(60)
    queue.coordinator.reclaim()
    queue.coordinator.beat("worker", [claim])
    queue.clock.advance(9.999)

    assert queue.coordinator.reclaim() == 0

    assert queue.places() == {claim.job.id: "in flight"}


def test_sweeps_during_the_grace_do_not_prolong_it(queue: Queue) -> None:
    queue.claimed()
    queue.coordinator.reclaim()
    queue.clock.advance(60)

    taken = []
    for _ in range(11):
        taken.append(queue.coordinator.reclaim())
        queue.clock.advance(1)

    assert taken == [0] * 10 + [1]


def test_a_clock_that_was_set_back_holds_nothing(queue: Queue) -> None:
    queue.coordinator.reclaim()
    queue.clock.advance(-3_600)
    queue.claimed()
    queue.coordinator.reclaim()
    queue.clock.advance(10)

    assert queue.coordinator.reclaim() == 1


def test_a_grace_whose_end_went_far_ahead_with_the_clock_is_cut_to_one_lease(queue: Queue) -> None:
    queue.claimed()
    queue.coordinator.reclaim()
    queue.clock.advance(3_600)
    queue.coordinator.reclaim()
    queue.clock.advance(-3_600)
    queue.coordinator.reclaim()
    queue.clock.advance(10)

    assert queue.coordinator.reclaim() == 1


def test_a_deadline_further_off_than_one_lease_is_cut_to_one(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.clock.advance(-3_600)

    queue.coordinator.reclaim()

    assert queue.state() == queue.expected(replace(claim, deadline_ms=START_MS - 3_600_000 + 10_000))


@pytest.mark.parametrize("foreign", ["junk", "1 2 3", "", "-5 x"])
def test_an_unreadable_time_of_the_last_reclaim_holds_nothing(queue: Queue, foreign: str) -> None:
    queue.claimed()
    queue.raw.set(queue.keys.sweep, foreign)
    queue.clock.advance(60)

    assert queue.coordinator.reclaim() == 1


# ── where the index and the truth differ ──


def test_an_index_entry_earlier_than_its_lease_is_set_right_and_nothing_reclaimed(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.raw.zadd(queue.keys.deadlines, {claim.job.id: START_MS - 1})

    assert queue.coordinator.reclaim() == 0

    assert queue.state() == queue.expected(claim)


def test_an_index_entry_without_a_lease_is_counted_and_removed(queue: Queue) -> None:
    queue.raw.zadd(queue.keys.deadlines, {"ghost": START_MS - 1})

    assert queue.coordinator.reclaim() == 0

    assert queue.state() == queue.expected()
    assert sum(number for name, number in queue.counters().items() if name.startswith("ghosts:")) == 1


def test_a_lease_whose_job_is_gone_is_ended_and_its_slot_freed(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.raw.hdel(queue.keys.jobs, claim.job.id)

    queue.lapse()

    assert queue.state() == queue.expected()
    assert queue.counters()["ghosts:default"] == 1


def test_a_lease_behind_a_foreign_lane_waits_and_the_others_are_reclaimed(queue: Queue) -> None:
    (high,) = queue.claimed(lane="high")
    (low,) = queue.claimed(lane="low")
    queue.raw.set(queue.keys.lane("high"), "foreign")

    queue.lapse()

    assert queue.raw.lrange(queue.keys.lane("low"), 0, -1) == [low.job.id]
    assert queue.raw.hkeys(queue.keys.inflight) == [high.job.id]


def test_a_full_batch_of_leases_behind_a_foreign_lane_does_not_hold_up_the_others(queue: Queue) -> None:
    queue.claimed(number=3, lane="high")
    queue.clock.advance(1)
    (low,) = queue.claimed(lane="low")
    queue.raw.set(queue.keys.lane("high"), "foreign")
    queue.coordinator.reclaim()
    queue.clock.advance(10)

    for _ in range(2):
        queue.coordinator.reclaim(limit=3)

    assert queue.raw.lrange(queue.keys.lane("low"), 0, -1) == [low.job.id]
