"""beat: a worker is alive and renews the leases it names."""

from dataclasses import replace

import pytest

from priqueue import WorkerNotRegistered
from tests.support.queues import START_MS, Queue


def test_a_beat_renews_each_lease_it_names_for_two_beats(queue: Queue) -> None:
    claims = queue.claimed(number=2)
    queue.clock.advance(4)

    assert queue.coordinator.beat("worker", claims) == []

    renewed = [replace(claim, deadline_ms=START_MS + 14_000) for claim in claims]
    assert queue.state() == queue.expected(*renewed)


def test_a_lease_that_a_beat_does_not_name_is_not_renewed(queue: Queue) -> None:
    kept, forgotten = queue.claimed(number=2)
    queue.clock.advance(4)

    queue.coordinator.beat("worker", [kept])

    assert queue.state() == queue.expected(replace(kept, deadline_ms=START_MS + 14_000), forgotten)


def test_a_beat_renews_the_workers_presence_without_any_lease(queue: Queue) -> None:
    queue.register("w")
    queue.clock.advance(4)

    assert queue.coordinator.beat("w", []) == []

    assert queue.raw.hget(queue.keys.heartbeats, "w") == str(START_MS + 4_000)


def test_a_late_beat_returns_the_lost_ids_and_changes_no_job(queue: Queue) -> None:
    claims = queue.claimed(number=2)
    queue.lapse()
    before = queue.state()

    assert queue.coordinator.beat("worker", claims) == [claim.job.id for claim in claims]

    assert queue.state() == before


def test_a_beat_renews_what_is_held_and_names_what_is_lost(queue: Queue) -> None:
    lost, held = queue.claimed(number=2)
    queue.coordinator.release(lost)
    queue.clock.advance(4)

    assert queue.coordinator.beat("worker", [lost, held]) == [lost.job.id]

    assert queue.state()["deadlines"] == {held.job.id: START_MS + 14_000}


def test_a_beat_does_not_renew_a_lease_that_another_worker_holds_by_now(queue: Queue) -> None:
    (old,) = queue.claimed(worker_id="a")
    queue.register("b")
    queue.lapse()
    (new,) = queue.coordinator.pull("b")
    before = queue.state()

    assert queue.coordinator.beat("a", [old]) == [old.job.id]

    assert queue.state() == before == queue.expected(new, attempts={new.job.id: "0 1"})


def test_a_beat_does_not_renew_an_old_lease_of_a_job_that_the_same_worker_holds_anew(queue: Queue) -> None:
    (old,) = queue.claimed()
    queue.lapse()
    (new,) = queue.coordinator.pull("worker")
    queue.clock.advance(4)

    assert queue.coordinator.beat("worker", [old]) == [old.job.id]

    assert queue.state()["deadlines"] == {new.job.id: new.deadline_ms}


def test_a_lapsed_lease_that_nobody_reclaimed_still_stands_and_is_renewed(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.clock.advance(60)

    assert queue.coordinator.beat("worker", [claim]) == []

    assert queue.state() == queue.expected(replace(claim, deadline_ms=START_MS + 70_000))


def test_a_beaten_lease_is_not_reclaimed(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.reclaim()
    queue.clock.advance(9)
    queue.coordinator.beat("worker", [claim])
    queue.clock.advance(1)

    assert queue.coordinator.reclaim() == 0

    assert queue.places() == {claim.job.id: "in flight"}


def test_a_beat_for_a_purged_job_does_not_bring_it_back(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.raw.hset(queue.keys.attempts, claim.job.id, "0 2")
    queue.lapse()
    queue.coordinator.purge([claim.job.id], caller="user:1", reason="spam")
    before = queue.state()

    assert queue.coordinator.beat("worker", [claim]) == [claim.job.id]

    assert queue.state() == before


def test_an_unknown_worker_has_to_register_and_nothing_changes(queue: Queue) -> None:
    (claim,) = queue.claimed()
    before = queue.everything()

    with pytest.raises(WorkerNotRegistered, match="ghost"):
        queue.coordinator.beat("ghost", [claim])

    assert queue.everything() == before


def test_a_lost_reply_renews_the_lease_all_the_same(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.clock.advance(4)
    queue.eat_replies()

    assert queue.coordinator.beat("worker", [claim]) == []

    assert queue.state() == queue.expected(replace(claim, deadline_ms=START_MS + 14_000))


def test_a_beat_is_no_change_of_state_and_leaves_no_event(queue: Queue) -> None:
    claims = queue.claimed()
    before = queue.events(), queue.counters()

    queue.coordinator.beat("worker", claims)

    assert (queue.events(), queue.counters()) == before


@pytest.mark.parametrize(("silence_s", "late"), [(7.4, 0), (7.5, 1), (60, 1)])
def test_a_beat_that_comes_after_more_than_one_interval_and_a_half_is_counted(
    queue: Queue, silence_s: float, late: int
) -> None:
    queue.register("w")
    queue.clock.advance(silence_s)

    queue.coordinator.beat("w", [])

    assert queue.counters().get("late_beats:", 0) == late


def test_a_lease_that_is_renewed_late_is_counted_though_its_worker_was_heard_of(queue: Queue) -> None:
    claims = queue.claimed(number=2)
    queue.clock.advance(7)
    queue.coordinator.pull("worker")
    queue.clock.advance(1)

    queue.coordinator.beat("worker", claims)

    assert queue.counters()["late_beats:"] == 1
