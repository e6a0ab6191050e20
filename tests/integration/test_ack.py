"""ack: in flight → gone."""

from dataclasses import replace

import pytest

from priqueue import LeaseLost, PriqueueError
from tests.support.queues import FAILURE, HANDLER, START_MS, Queue


def test_an_acked_job_is_gone_and_its_slot_is_free(queue: Queue) -> None:
    (claim,) = queue.claimed()

    queue.coordinator.ack(claim)

    assert queue.state() == queue.expected()


def test_an_ack_touches_no_other_job(queue: Queue) -> None:
    done, held = queue.claimed(number=2)
    (waiting,) = queue.enqueue()

    queue.coordinator.ack(done)

    assert queue.state() == queue.expected(held, ready={"default": [waiting.id]})


def test_a_lease_that_is_named_twice_in_a_call_ends_once(queue: Queue) -> None:
    done, held = queue.claimed(number=2)

    turn = queue.coordinator.turn("worker", 0, [done, done])

    assert turn.lost == [done]
    assert queue.state() == queue.expected(held)
    assert queue.counters()["acked:default"] == 1


def test_an_ack_that_fails_tells_nothing_and_counts_nothing(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.raw.hset(queue.keys.slots, "worker", "no number")
    before = queue.everything()

    for _ in range(3):
        with pytest.raises(PriqueueError, match="not an integer"):
            queue.coordinator.turn("worker", 1, [claim], repeat=True)

    assert queue.counters().get("acked:default") is None
    assert "ack" not in [action for action, _, _ in queue.events()]
    assert queue.everything()[queue.keys.inflight] == before[queue.keys.inflight]


def test_it_leaves_an_event_and_is_counted(queue: Queue) -> None:
    (claim,) = queue.claimed(lane="low", correlation_id="request-7")

    queue.coordinator.ack(claim)

    assert queue.event() == {
        "action": "ack", "caller": "worker:worker", "job": claim.job.id, "handler": HANDLER, "lane": "low",
        "outcome": "done", "correlation_id": "request-7", "at": str(START_MS),
    }  # fmt: skip
    assert queue.counters()["acked:low"] == 1


def test_a_job_that_failed_before_leaves_neither_trail_nor_attempts(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.retry(claim, FAILURE, delay_s=0)
    queue.coordinator.promote()
    (claim,) = queue.coordinator.pull("worker")

    queue.coordinator.ack(claim)

    assert queue.state() == queue.expected()
    assert queue.trail(claim.job.id) == []


def test_a_late_ack_is_refused_and_changes_nothing(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.lapse()
    before = queue.everything()

    with pytest.raises(LeaseLost, match=claim.job.id):
        queue.coordinator.ack(claim)

    assert queue.everything() == before


def test_an_ack_for_a_job_that_another_worker_holds_by_now_is_refused(queue: Queue) -> None:
    (old,) = queue.claimed(worker_id="a")
    queue.register("b")
    queue.lapse()
    (new,) = queue.coordinator.pull("b")
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.ack(old)

    assert queue.everything() == before
    assert queue.places() == {new.job.id: "in flight"}


def test_a_forged_token_is_refused(queue: Queue) -> None:
    (claim,) = queue.claimed()
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.ack(replace(claim, token="forged"))

    assert queue.everything() == before


def test_a_second_ack_is_refused_unless_it_is_a_repeat(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.ack(claim)
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.ack(claim)

    assert queue.everything() == before


def test_a_repeat_is_done_already(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.ack(claim)
    before = queue.everything()

    queue.coordinator.ack(claim, repeat=True)

    assert queue.everything() == before


def test_a_repeat_whose_first_call_never_came_through_acks(queue: Queue) -> None:
    (claim,) = queue.claimed()

    queue.coordinator.ack(claim, repeat=True)

    assert queue.state() == queue.expected()


def test_a_repeat_is_refused_when_the_job_was_reclaimed_instead(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.lapse()
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.ack(claim, repeat=True)

    assert queue.everything() == before


def test_a_lost_reply_acks_once(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.eat_replies()

    queue.coordinator.ack(claim)

    assert queue.state() == queue.expected()
    assert queue.counters()["acked:default"] == 1


def test_a_lapsed_lease_that_nobody_reclaimed_still_stands(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.clock.advance(3_600)

    queue.coordinator.ack(claim)

    assert queue.state() == queue.expected()


def test_a_late_ack_does_not_bring_a_dead_job_back_nor_let_it_go(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.bury(claim, FAILURE)
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.ack(claim)

    assert queue.everything() == before


def test_a_late_ack_does_not_bring_a_purged_job_back(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.bury(claim, FAILURE)
    queue.coordinator.purge([claim.job.id], caller="user:1", reason="spam")
    before = queue.everything()

    with pytest.raises(LeaseLost):
        queue.coordinator.ack(claim)

    assert queue.everything() == before


def test_an_ack_of_a_job_that_was_never_there_is_refused(queue: Queue) -> None:
    (claim,) = queue.claimed()
    before = queue.everything()

    with pytest.raises(LeaseLost, match="nowhere"):
        queue.coordinator.ack(replace(claim, job=replace(claim.job, id="nowhere")))

    assert queue.everything() == before
