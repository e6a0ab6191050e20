"""Ears: how the claim loop hears its children, without a thread for each.

A thread that read for the loop would take the interpreter lock from it with every outcome. So the loop waits for all
of them at once, and what comes while it is busy waits in the sockets.
"""

import os
import selectors
import weakref
from contextlib import suppress
from typing import Protocol

from priqueue.loops import Bell

_MANY = 4096
_OFTEN = 16


class Speaker(Protocol):
    """Who is listened to."""

    def fileno(self) -> int:
        """Return the descriptor by which it speaks."""

    def hear(self) -> bool:
        """Tell on what it has said, called when there is something; return whether there may be more."""


class Ears(Bell):
    """A bell that rings as well when somebody who is listened to has something to say."""

    def __init__(self) -> None:
        ends = self._out, self._in = os.pipe()
        for end in ends:
            os.set_blocking(end, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._out, selectors.EVENT_READ)
        weakref.finalize(self, _close, self._selector, ends)

    def ring(self) -> None:
        """End the present wait, or the next. Safe in a signal handler."""
        with suppress(BlockingIOError):  # full: it rings already
            os.write(self._in, b"\0")

    def wait(self, seconds: float) -> None:
        """Wait until it rings or somebody speaks, ``seconds`` at most. What happened earlier counts."""
        for key, _ in self._selector.select(seconds) if seconds > 0 else ():
            if key.data is None:
                os.read(self._out, _MANY)

    def add(self, speaker: Speaker) -> None:
        """Listen to somebody."""
        self._selector.register(speaker, selectors.EVENT_READ, speaker)

    def remove(self, speaker: Speaker) -> None:
        """Listen to somebody no more; to be called before its descriptor is closed."""
        self._selector.unregister(speaker)

    def listen(self) -> None:
        """Hear everybody who has something to say now, to the end; who finds no end is heard again later."""
        speaking = [key.data for key, _ in self._selector.select(0) if key.data is not None]
        for _ in range(_OFTEN):
            speaking = [speaker for speaker in speaking if speaker.hear()]
            if not speaking:
                return


def _close(selector: selectors.BaseSelector, ends: tuple[int, int]) -> None:
    selector.close()
    for end in ends:
        os.close(end)
