"""drain: a worker is asked to claim no more."""

import json

import pytest

from priqueue import WorkerDraining
from tests.support.queues import START_MS, Queue

BY = {"caller": "user:1", "reason": "a new version"}


def test_a_draining_worker_claims_no_more_and_the_job_stays(queue: Queue) -> None:
    (job,) = queue.enqueue()
    queue.register("w")

    assert queue.coordinator.drain("w", **BY) is True

    with pytest.raises(WorkerDraining):
        queue.coordinator.pull("w")
    assert queue.places() == {job.id: "ready"}


def test_its_record_says_so_and_is_else_as_it_was(queue: Queue) -> None:
    queue.coordinator.register("w", lanes=["low"], concurrency=3, host="here")

    queue.coordinator.drain("w", **BY)

    record = json.loads(queue.raw.hget(queue.keys.workers, "w"))
    assert record == {
        "lanes": ["low"], "concurrency": 3, "host": "here", "since_ms": START_MS, "drain": True,
    }  # fmt: skip


def test_it_settles_and_beats_what_it_holds(queue: Queue) -> None:
    first, second = queue.claimed(number=2)
    queue.coordinator.drain("worker", **BY)

    assert queue.coordinator.beat("worker", [first, second]) == []
    turn = queue.coordinator.turn("worker", 5, [first, second])

    assert (turn.state, turn.lost) == ("draining", [])
    assert queue.state() == queue.expected()


def test_the_other_workers_go_on(queue: Queue) -> None:
    queue.enqueue()
    queue.register("a")
    queue.register("b")

    queue.coordinator.drain("a", **BY)

    assert len(queue.coordinator.pull("b")) == 1


def test_it_wakes_the_worker_in_each_of_its_lanes(queue: Queue) -> None:
    queue.register("w", ["high", "low"])

    queue.coordinator.drain("w", **BY)

    assert queue.tokens() == {"high": 1, "low": 1}


def test_it_wakes_the_worker_even_where_its_lane_is_paused(queue: Queue) -> None:
    queue.register("w", ["low"])
    queue.coordinator.pause("low", caller="user:1", reason="quiet")

    queue.coordinator.drain("w", **BY)

    assert queue.tokens() == {"low": 1}


def test_it_leaves_an_event_that_says_who_and_why(queue: Queue) -> None:
    queue.register("w")

    queue.coordinator.drain("w", **BY)

    assert queue.event() == {
        "action": "drain", "caller": "user:1", "input": "w", "outcome": "draining",
        "reason": "a new version", "at": str(START_MS),
    }  # fmt: skip


def test_an_unknown_worker_is_refused_and_nothing_changes(queue: Queue) -> None:
    assert queue.coordinator.drain("nobody", **BY) is False

    assert queue.everything() == {}


def test_again_it_is_still_draining(queue: Queue) -> None:
    queue.register("w")
    queue.coordinator.drain("w", **BY)

    assert queue.coordinator.drain("w", **BY) is True

    assert queue.coordinator.turn("w", 1).state == "draining"


def test_a_lost_reply_leaves_one_event(queue: Queue) -> None:
    queue.register("w")
    queue.eat_replies()

    assert queue.coordinator.drain("w", **BY) is True

    assert [action for action, _, _ in queue.events()] == ["register", "drain"]
