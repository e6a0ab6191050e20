"""release: in flight → ready at the head of its lane, or delayed; no attempt is counted."""

from dataclasses import replace

import pytest

from priqueue import LeaseLost, PriqueueError
from tests.support.queues import FAILURE, HANDLER, START_MS, Queue


def test_a_released_job_is_the_next_of_its_lane(queue: Queue) -> None:
    (claim,) = queue.claimed(lane="low")
    (waiting,) = queue.enqueue(lane="low")
    queue.clock.advance(1)

    queue.coordinator.release(claim)

    job_id = claim.job.id
    ready = {"low": [job_id, waiting.id]}
    assert queue.state() == queue.expected(ready=ready, since={job_id: START_MS + 1_000})


def test_many_keep_their_order_at_the_head(queue: Queue) -> None:
    claims = queue.claimed(number=3)
    (waiting,) = queue.enqueue()

    queue.coordinator.release(*claims)

    ids = [claim.job.id for claim in claims]
    ready = {"default": [*ids, waiting.id]}
    assert queue.state() == queue.expected(ready=ready, since=dict.fromkeys(ids, START_MS))


def test_a_release_counts_neither_a_failure_nor_a_crash(queue: Queue) -> None:
    for _ in range(10):
        (claim,) = queue.coordinator.pull("worker") if queue.places() else queue.claimed()
        queue.coordinator.release(claim)

    (claim,) = queue.coordinator.pull("worker")

    assert (claim.attempt, claim.crashes) == (1, 0)
    assert queue.trail(claim.job.id) == []


def test_a_release_leaves_the_failures_so_far(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.retry(claim, FAILURE, delay_s=0)
    queue.coordinator.promote()
    (claim,) = queue.coordinator.pull("worker")

    queue.coordinator.release(claim)

    assert queue.state()["attempts"] == {claim.job.id: "1 0"}


def test_with_a_wait_the_job_is_delayed_and_the_ticker_hears_of_it(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.raw.delete(queue.keys.wake("default"))

    queue.coordinator.release(claim, delay_s=30)

    assert queue.state() == queue.expected(delayed={"default": {claim.job.id: START_MS + 30_000}})
    assert queue.tokens() == {"ticker": 1}


def test_it_leaves_an_event_with_its_reason_and_is_counted(queue: Queue) -> None:
    (claim,) = queue.claimed(lane="low", correlation_id="request-7")

    queue.coordinator.release(claim, reason="shutting down")

    assert queue.event() == {
        "action": "release", "caller": "worker:worker", "job": claim.job.id, "handler": HANDLER,
        "lane": "low", "outcome": "ready", "reason": "shutting down", "correlation_id": "request-7",
        "at": str(START_MS),
    }  # fmt: skip
    assert queue.counters()["released:low"] == 1


def test_it_wakes_a_worker_of_the_lane(queue: Queue) -> None:
    claims = queue.claimed(number=2)
    queue.raw.delete(queue.keys.wake("default"))

    queue.coordinator.release(*claims)

    assert queue.tokens() == {"default": 1}


def test_into_a_paused_lane_it_wakes_nobody(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.pause("default", caller="user:1", reason="quiet")
    queue.raw.delete(queue.keys.wake("default"))

    queue.coordinator.release(claim)

    assert queue.tokens() == {}


def test_a_late_release_is_refused_and_changes_nothing(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.lapse()
    before = queue.everything()

    with pytest.raises(LeaseLost, match=claim.job.id):
        queue.coordinator.release(claim)

    assert queue.everything() == before


def test_a_release_for_a_job_that_another_worker_holds_by_now_is_refused(queue: Queue) -> None:
    (old,) = queue.claimed(worker_id="a")
    queue.register("b")
    queue.lapse()
    queue.coordinator.pull("b")
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.release(old)

    assert queue.everything() == before


@pytest.mark.parametrize("repeat", [False, True])
def test_a_late_release_does_not_bring_a_dead_job_back(queue: Queue, repeat: bool) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.bury(claim, FAILURE)
    before = queue.everything()

    try:
        queue.coordinator.release(claim, repeat=repeat)
    except LeaseLost:
        assert not repeat

    assert queue.everything() == before


@pytest.mark.parametrize("repeat", [False, True])
def test_a_late_release_does_not_bring_a_purged_job_back(queue: Queue, repeat: bool) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.bury(claim, FAILURE)
    queue.coordinator.purge([claim.job.id], caller="user:1", reason="spam")
    before = queue.everything()

    try:
        queue.coordinator.release(claim, repeat=repeat)
    except LeaseLost:
        assert not repeat

    assert queue.everything() == before


def test_one_lost_lease_is_named_and_does_not_hold_up_the_others(queue: Queue) -> None:
    lost, held = queue.claimed(number=2)
    queue.coordinator.ack(lost)

    with pytest.raises(LeaseLost) as caught:
        queue.coordinator.release(lost, held)

    assert lost.job.id in str(caught.value)
    assert held.job.id not in str(caught.value)
    assert queue.places() == {held.job.id: "ready"}


def test_a_second_release_is_refused_unless_it_is_a_repeat(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.release(claim)
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.release(claim)

    assert queue.everything() == before


def test_a_repeat_is_done_already(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.release(claim)
    before = queue.everything()

    queue.coordinator.release(claim, repeat=True)

    assert queue.everything() == before


def test_a_repeat_leaves_a_lease_that_the_same_worker_took_anew(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.release(claim)
    (again,) = queue.coordinator.pull("worker")

    queue.coordinator.release(claim, repeat=True)

    assert queue.state() == queue.expected(again)


def test_a_repeat_whose_first_call_never_came_through_releases(queue: Queue) -> None:
    (claim,) = queue.claimed()

    queue.coordinator.release(claim, repeat=True)

    assert queue.places() == {claim.job.id: "ready"}


def test_a_lost_reply_releases_once(queue: Queue) -> None:
    claims = queue.claimed(number=3)
    queue.eat_replies()

    queue.coordinator.release(*claims)

    assert queue.state()["ready"]["default"] == [claim.job.id for claim in claims]
    assert queue.counters()["released:default"] == 3


def test_a_lapsed_lease_that_nobody_reclaimed_still_stands(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.clock.advance(60)

    queue.coordinator.release(claim)

    assert queue.places() == {claim.job.id: "ready"}


def test_a_forged_token_is_refused(queue: Queue) -> None:
    (claim,) = queue.claimed()
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.release(replace(claim, token="forged"))

    assert queue.everything() == before


def test_a_foreign_value_at_the_lane_leaves_the_job_in_flight(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.raw.set(queue.keys.lane("default"), "foreign")
    before = queue.everything()

    with pytest.raises(PriqueueError, match="WRONGTYPE"):
        queue.coordinator.release(claim)

    assert queue.everything() == before
