"""Loops: what every long-running duty shares.

``run_once`` does the work and returns how many seconds to wait; the loop waits so that it can be woken or stopped
at any moment. A queue that does not answer, or a fault nobody foresaw, makes it wait longer each time, never stop.
"""

import queue
import random
import threading
from collections.abc import Callable
from contextlib import suppress

from priqueue import events

# Whoever waits is to be back within 2 s of the queue answering; the rest is for connecting and the call itself.
_FIRST_BACKOFF_S, _LONGEST_BACKOFF_S = 0.1, 1.5


def backoff_s(failures: int, longest_s: float = _LONGEST_BACKOFF_S) -> float:
    """Return how long to wait after so many failures in a row: doubling, with jitter, 1.5 s at most."""
    longest_s = min(_FIRST_BACKOFF_S * 2.0 ** min(failures - 1, 10), longest_s)
    return longest_s * random.uniform(0.5, 1)  # noqa: S311 (spreads the processes, hides nothing)


class Bell:
    """Wakes whoever waits for it, from any thread and from a signal handler."""

    def __init__(self) -> None:
        # Not an Event: a signal handler that sets one while its own thread holds the Event's lock waits for ever.
        self._rings: queue.SimpleQueue[None] = queue.SimpleQueue()

    def ring(self) -> None:
        """End the present wait, or the next."""
        self._rings.put(None)

    def wait(self, seconds: float) -> None:
        """Wait until it rings, ``seconds`` at most. What rang earlier counts."""
        with suppress(queue.Empty):
            self._rings.get(block=seconds > 0, timeout=seconds)
            while True:
                self._rings.get_nowait()


class Loop:
    """Calls ``run_once`` until it is stopped."""

    def __init__(
        self,
        name: str,
        run_once: Callable[[], float],
        longest_backoff_s: float = _LONGEST_BACKOFF_S,
        bell: Bell | None = None,
    ) -> None:
        self.name = name
        self._run_once = run_once
        self._longest_backoff_s = min(longest_backoff_s, _LONGEST_BACKOFF_S)
        self._needed: list[threading.Thread] = []
        #: called after each turn, for a probe that asks whether the loop still turns
        self.turned: Callable[[], None] = lambda: None
        self._bell = bell or Bell()
        self.stopped = False

    def run(self) -> None:
        """Run until ``stop`` is called."""
        failures = 0
        while not self.stopped:
            self._look_after()
            try:
                wait_s, failures = self._run_once(), 0
            except Exception as error:  # a duty that ends on its first fault would be missed by everybody
                failures += 1
                wait_s = backoff_s(failures, self._longest_backoff_s)
                if not self.stopped:
                    events.send(events.loop_failed, loop=self.name, error=error, wait_s=wait_s)
            self.turned()
            if not self.stopped:
                self.wait(wait_s)

    def needs(self, thread: threading.Thread) -> None:
        """End the process, with exit code 1, should this thread end before the loop is stopped."""
        self._needed.append(thread)

    def _look_after(self) -> None:
        for thread in self._needed:
            if not thread.is_alive():
                raise SystemExit(f"{self.name} ends: the thread {thread.name} is dead")

    def wait(self, seconds: float) -> None:
        """Wait until woken or stopped, ``seconds`` at most. What woke it earlier counts."""
        self._bell.wait(seconds)

    def wake(self) -> None:
        """End the present wait, or the next. Safe in a signal handler."""
        self._bell.ring()

    def stop(self) -> None:
        """End the loop: after the present turn, or at once if it waits. Safe in a signal handler."""
        self.stopped = True
        self.wake()

    def start(self) -> threading.Thread:
        """Run in a thread of its own, which does not keep the process alive."""
        thread = threading.Thread(target=self.run, name=self.name, daemon=True)
        thread.start()
        return thread
