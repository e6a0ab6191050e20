"""wake: who took a token and does not claim puts it back."""

from tests.support.queues import Queue


def _took_all(queue: Queue) -> None:
    for lane in queue.settings.lane_names:
        queue.raw.delete(queue.keys.wake(lane))


def test_lanes_that_hold_work_get_their_token_back(queue: Queue) -> None:
    queue.enqueue(lane="high")
    queue.enqueue(lane="low")
    _took_all(queue)

    queue.coordinator.wake(queue.settings.lane_names)

    assert queue.tokens() == {"high": 1, "low": 1}


def test_a_token_that_is_there_is_enough(queue: Queue) -> None:
    queue.enqueue()

    queue.coordinator.wake(["default"])

    assert queue.tokens() == {"default": 1}


def test_a_lane_that_was_not_named_gets_none(queue: Queue) -> None:
    queue.enqueue(lane="high")
    _took_all(queue)

    queue.coordinator.wake(["default", "low"])

    assert queue.tokens() == {}


def test_an_empty_lane_gets_none(queue: Queue) -> None:
    queue.coordinator.wake(queue.settings.lane_names)

    assert queue.everything() == {}


def test_a_paused_lane_gets_none(queue: Queue) -> None:
    queue.enqueue()
    queue.coordinator.pause("default", caller="user:1", reason="quiet")
    _took_all(queue)

    queue.coordinator.wake(["default"])

    assert queue.tokens() == {}


def test_a_foreign_value_at_one_lane_does_not_keep_the_others_asleep(queue: Queue) -> None:
    queue.enqueue(lane="low")
    _took_all(queue)
    queue.raw.set(queue.keys.lane("high"), "foreign")

    queue.coordinator.wake(queue.settings.lane_names)

    assert queue.tokens() == {"low": 1}


def test_it_moves_no_job_and_leaves_no_event(queue: Queue) -> None:
    queue.enqueue()
    before = queue.state(), queue.events()

    queue.coordinator.wake(["default"])

    assert (queue.state(), queue.events()) == before
