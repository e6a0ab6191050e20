"""The sweeper: reclaims, forgets and samples."""

from priqueue.sweeper import Sweeper
from tests.support.queues import Queue


def test_a_sweep_gives_back_the_jobs_of_a_lost_worker(queue: Queue) -> None:
    claims = queue.claimed(number=3)
    queue.clock.advance(queue.settings.lease_s)

    wait_s = Sweeper(queue.coordinator, queue.inspector).run_once()

    assert 0 < wait_s <= queue.settings.sweep_s
    assert queue.places() == {claim.job.id: "ready" for claim in claims}


def test_a_full_batch_is_followed_by_another_at_once(queue: Queue) -> None:
    queue.register(concurrency=101)
    queue.claimed(number=101)
    queue.clock.advance(queue.settings.lease_s)
    sweeper = Sweeper(queue.coordinator, queue.inspector)

    assert sweeper.run_once() == 0
    assert sweeper.run_once() > 0

    assert set(queue.places().values()) == {"ready"}


def test_a_sweep_forgets_workers_that_were_silent_for_ten_minutes(queue: Queue) -> None:
    queue.register("old")
    queue.clock.advance(601)
    queue.register("new")

    Sweeper(queue.coordinator, queue.inspector).run_once()

    assert [worker.id for worker in queue.inspector.workers()] == ["new"]


def test_a_sweep_samples_the_gauges(queue: Queue) -> None:
    queue.claimed(number=2)
    queue.enqueue(lane="high")
    queue.enqueue(lane="low", delay_ms=1000)

    Sweeper(queue.coordinator, queue.inspector).run_once()

    sampled = queue.raw.hgetall(queue.keys.series(queue.clock.now_ms))
    assert {name: sampled[name] for name in ("ready:high", "delayed:low", "slots", "capacity")} == {
        "ready:high": "1", "delayed:low": "1", "slots": "2", "capacity": "100",
    }  # fmt: skip
