"""register: a worker says what it is and may claim."""

import json

import pytest

from priqueue import InvalidLane
from priqueue.exceptions import InvalidCaller
from tests.support.queues import START_MS, Queue


def test_a_worker_is_known_with_its_lanes_in_priority_order(queue: Queue) -> None:
    queue.coordinator.register("w", lanes=("low", "high"), concurrency=3, host="here", pid=7)

    record = json.loads(queue.raw.hget(queue.keys.workers, "w"))
    assert record == {
        "lanes": ["high", "low"], "concurrency": 3, "host": "here", "pid": 7, "since_ms": START_MS,
    }  # fmt: skip
    assert queue.raw.hgetall(queue.keys.heartbeats) == {"w": str(START_MS)}
    assert queue.state() == queue.expected()


def test_it_leaves_an_event(queue: Queue) -> None:
    queue.coordinator.register("w", lanes=["high"], concurrency=3)

    event = queue.event()
    assert (event["action"], event["caller"]) == ("register", "worker:w")
    assert json.loads(event["input"]) == {"lanes": ["high"], "concurrency": 3}


def test_again_under_the_same_id_the_new_record_counts(queue: Queue) -> None:
    queue.register("w", ["high"], 2)
    queue.coordinator.drain("w", caller="user:1")

    queue.register("w", ["low"], 5)

    record = json.loads(queue.raw.hget(queue.keys.workers, "w"))
    assert record == {"lanes": ["low"], "concurrency": 5, "since_ms": START_MS}


def test_again_under_the_same_id_the_leases_held_still_count(queue: Queue) -> None:
    queue.enqueue(number=3)
    queue.register("w", concurrency=2)
    held = queue.coordinator.pull("w", 2)

    queue.register("w", concurrency=2)

    assert queue.coordinator.pull("w", 2) == []
    assert queue.state()["slots"] == {"w": len(held)}


@pytest.mark.parametrize("lanes", [["hgih"], ["high", "hgih"], [], ["HIGH"], [""]])
def test_a_lane_that_is_not_configured_is_refused_and_nothing_is_written(queue: Queue, lanes: list[str]) -> None:
    with pytest.raises(InvalidLane, match="choose from high, default, low"):
        queue.coordinator.register("w", lanes=lanes, concurrency=1)

    assert queue.everything() == {}


@pytest.mark.parametrize("worker_id", ["", "two words", 'quo"te', "back\\slash", "new\nline"])
def test_a_worker_id_that_could_break_a_record_is_refused(queue: Queue, worker_id: str) -> None:
    with pytest.raises(InvalidCaller, match="worker_id"):
        queue.coordinator.register(worker_id, lanes=["high"], concurrency=1)

    assert queue.everything() == {}
