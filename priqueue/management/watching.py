"""Watching: something shown again each second: in place on a terminal, one below the other elsewhere."""

from collections.abc import Callable

from django.core.management.base import OutputWrapper

from priqueue.exceptions import PriqueueError
from priqueue.loops import Loop
from priqueue.management.duties import run_until_stopped
from priqueue.management.sessions import one_line

_PERIOD_S = 1.0
# A screen of its own, which leaves what was on the terminal as it was; no cursor that would jump about in it.
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


class Watch:
    """Shows what ``draw`` returns until a signal ends it. A queue that is away is said, and asked again."""

    def __init__(self, out: OutputWrapper, draw: Callable[[], str]) -> None:
        self._out, self._draw = out, draw
        self._on_terminal = out.isatty()
        self._loop = Loop("watch", self._show)

    def run(self) -> None:
        """Run until SIGINT or SIGTERM, or until nobody reads any more; the terminal is left as it was."""
        self._write(_ENTER if self._on_terminal else "")
        try:
            run_until_stopped(self._loop)
        finally:
            self._write(_LEAVE if self._on_terminal else "")

    def _show(self) -> float:
        try:
            text = self._draw()
        except PriqueueError as error:
            text = f"{one_line(error)}; asked again each second"
        if self._on_terminal:
            lines = "".join(f"{line}{_REST_OF_LINE}\n" for line in text.splitlines())
            self._write(_HOME + lines + _REST_OF_SCREEN)
        else:
            self._write(f"{text}\n\n")
        return _PERIOD_S

    def _write(self, text: str) -> None:
        try:
            self._out.write(text, ending="")
            self._out.flush()
        except BrokenPipeError:
            self._loop.stop()
