"""bury: in flight → dead, after a failure for good."""

from collections.abc import Callable

import pytest

from priqueue import LeaseLost
from priqueue.jobs import Failure
from tests.support.queues import CAUSE, FAILURE, HANDLER, START_MS, Queue


def test_a_buried_job_is_on_no_lane_and_has_a_letter(queue: Queue) -> None:
    (claim,) = queue.claimed(lane="low", caller="user:42")

    queue.coordinator.bury(claim, FAILURE)

    job_id = claim.job.id
    assert queue.state() == queue.expected(
        dead=[job_id],
        letters={job_id: queue.letter(claim.job)},
        causes={CAUSE: 1},
        attempts={job_id: "1 0"},
    )
    assert queue.state()["letters"][job_id]["caller"] == "user:42"


def test_the_dead_are_listed_newest_first(queue: Queue) -> None:
    first, second = queue.buried(number=2)

    assert queue.state()["dead"] == [second.id, first.id]


def test_letters_of_one_cause_are_counted_and_ordered_by_time(queue: Queue) -> None:
    (early,) = queue.buried()
    queue.clock.advance(5)
    (late,) = queue.buried()

    letters = queue.raw.zrange(queue.keys.cause(CAUSE), 0, -1, withscores=True)
    assert letters == [(early.id, START_MS), (late.id, START_MS + 5_000)]
    assert queue.state()["causes"] == {CAUSE: 2}


def test_causes_are_told_apart_by_error_and_handler(queue: Queue) -> None:
    queue.buried()
    queue.buried(name="tests.shop.jobs.other")
    queue.buried(failure=Failure(error="OSError"))

    assert queue.state()["causes"] == {CAUSE: 1, "ValueError tests.shop.jobs.other": 1, f"OSError {HANDLER}": 1}


def test_the_number_of_causes_is_bounded_and_no_letter_is_uncounted(queue: Queue) -> None:
    queue.raw.hset(queue.keys.causes, mapping={f"cause{number}": 1 for number in range(1_000)})

    (job,) = queue.buried()

    causes = queue.state()["causes"]
    assert (len(causes), causes["other"]) == (1_001, 1)
    assert queue.raw.zrange(queue.keys.cause("other"), 0, -1) == [job.id]


def test_the_trail_says_what_happened_at_each_attempt(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.retry(claim, FAILURE, delay_s=0)
    queue.coordinator.promote()
    (claim,) = queue.coordinator.pull("worker")

    queue.coordinator.bury(claim, Failure(error="OSError", traceback="there"))

    assert queue.trail(claim.job.id) == [("ValueError", "here", False), ("OSError", "there", False)]


def test_it_leaves_an_event_and_is_counted(queue: Queue) -> None:
    (claim,) = queue.claimed(lane="low", correlation_id="request-7")

    queue.coordinator.bury(claim, FAILURE)

    assert queue.event() == {
        "action": "bury", "caller": "worker:worker", "job": claim.job.id, "handler": HANDLER, "lane": "low",
        "outcome": "dead", "reason": "ValueError: no", "correlation_id": "request-7", "at": str(START_MS),
    }  # fmt: skip
    assert queue.counters()["buried:low"] == 1


def test_a_late_bury_is_refused_and_changes_nothing(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.lapse()
    before = queue.everything()

    with pytest.raises(LeaseLost, match=claim.job.id):
        queue.coordinator.bury(claim, FAILURE)

    assert queue.everything() == before


def test_a_bury_for_a_job_that_another_worker_holds_by_now_is_refused(queue: Queue) -> None:
    (old,) = queue.claimed(worker_id="a")
    queue.register("b")
    queue.lapse()
    queue.coordinator.pull("b")
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.bury(old, FAILURE)

    assert queue.everything() == before


@pytest.mark.parametrize("repeat", [False, True])
def test_a_late_bury_does_not_bring_a_purged_job_back(queue: Queue, repeat: bool) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.bury(claim, FAILURE)
    queue.coordinator.purge([claim.job.id], caller="user:1", reason="spam")
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.bury(claim, FAILURE, repeat=repeat)

    assert queue.everything() == before


def test_a_second_bury_is_refused_unless_it_is_a_repeat(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.bury(claim, FAILURE)
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.bury(claim, FAILURE)

    assert queue.everything() == before


def test_a_repeat_is_done_already(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.bury(claim, FAILURE)
    before = queue.everything()

    queue.coordinator.bury(claim, FAILURE, repeat=True)

    assert queue.everything() == before


def test_a_repeat_is_done_already_when_a_person_requeued_the_job_meanwhile(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.bury(claim, FAILURE)
    queue.coordinator.requeue([claim.job.id], caller="user:1", reason="fixed")
    before = queue.everything()

    queue.coordinator.bury(claim, FAILURE, repeat=True)

    assert queue.everything() == before


def test_a_repeat_whose_first_call_never_came_through_buries(queue: Queue) -> None:
    (claim,) = queue.claimed()

    queue.coordinator.bury(claim, FAILURE, repeat=True)

    assert queue.places() == {claim.job.id: "dead"}


def test_a_repeat_is_refused_when_the_sweeper_buried_the_job_instead(make_queue: Callable[..., Queue]) -> None:
    queue = make_queue(MAX_CRASHES=1)
    (claim,) = queue.claimed()
    queue.lapse()
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.bury(claim, FAILURE, repeat=True)

    assert queue.everything() == before


def test_a_lost_reply_buries_once(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.eat_replies()

    queue.coordinator.bury(claim, FAILURE)

    assert queue.state()["dead"] == [claim.job.id]
    assert queue.state()["causes"] == {CAUSE: 1}


def test_a_lapsed_lease_that_nobody_reclaimed_still_stands(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.clock.advance(60)

    queue.coordinator.bury(claim, FAILURE)

    assert queue.places() == {claim.job.id: "dead"}


def test_nothing_but_a_person_takes_a_job_from_the_dead(queue: Queue) -> None:
    (job,) = queue.buried()
    queue.coordinator.reclaim()
    before = queue.state()

    queue.clock.advance(9)
    queue.coordinator.promote()
    queue.coordinator.reclaim()
    queue.coordinator.pull("worker", 100)

    assert queue.state() == before
    assert queue.places() == {job.id: "dead"}
