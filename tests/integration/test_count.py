"""count: what a process had to count while the queue was away."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from redis import Redis

from priqueue import QueueUnavailable
from priqueue.coordinator import Coordinator
from priqueue.coordinator.line import Line
from priqueue.jobs import Job
from tests.support.queues import START_MS, Queue


def test_numbers_are_added_to_the_totals_and_to_the_series(queue: Queue) -> None:
    queue.coordinator.count({("failed_pushes", "low"): 2})

    queue.coordinator.count({("failed_pushes", "low"): 1, ("failed_pushes", "high"): 4})

    expected = {"failed_pushes:low": 3, "failed_pushes:high": 4}
    series = queue.raw.hgetall(queue.keys.series(START_MS))
    assert queue.counters() == expected
    assert {name: int(number) for name, number in series.items()} == expected


def test_what_is_owed_is_written_with_the_next_jobs_that_come_in_and_only_once(queue: Queue) -> None:
    queue.coordinator.owe("failed_pushes", "low")
    queue.coordinator.owe("failed_pushes", "low")
    before = queue.counters()

    queue.enqueue(lane="high")
    queue.enqueue(lane="high")

    assert (before, queue.counters()) == ({}, {"enqueued:high": 2, "failed_pushes:low": 2})


def test_what_is_owed_stays_owed_while_the_queue_is_away(real_queue: Queue) -> None:
    broken = Coordinator(Redis(port=1), real_queue.settings)
    broken._scripts._deadline_s = 0
    with suppress(QueueUnavailable):
        broken.enqueue(Job(name="shop.note", payload={}))
    broken.owe("failed_pushes", "low", at_once=True)
    broken.owe("failed_pushes", "low")

    broken._scripts._line = Line(real_queue.raw)
    broken.enqueue(Job(name="shop.note", payload={}, lane="high"))

    assert real_queue.counters() == {"enqueued:high": 1, "failed_pushes:low": 2}


def test_counting_from_many_threads_loses_nothing(queue: Queue) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: queue.coordinator.owe("failed_pushes", "low"), range(2_000)))

    queue.enqueue(lane="high")

    assert queue.counters()["failed_pushes:low"] == 2_000
