"""Clocks: the only place that reads the time of this machine.

The queue's own decisions use the server's clock; these two serve what happens inside one process.
"""

import time


def wall_ms() -> int:
    """Return the time of day in ms since 1970: to be shown and stored, never to measure with."""
    return time.time_ns() // 1_000_000


def monotonic_s() -> float:
    """Return seconds that only ever grow: to measure and to wait with, meaningless elsewhere."""
    return time.monotonic()


def pause(seconds: float) -> None:
    """Wait. Only for a caller that has nothing to be woken for: a loop waits on its stop event instead."""
    time.sleep(seconds)
