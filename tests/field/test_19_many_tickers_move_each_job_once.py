"""Eight tickers over the same delayed jobs: each job is moved once."""

from collections import Counter

from redis import Redis

from priqueue.jobs import Job
from priqueue.ticker import Ticker
from tests.support.queues import Queue, test_settings
from tests.support.waiting import until

JOBS, TICKERS, OVER_MS = 4_000, 8, 2_000


def test_eight_tickers_move_each_job_once_and_never_early(client: Redis) -> None:
    settings = test_settings(TICK_S=0.01, PULL_TIMEOUT_S=0.2)
    queue = Queue(client, settings, clock=None)
    jobs = [Job(name="shop.note", payload={}, delay_ms=200 + n * OVER_MS // JOBS) for n in range(JOBS)]
    queue.coordinator.enqueue_many(jobs)
    due_ms = queue.state()["delayed"]["default"]
    seats = [Queue(client, settings, clock=None) for _ in range(TICKERS)]
    tickers = [Ticker(seat.coordinator, seat.inspector) for seat in seats]

    threads = [ticker.loop.start() for ticker in tickers]
    try:
        until(lambda: client.llen(queue.keys.lane("default")) >= JOBS, 20)
    finally:
        for ticker in tickers:
            ticker.stop()
        for thread in threads:
            thread.join()

    moved = Counter(job_id for action, _, job_id in queue.events() if action == "promote")
    since_ms = queue.state()["since"]
    assert moved == Counter(job.id for job in jobs)
    assert queue.places() == {job.id: "ready" for job in jobs}
    assert all(since_ms[job_id] >= due for job_id, due in due_ms.items())
