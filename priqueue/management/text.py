"""Text: how commands print. Words that came from outside are made harmless to a terminal first."""

import textwrap
from collections.abc import Sequence
from datetime import datetime

from priqueue.conf import Settings


def visible(text: object) -> str:
    """Return a text in one line, what is not printable as escapes, so that it cannot command a terminal."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in str(text))


def described(settings: Settings) -> str:
    """Return which queue this is, without credentials."""
    return f"queue {settings.namespace} at {settings.address}"


def utc(moment: datetime) -> str:
    """Return an aware UTC time in seconds."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def block(text: str, indent: str = "    ") -> str:
    """Return a text of several lines, indented and harmless."""
    return textwrap.indent("\n".join(visible(line) for line in text.splitlines()), indent)


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return cells in columns as wide as they must be; whole numbers and their heads stand to the right."""
    lines = [heads, *([visible(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = [isinstance(cell, int) for cell in rows[0]] if rows else [False] * len(heads)
    return "\n".join(
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )
