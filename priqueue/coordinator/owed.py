"""Owed: what had to be counted while the queue was away. A process keeps it until a call gets through.

It is one number for each event and lane, so it does not grow. What a process owes when it ends is in its log alone.
"""

import threading
from collections import Counter
from collections.abc import Callable, Mapping

from priqueue.exceptions import PriqueueError


class Owed:
    """Counts on their way to the queue. For any thread."""

    def __init__(self, write: Callable[[Mapping[tuple[str, str], int]], object]) -> None:
        self._write = write
        self._numbers: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def add(self, event: str, lane: str) -> None:
        """Count an event of a lane."""
        with self._lock:
            self._numbers[event, lane] += 1

    def pay(self) -> None:
        """Hand over what is owed, if anything is; what is not taken stays owed. Raises nothing."""
        if not self._numbers:
            return
        with self._lock:
            numbers, self._numbers = self._numbers, Counter()
        try:
            if numbers:
                self._write(numbers)
        except PriqueueError:  # no figure is a reason to fail a call that has done its work
            with self._lock:
                self._numbers.update(numbers)
