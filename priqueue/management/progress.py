"""Progress: one line on a terminal that says how far a long work is. Nothing where nobody looks."""

from types import TracebackType
from typing import Self

from django.core.management.base import OutputWrapper

_WIDTH = 30


class Progress:
    """Called with the number that is done; draws a bar of all of it, when that changes."""

    def __init__(self, out: OutputWrapper, total: int) -> None:
        self._out, self._total = out, total
        self._shown = ""

    def __call__(self, done: int) -> None:
        """Draw the bar."""
        percent = 100 * done // max(self._total, 1)
        bar = "#" * (percent * _WIDTH // 100)
        text = f"\r[{bar:.<{_WIDTH}}] {percent:3} % of {self._total:,}"
        if text != self._shown and self._out.isatty():
            self._out.write(text, style_func=str, ending="")
            self._out.flush()
            self._shown = text

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the line, so that what is printed next begins its own."""
        if self._shown:
            self._out.write("", ending="\n")
