"""purge: dead → gone, by a person."""

import pytest

from tests.support.queues import CAUSE, FAILURE, HANDLER, START_MS, Queue

BY = {"caller": "user:1", "reason": "spam"}


def test_a_purged_job_is_gone_with_its_trail_and_its_letter(queue: Queue) -> None:
    (job,) = queue.buried()

    assert queue.coordinator.purge([job.id], **BY) == [job.id]

    assert queue.state() == queue.expected(dead=[job.id])
    assert queue.trail(job.id) == []
    assert queue.raw.zrange(queue.keys.cause(CAUSE), 0, -1) == []
    assert queue.raw.hgetall(queue.keys.holes) == {job.id: "1"}


def test_the_other_letters_stay(queue: Queue) -> None:
    first, second = queue.buried(number=2)

    queue.coordinator.purge([first.id], **BY)

    assert queue.places() == {second.id: "dead"}
    assert queue.state()["causes"] == {CAUSE: 1}


def test_it_leaves_an_event_that_says_who_and_why_and_is_counted(queue: Queue) -> None:
    (job,) = queue.buried(lane="low", correlation_id="request-7")

    queue.coordinator.purge([job.id], **BY)

    assert queue.event() == {
        "action": "purge", "caller": "user:1", "job": job.id, "handler": HANDLER, "lane": "low",
        "outcome": "gone", "reason": "spam", "correlation_id": "request-7", "at": str(START_MS),
    }  # fmt: skip
    assert queue.counters()["purged:low"] == 1


@pytest.mark.parametrize("place", ["ready", "delayed", "in flight", "gone"])
def test_what_is_not_dead_is_left_alone(queue: Queue, place: str) -> None:
    (claim,) = queue.claimed()
    if place == "ready":
        queue.coordinator.release(claim)
    elif place == "delayed":
        queue.coordinator.retry(claim, FAILURE, delay_s=5)
    elif place == "gone":
        queue.coordinator.ack(claim)
    before = queue.everything()

    assert queue.coordinator.purge([claim.job.id], **BY) == []

    assert queue.everything() == before


def test_again_it_finds_nothing_to_do(queue: Queue) -> None:
    (job,) = queue.buried()
    queue.coordinator.purge([job.id], **BY)
    before = queue.everything()

    assert queue.coordinator.purge([job.id], **BY) == []

    assert queue.everything() == before


def test_a_lost_reply_purges_once_and_still_says_what_it_did(queue: Queue) -> None:
    jobs = queue.buried(number=3)
    queue.eat_replies()

    assert queue.coordinator.purge([job.id for job in jobs], **BY) == [job.id for job in jobs]

    assert queue.places() == {}
    assert queue.counters()["purged:default"] == 3


def test_more_than_a_hundred_go_in_batches(queue: Queue) -> None:
    ids = [job.id for batch in range(3) for job in queue.buried(number=70)]

    assert queue.coordinator.purge(ids, **BY) == ids

    assert queue.places() == {}


def test_letters_buried_later_than_asked_are_left_alone(queue: Queue) -> None:
    (early,) = queue.buried()
    queue.clock.advance(1)
    (late,) = queue.buried()

    done = queue.coordinator.purge([early.id, late.id], **BY, until_ms=START_MS)

    assert done == [early.id]
    assert queue.places() == {late.id: "dead"}


def test_a_letter_whose_job_is_gone_can_be_purged(queue: Queue) -> None:
    (job,) = queue.buried()
    queue.raw.hdel(queue.keys.jobs, job.id)

    assert queue.coordinator.purge([job.id], **BY) == [job.id]

    assert queue.state() == queue.expected(dead=[job.id])
