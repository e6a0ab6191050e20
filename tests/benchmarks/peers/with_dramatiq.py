"""The job on Dramatiq."""

import os
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from tests.benchmarks import probe

dramatiq.set_broker(RedisBroker(url=os.environ["BENCH_URL"]))
note = dramatiq.actor(probe.note)


def enqueue(payload: dict[str, Any]) -> None:
    """Enqueue one job."""
    note.send(**payload)


def enqueue_in(payload: dict[str, Any], delay_s: float) -> None:
    """Enqueue one job for later."""
    note.send_with_options(kwargs=payload, delay=int(delay_s * 1000))
