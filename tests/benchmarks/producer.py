"""Producer: a process that enqueues the jobs of one contender, as a web process would.

    python -m tests.benchmarks.producer MODULE

Takes orders from its input, a line of JSON each, [what, numbers…], and answers each with a line: the seconds it took.
"""

import importlib
import json
import os
import random
import sys
import time
from types import ModuleType

import django

from tests.benchmarks.probe import payload

_TOGETHER = 500


def one_by_one(contender: ModuleType, number: int) -> None:
    """Enqueue jobs, each by a call of its own."""
    for _ in range(number):
        contender.enqueue(payload())


def together(contender: ModuleType, number: int) -> None:
    """Enqueue jobs by as few calls as the contender knows."""
    if not hasattr(contender, "enqueue_many"):
        one_by_one(contender, number)
        return
    for done in range(0, number, _TOGETHER):
        contender.enqueue_many([payload() for _ in range(min(_TOGETHER, number - done))])


def paced(contender: ModuleType, number: int, gap_s: float) -> None:
    """Enqueue jobs with a pause before each, so that the worker waits for every one."""
    for _ in range(number):
        time.sleep(gap_s)
        contender.enqueue(payload())


def delayed(contender: ModuleType, number: int, first_s: float, last_s: float) -> None:
    """Enqueue jobs that are due one after the other, in no order."""
    delays_s = [first_s + (last_s - first_s) * at / number for at in range(number)]
    random.shuffle(delays_s)
    for delay_s in delays_s:
        contender.enqueue_in(payload(time.time() + delay_s), delay_s)


ORDERS = {order.__name__: order for order in (one_by_one, together, paced, delayed)}


def main(module: str) -> None:
    """Do what is ordered until the input ends."""
    if "DJANGO_SETTINGS_MODULE" in os.environ:
        django.setup()
    contender = importlib.import_module(module)
    knows_many = hasattr(contender, "enqueue_many")
    sys.stdout.write(json.dumps(knows_many) + "\n")
    sys.stdout.flush()
    for line in sys.stdin:
        what, *numbers = json.loads(line)
        began_s = time.perf_counter()
        ORDERS[what](contender, *numbers)
        sys.stdout.write(json.dumps(time.perf_counter() - began_s) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
