"""forget: workers that have not been heard of for ten minutes leave the records."""

from priqueue.sweeper import Sweeper
from tests.support.queues import START_MS, Queue

TEN_MINUTES_S = 600


def test_a_worker_silent_for_longer_than_ten_minutes_is_gone_from_every_record(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.ack(claim)
    queue.clock.advance(TEN_MINUTES_S + 0.001)

    assert queue.coordinator.forget(["worker"]) == 1

    for name in (queue.keys.workers, queue.keys.heartbeats, queue.keys.slots, queue.keys.claims):
        assert queue.raw.hgetall(name) == {}


def test_one_silent_for_ten_minutes_is_kept_and_nothing_changes(queue: Queue) -> None:
    queue.register("w")
    queue.clock.advance(TEN_MINUTES_S)
    before = queue.everything()

    assert queue.coordinator.forget(["w"]) == 0

    assert queue.everything() == before


def test_one_that_beat_meanwhile_is_kept(queue: Queue) -> None:
    queue.register("gone")
    queue.register("back")
    queue.clock.advance(TEN_MINUTES_S + 1)
    silent = queue.inspector.silent_workers()
    queue.coordinator.beat("back", [])

    assert queue.coordinator.forget(silent) == 1

    assert queue.raw.hkeys(queue.keys.workers) == ["back"]


def test_one_that_still_holds_leases_is_kept_until_they_are_reclaimed(queue: Queue) -> None:
    queue.claimed()
    queue.clock.advance(TEN_MINUTES_S + 1)

    kept = queue.coordinator.forget(["worker"])
    queue.coordinator.reclaim()
    forgotten = queue.coordinator.forget(["worker"])

    assert (kept, forgotten) == (0, 1)


def test_it_leaves_an_event(queue: Queue) -> None:
    queue.register("w")
    queue.clock.advance(TEN_MINUTES_S + 1)

    queue.coordinator.forget(["w"])

    assert queue.event() == {
        "action": "forget", "caller": "sweeper", "input": "w", "outcome": "gone",
        "at": str(START_MS + 601_000),
    }  # fmt: skip


def test_one_that_is_not_known_is_not_counted(queue: Queue) -> None:
    queue.clock.advance(TEN_MINUTES_S + 1)

    assert queue.coordinator.forget(["nobody"]) == 0

    assert queue.everything() == {}


def test_again_it_finds_nothing_to_do(queue: Queue) -> None:
    queue.register("w")
    queue.clock.advance(TEN_MINUTES_S + 1)
    queue.coordinator.forget(["w"])
    before = queue.everything()

    assert queue.coordinator.forget(["w"]) == 0

    assert queue.everything() == before


def test_the_sweeper_forgets_who_is_silent(queue: Queue) -> None:
    queue.register("gone")
    queue.clock.advance(TEN_MINUTES_S + 1)
    queue.register("here")

    Sweeper(queue.coordinator, queue.inspector).run_once()

    assert queue.raw.hkeys(queue.keys.workers) == ["here"]
