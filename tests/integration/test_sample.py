"""sample: the gauges of this moment, for the charts."""

from priqueue.sweeper import Sweeper
from tests.support.queues import START_MS, Queue


def test_gauges_stand_beside_the_totals_of_their_ten_seconds(queue: Queue) -> None:
    queue.enqueue(lane="low")

    queue.coordinator.sample({"ready:low": 1, "slots": 0})

    series = queue.raw.hgetall(queue.keys.series(START_MS))
    assert series == {"enqueued:low": "1", "ready:low": "1", "slots": "0"}


def test_the_last_sample_of_a_bucket_counts(queue: Queue) -> None:
    queue.coordinator.sample({"slots": 1})
    queue.clock.advance(9.999)

    queue.coordinator.sample({"slots": 2})

    assert queue.raw.hgetall(queue.keys.series(START_MS)) == {"slots": "2"}


def test_ten_seconds_later_a_new_bucket_begins(queue: Queue) -> None:
    queue.coordinator.sample({"slots": 1})
    queue.clock.advance(10)

    queue.coordinator.sample({"slots": 2})

    buckets = [queue.raw.hgetall(queue.keys.series(START_MS + ms)) for ms in (0, 10_000)]
    assert buckets == [{"slots": "1"}, {"slots": "2"}]


def test_a_bucket_does_not_stay_for_ever(queue: Queue) -> None:
    queue.coordinator.sample({"slots": 1})

    assert 0 < queue.raw.ttl(queue.keys.series(START_MS)) <= 7_200


def test_a_sample_leaves_no_event_and_moves_no_job(queue: Queue) -> None:
    queue.enqueue()
    before = queue.state(), queue.events()

    queue.coordinator.sample({"slots": 1})

    assert (queue.state(), queue.events()) == before


def test_each_sweep_takes_one(queue: Queue) -> None:
    queue.claimed(number=2)
    queue.enqueue(lane="low", delay_ms=1_000)

    Sweeper(queue.coordinator, queue.inspector).run_once()

    series = queue.raw.hgetall(queue.keys.series(START_MS))
    gauges = {name: int(series[name]) for name in ("delayed:low", "ready:default", "slots", "capacity")}
    assert gauges == {"delayed:low": 1, "ready:default": 0, "slots": 2, "capacity": 100}
