"""The load of ``demo --once``: 300 jobs from a file, over all lanes, delayed and failing ones among them.

The file is in the format of ``manage.py enqueuejobs``; it names orders S-001 to S-100, which are made here.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import priqueue
from project.demo.accounting import Planned
from project.shop import jobs
from project.shop.models import Order, Product

FILE = Path(__file__).parent / "jobs.jsonl"
SAMPLE_ORDERS = 100


def make_sample_orders() -> None:
    """Make the orders that the file speaks of, those that are not there yet."""
    products = list(Product)
    Order.objects.bulk_create(
        [
            Order(
                number=f"S-{n:03}",
                email=f"customer{n:03}@example.org",
                product=products[n % len(products)],
                quantity=1 + n % 5,
            )
            for n in range(1, SAMPLE_ORDERS + 1)
        ],
        ignore_conflicts=True,
    )


def read_lines(path: Path = FILE) -> list[dict[str, Any]]:
    """Return the jobs of the file, one dict per line."""
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]


def enqueue(lines: Sequence[dict[str, Any]]) -> list[Planned]:
    """Put the jobs into the queue, in the file's order."""
    return [_enqueue(entry) for entry in lines]


def is_doomed(entry: dict[str, Any]) -> bool:
    """Return whether a job fails more often than it may: the others are to be done in the end."""
    return entry["payload"].get("declines", 0) >= jobs.CHARGE_ATTEMPTS


def _enqueue(entry: dict[str, Any]) -> Planned:
    delay_s = entry.get("delay", 0)
    job = priqueue.enqueue(entry["job"], entry["payload"], lane=entry.get("lane"), delay=delay_s, caller="command:demo")
    return Planned(job.id, job.lane, job.run_at or job.enqueued_at, is_doomed(entry))
