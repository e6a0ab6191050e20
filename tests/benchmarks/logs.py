"""What logging costs: the records of one job's life, where the log's handler discards them. Prints a table.

    python -m tests.benchmarks.logs

A worker writes two of them for each job, claim and ack; who enqueues it writes the third.
"""

import json
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from priqueue import events  # noqa: E402
from priqueue.jobs import Claim, Job  # noqa: E402
from tests.support.queues import HANDLER  # noqa: E402

ROUNDS, CALLS = 50, 2_000
PAYLOAD = '{"order_id":7,"email":"someone@example.org"}'
JOB = Job(name=HANDLER, payload=json.loads(PAYLOAD), payload_json=PAYLOAD, caller="user:42", correlation_id="r-7")
CLAIM = Claim(
    job=JOB, token="t", worker_id="web1:311:a1b2c3d4", lane="high", attempt=1, crashes=0, deadline_ms=20_000,
    ready_since_ms=9_500, run_ms=31,
)  # fmt: skip


class Takes(logging.Handler):
    """Takes a record and does nothing with it: what making one costs."""

    def handle(self, record: logging.LogRecord) -> bool:  # type: ignore[override]
        return True


def microseconds(work: Callable[[], object]) -> float:
    """Return the median over rounds of what one call takes."""
    took = []
    for _ in range(ROUNDS):
        began_s = time.perf_counter()
        for _ in range(CALLS):
            work()
        took.append((time.perf_counter() - began_s) / CALLS * 1_000_000)
    return statistics.median(took)


def main() -> None:
    """Measure and print."""
    logger = logging.getLogger("priqueue")
    logger.propagate = False
    handler = Takes()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    calls: dict[str, Callable[[], object]] = {
        "enqueue": lambda: events.send(events.job_enqueued, job=JOB),
        "claim": lambda: events.send(events.jobs_claimed, claims=[CLAIM]),
        "ack": lambda: events.send(events.jobs_acked, claims=[CLAIM]),
    }
    sys.stdout.write("| record | discarded by the handler, µs | made, µs |\n|---|---|---|\n")
    sums = [0.0, 0.0]
    for name, call in calls.items():
        took = []
        for level in (logging.WARNING, logging.NOTSET):
            handler.setLevel(level)
            took.append(microseconds(call))
        sys.stdout.write(f"| {name} | {took[0]:.1f} | {took[1]:.1f} |\n")
        sums = [total + each for total, each in zip(sums, took, strict=True)]
    sys.stdout.write(f"| all of a job | {sums[0]:.1f} | {sums[1]:.1f} |\n")


if __name__ == "__main__":
    main()
