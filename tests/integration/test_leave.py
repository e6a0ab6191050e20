"""leave: a worker says good-bye."""

from tests.support.queues import START_MS, Queue


def _records(queue: Queue) -> list[str]:
    """Return the workers that any of the records still knows."""
    names = (queue.keys.workers, queue.keys.heartbeats, queue.keys.slots, queue.keys.claims)
    return sorted({worker for name in names for worker in queue.raw.hkeys(name)})


def test_a_worker_that_holds_nothing_is_gone_from_every_record(queue: Queue) -> None:
    queue.register("other")
    (claim,) = queue.claimed()
    queue.coordinator.ack(claim)

    assert queue.coordinator.leave("worker") is True

    assert _records(queue) == ["other"]


def test_it_leaves_an_event(queue: Queue) -> None:
    queue.register("w")

    queue.coordinator.leave("w")

    assert queue.event() == {
        "action": "leave", "caller": "worker:w", "outcome": "gone", "at": str(START_MS),
    }  # fmt: skip


def test_a_worker_that_still_holds_leases_is_kept_and_nothing_changes(queue: Queue) -> None:
    queue.claimed()
    before = queue.everything()

    assert queue.coordinator.leave("worker") is False

    assert queue.everything() == before


def test_the_leases_of_one_that_could_not_leave_are_reclaimed(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.leave("worker")

    queue.lapse()

    assert queue.places() == {claim.job.id: "ready"}


def test_again_it_is_gone_already_and_says_so_without_a_second_event(queue: Queue) -> None:
    queue.register("w")
    queue.coordinator.leave("w")
    before = queue.everything()

    assert queue.coordinator.leave("w") is True

    assert queue.everything() == before


def test_a_lost_reply_leaves_one_event(queue: Queue) -> None:
    queue.register("w")
    queue.eat_replies()

    assert queue.coordinator.leave("w") is True

    assert [action for action, _, _ in queue.events()] == ["register", "leave"]
