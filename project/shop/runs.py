"""Record each run of a handler: which job, which attempt, from when to when, and whether it worked."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.utils import timezone

import priqueue
from project.shop.models import Run


@contextmanager
def recorded() -> Iterator[None]:
    """Write one Run for what happens inside; a handler called directly, outside a worker, leaves none."""
    run, started_at, worked = priqueue.current_job(), timezone.now(), False
    try:
        yield
        worked = True
    finally:
        if run is not None:
            Run.objects.create(job_id=run.id, attempt=run.attempt, worked=worked, started_at=started_at)
