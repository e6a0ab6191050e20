"""The job on RQ."""

import os
from datetime import timedelta
from typing import Any

from redis import Redis
from rq import Queue

from tests.benchmarks import probe

queue = Queue("bench", connection=Redis.from_url(os.environ["BENCH_URL"]))


def enqueue(payload: dict[str, Any]) -> None:
    """Enqueue one job."""
    queue.enqueue(probe.note, **payload)


def enqueue_many(payloads: list[dict[str, Any]]) -> None:
    """Enqueue many jobs."""
    queue.enqueue_many([Queue.prepare_data(probe.note, kwargs=payload) for payload in payloads])


def enqueue_in(payload: dict[str, Any], delay_s: float) -> None:
    """Enqueue one job for later."""
    queue.enqueue_in(timedelta(seconds=delay_s), probe.note, **payload)
