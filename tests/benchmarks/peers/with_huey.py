"""The job on Huey."""

import os
from typing import Any

from huey import RedisHuey

from tests.benchmarks import probe

queue = RedisHuey("bench", url=os.environ["BENCH_URL"], results=False)
note = queue.task()(probe.note)


def enqueue(payload: dict[str, Any]) -> None:
    """Enqueue one job."""
    note(**payload)


def enqueue_in(payload: dict[str, Any], delay_s: float) -> None:
    """Enqueue one job for later."""
    note.schedule(kwargs=payload, delay=delay_s)
