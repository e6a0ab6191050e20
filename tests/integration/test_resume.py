"""resume: the picker takes from a lane again."""

from priqueue.ticker import Ticker
from tests.support.queues import START_MS, Queue

BY = {"caller": "user:2", "reason": "it is back"}


def _pause(queue: Queue, lasts_s: float | None = None) -> None:
    queue.coordinator.pause("default", caller="user:1", reason="away", lasts_s=lasts_s)


def test_a_resumed_lane_is_claimed_from_again(queue: Queue) -> None:
    (job,) = queue.enqueue()
    queue.register("w")
    _pause(queue)

    assert queue.coordinator.resume("default", **BY) is True

    assert [claim.job for claim in queue.coordinator.pull("w")] == [job]
    assert queue.raw.hgetall(queue.keys.paused) == {}


def test_it_leaves_an_event(queue: Queue) -> None:
    _pause(queue)

    queue.coordinator.resume("default", **BY)

    assert queue.event() == {
        "action": "resume", "caller": "user:2", "lane": "default", "outcome": "resumed",
        "reason": "it is back", "at": str(START_MS),
    }  # fmt: skip


def test_where_there_is_work_it_wakes_a_worker(queue: Queue) -> None:
    _pause(queue)
    queue.enqueue()

    queue.coordinator.resume("default", **BY)

    assert queue.tokens() == {"default": 1}


def test_where_there_is_none_it_wakes_nobody(queue: Queue) -> None:
    _pause(queue)

    queue.coordinator.resume("default", **BY)

    assert queue.tokens() == {}


def test_a_lane_that_is_not_paused_is_left_alone(queue: Queue) -> None:
    queue.enqueue()
    before = queue.everything()

    assert queue.coordinator.resume("default", **BY) is False

    assert queue.everything() == before


def test_a_lost_reply_resumes_once_and_still_says_so(queue: Queue) -> None:
    _pause(queue)
    queue.eat_replies()

    assert queue.coordinator.resume("default", **BY) is True

    assert [action for action, _, _ in queue.events()] == ["pause", "resume"]


def test_one_millisecond_early_a_timed_pause_is_not_over(queue: Queue) -> None:
    _pause(queue, lasts_s=10)
    queue.clock.advance(9.999)
    before = queue.everything()

    assert queue.coordinator.resume("default", **BY, if_over=True) is False

    assert queue.everything() == before


def test_when_its_time_is_over_a_pause_can_be_ended(queue: Queue) -> None:
    _pause(queue, lasts_s=10)
    queue.clock.advance(10)

    assert queue.coordinator.resume("default", **BY, if_over=True) is True

    assert queue.raw.hgetall(queue.keys.paused) == {}


def test_a_pause_without_an_end_is_never_over(queue: Queue) -> None:
    _pause(queue)
    queue.clock.advance(1_000_000)

    assert queue.coordinator.resume("default", **BY, if_over=True) is False


def test_the_ticker_ends_what_is_over_and_nothing_else(queue: Queue) -> None:
    _pause(queue, lasts_s=10)
    queue.coordinator.pause("low", caller="user:1", reason="longer", lasts_s=20)
    queue.coordinator.pause("high", caller="user:1", reason="open end")
    queue.clock.advance(10)

    Ticker(queue.coordinator, queue.inspector).run_once()

    assert queue.raw.hkeys(queue.keys.paused) == ["low", "high"]
    assert queue.events()[-1] == ("resume", "ticker", "")
