"""The job on Celery."""

import os
from typing import Any

from celery import Celery

from tests.benchmarks import probe

app = Celery("bench", broker=os.environ["BENCH_URL"])
app.conf.task_ignore_result = True
note = app.task(name="note")(probe.note)


def enqueue(payload: dict[str, Any]) -> None:
    """Enqueue one job."""
    note.delay(**payload)


def enqueue_in(payload: dict[str, Any], delay_s: float) -> None:
    """Enqueue one job for later."""
    note.apply_async(kwargs=payload, countdown=delay_s)
