"""pause: the picker skips a lane."""

import json

import pytest

from priqueue import InvalidLane
from tests.support.queues import START_MS, Queue

BY = {"caller": "user:1", "reason": "the mail server is away"}


def test_nothing_is_claimed_from_a_paused_lane_and_its_jobs_stay(queue: Queue) -> None:
    (high,) = queue.enqueue(lane="high")
    (low,) = queue.enqueue(lane="low")
    queue.register("w")

    queue.coordinator.pause("high", **BY)

    claims = queue.coordinator.pull("w", 9)
    assert [claim.job for claim in claims] == [low]
    assert queue.state() == queue.expected(*claims, ready={"high": [high.id]})


def test_it_keeps_who_why_and_since_when(queue: Queue) -> None:
    queue.coordinator.pause("high", **BY)

    record = json.loads(queue.raw.hget(queue.keys.paused, "high"))
    assert record == {"caller": "user:1", "reason": "the mail server is away", "since_ms": START_MS}


def test_a_pause_for_a_time_keeps_its_end(queue: Queue) -> None:
    queue.coordinator.pause("high", **BY, lasts_s=90)

    assert json.loads(queue.raw.hget(queue.keys.paused, "high"))["until_ms"] == START_MS + 90_000


def test_it_leaves_an_event(queue: Queue) -> None:
    queue.coordinator.pause("high", **BY)

    assert queue.event() == {
        "action": "pause", "caller": "user:1", "lane": "high", "outcome": "paused",
        "reason": "the mail server is away", "at": str(START_MS),
    }  # fmt: skip


def test_what_is_in_flight_is_settled_as_usual(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.pause("default", **BY)

    queue.coordinator.ack(claim)

    assert queue.state() == queue.expected()


def test_what_is_due_is_promoted_as_usual(queue: Queue) -> None:
    (job,) = queue.enqueue(delay_ms=1_000)
    queue.coordinator.pause("default", **BY)
    queue.clock.advance(1)

    queue.coordinator.promote()

    assert queue.places() == {job.id: "ready"}


def test_again_the_newer_reason_counts(queue: Queue) -> None:
    queue.coordinator.pause("high", **BY, lasts_s=90)

    queue.coordinator.pause("high", caller="user:2", reason="longer")

    record = json.loads(queue.raw.hget(queue.keys.paused, "high"))
    assert record == {"caller": "user:2", "reason": "longer", "since_ms": START_MS}


def test_a_lost_reply_leaves_one_event(queue: Queue) -> None:
    queue.eat_replies()

    queue.coordinator.pause("high", **BY)

    assert queue.events() == [("pause", "user:1", "")]


def test_a_lane_that_is_not_configured_is_refused_and_nothing_is_written(queue: Queue) -> None:
    with pytest.raises(InvalidLane, match="choose from high, default, low"):
        queue.coordinator.pause("hgih", **BY)

    assert queue.everything() == {}


def test_a_pause_ends_no_earlier_than_its_time_and_needs_the_ticker(queue: Queue) -> None:
    queue.enqueue()
    queue.register("w")
    queue.coordinator.pause("default", **BY, lasts_s=1)
    queue.clock.advance(3_600)

    assert queue.coordinator.pull("w") == []
