"""Waiting for a condition, with a deadline: what tests do instead of sleeping."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
POLL_S = 0.01


def until(condition: Callable[[], T], timeout_s: float = 10) -> T:
    """Return the first true value of ``condition``, asked every 10 ms; fail after ``timeout_s``."""
    deadline_s, pause = time.monotonic() + timeout_s, threading.Event()
    while not (found := condition()):
        if time.monotonic() > deadline_s:
            raise AssertionError(f"not within {timeout_s} s: {getattr(condition, '__qualname__', condition)}")
        pause.wait(POLL_S)
    return found
