"""Handlers of the tests: found by autodiscovery because this is an installed app's jobs module."""

import threading

import priqueue
from tests.shop import history


@priqueue.job(lane="high")
def send_receipt(order_id: int, email: str) -> None:
    """Do nothing, with typed arguments."""


@priqueue.job
def note(n: int = 0) -> None:
    """Do nothing."""


@priqueue.job
def work(seconds: float = 0) -> None:
    """Take so long, and write down when it began and ended."""
    history.write("start")
    threading.Event().wait(seconds)
    history.write("end")


@priqueue.job(max_attempts=3, backoff=0.05)
def fail(message: str = "no luck") -> None:
    """Fail each time."""
    history.write("start")
    raise ValueError(message)


@priqueue.job
async def awaited(n: int = 0) -> None:
    """Run as a coroutine."""
    history.write("start")
