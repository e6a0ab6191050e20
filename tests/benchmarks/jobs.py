"""The job of a benchmark, as a user declares one; and how the producer enqueues it."""

import priqueue
from tests.benchmarks import probe


@priqueue.job(name="bench.note")
def note(due_s: float, user_id: int, template: str, locale: str) -> None:
    """Note the run."""
    probe.note(due_s)


def enqueue(payload: dict[str, object]) -> None:
    """Enqueue one job."""
    priqueue.enqueue(note, payload)


def enqueue_many(payloads: list[dict[str, object]]) -> None:
    """Enqueue many jobs."""
    priqueue.enqueue_many([(note, payload) for payload in payloads])


def enqueue_in(payload: dict[str, object], delay_s: float) -> None:
    """Enqueue one job for later."""
    priqueue.enqueue(note, payload, delay=delay_s)
