"""promote: delayed → ready, what is due."""

import pytest

from tests.support.queues import FAILURE, HANDLER, START_MS, Queue


def test_a_due_job_goes_to_the_tail_of_its_lane(queue: Queue) -> None:
    (waiting,) = queue.enqueue()
    (delayed,) = queue.enqueue(delay_ms=2_000)
    queue.clock.advance(2)

    assert queue.coordinator.promote() == 1

    ready = {"default": [waiting.id, delayed.id]}
    assert queue.state() == queue.expected(ready=ready, since={delayed.id: START_MS + 2_000})


def test_a_job_that_is_not_due_stays_and_nothing_changes(queue: Queue) -> None:
    queue.enqueue(delay_ms=2_000)
    queue.clock.advance(1.999)
    before = queue.everything()

    assert queue.coordinator.promote() == 0

    assert queue.everything() == before


def test_jobs_come_in_the_order_of_their_due_times(queue: Queue) -> None:
    (late,) = queue.enqueue(delay_ms=3_000)
    (early,) = queue.enqueue(delay_ms=1_000)
    (middle,) = queue.enqueue(delay_ms=2_000)
    queue.clock.advance(10)

    queue.coordinator.promote()

    assert queue.state()["ready"]["default"] == [early.id, middle.id, late.id]


def test_jobs_of_one_due_time_come_in_the_order_they_were_enqueued(queue: Queue) -> None:
    jobs = queue.enqueue(number=20, delay_ms=1_000)
    queue.clock.advance(1)

    queue.coordinator.promote()

    assert queue.state()["ready"]["default"] == [job.id for job in jobs]


def test_a_limit_holds_over_all_lanes_and_the_higher_lanes_come_first(queue: Queue) -> None:
    low = queue.enqueue(number=2, lane="low", delay_ms=500)
    high = queue.enqueue(number=2, lane="high", delay_ms=1_000)
    queue.clock.advance(1)

    assert queue.coordinator.promote(limit=3) == 3

    state = queue.state()
    assert state["ready"] == {"high": [job.id for job in high], "default": [], "low": [low[0].id]}
    assert state["delayed"] == {"high": {}, "default": {}, "low": {low[1].id: START_MS + 500}}


def test_a_batch_is_never_larger_than_a_thousand_whatever_is_asked(queue: Queue) -> None:
    queue.enqueue(number=1_050, delay_ms=1)
    queue.clock.advance(1)

    assert queue.coordinator.promote(limit=5_000) == 1_000


def test_a_second_ticker_finds_nothing_left(queue: Queue) -> None:
    queue.enqueue(number=3, delay_ms=1_000)
    queue.clock.advance(1)
    queue.coordinator.promote()
    before = queue.everything()

    assert queue.coordinator.promote() == 0

    assert queue.everything() == before


def test_a_lost_reply_moves_each_job_once(queue: Queue) -> None:
    jobs = queue.enqueue(number=3, delay_ms=1_000)
    queue.clock.advance(1)
    queue.eat_replies()

    queue.coordinator.promote()

    assert queue.state()["ready"]["default"] == [job.id for job in jobs]
    assert queue.counters()["promoted:default"] == 3


def test_each_job_leaves_an_event_and_is_counted(queue: Queue) -> None:
    (job,) = queue.enqueue(lane="low", delay_ms=1_000, correlation_id="request-7")
    queue.clock.advance(1)

    queue.coordinator.promote()

    assert queue.event() == {
        "action": "promote", "caller": "ticker", "job": job.id, "handler": HANDLER, "lane": "low",
        "outcome": "ready", "correlation_id": "request-7", "at": str(START_MS + 1_000),
    }  # fmt: skip
    assert queue.counters() == {"enqueued:low": 1, "promoted:low": 1}


def test_it_leaves_one_token_in_each_lane_that_got_work(queue: Queue) -> None:
    for lane in ("high", "low"):
        queue.enqueue(number=2, lane=lane, delay_ms=1_000)
    queue.raw.delete(queue.keys.wake_ticker)
    queue.clock.advance(1)

    queue.coordinator.promote()

    assert queue.tokens() == {"high": 1, "low": 1}


def test_a_paused_lane_gets_its_jobs_and_no_token(queue: Queue) -> None:
    (job,) = queue.enqueue(lane="low", delay_ms=1_000)
    queue.raw.delete(queue.keys.wake_ticker)
    queue.coordinator.pause("low", caller="user:1", reason="quiet")
    queue.clock.advance(1)

    queue.coordinator.promote()

    assert queue.state()["ready"]["low"] == [job.id]
    assert queue.tokens() == {}


def test_a_retried_job_comes_back_with_its_failures_and_its_trail(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.retry(claim, FAILURE, delay_s=2)
    queue.clock.advance(2)

    queue.coordinator.promote()

    (again,) = queue.coordinator.pull("worker")
    assert (again.job, again.attempt) == (claim.job, 2)
    assert queue.trail(claim.job.id) == [("ValueError", "here", False)]


@pytest.mark.parametrize("kind", ["lane", "delayed"])
def test_a_lane_with_a_foreign_value_is_counted_and_the_others_go_on(queue: Queue, kind: str) -> None:
    (job,) = queue.enqueue(lane="low", delay_ms=1_000)
    if kind == "lane":
        queue.enqueue(lane="high", delay_ms=1_000)
    queue.raw.set(getattr(queue.keys, kind)("high"), "foreign")
    queue.clock.advance(1)

    assert queue.coordinator.promote() == 1

    assert queue.raw.lrange(queue.keys.lane("low"), 0, -1) == [job.id]
    assert queue.counters()["foreign:high"] == 1


def test_a_due_job_behind_a_foreign_lane_is_kept_until_the_lane_is_whole(queue: Queue) -> None:
    (job,) = queue.enqueue(lane="high", delay_ms=1_000)
    queue.raw.set(queue.keys.lane("high"), "foreign")
    queue.clock.advance(1)
    queue.coordinator.promote()
    queue.raw.delete(queue.keys.lane("high"))

    assert queue.coordinator.promote() == 1

    assert queue.state()["ready"]["high"] == [job.id]
