"""Waiting that ends early: at SIGINT, SIGTERM or SIGHUP, or when a child process ends.

The handlers only take a note. Python writes each signal's number into a pipe, and a wait is a look at that
pipe: a signal that comes between two waits is not missed, and no lock is taken inside a handler.
"""

import os
import select
import signal
from types import FrameType
from typing import Self

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """Turns a wish to stop into ``requested``, inside its ``with`` block, in the main thread."""

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> Self:
        self._pipe, self._wakeup = os.pipe()
        os.set_blocking(self._pipe, False)
        os.set_blocking(self._wakeup, False)
        self._wakeup_before = signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, self._stop) for number in STOP_SIGNALS}
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._pipe)
        os.close(self._wakeup)

    def wait(self, timeout_s: float) -> bool:
        """Wait for a signal, at most ``timeout_s``; return whether the demo was asked to stop."""
        if not self.requested and select.select([self._pipe], [], [], timeout_s)[0]:
            os.read(self._pipe, 4096)
        return self.requested

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
