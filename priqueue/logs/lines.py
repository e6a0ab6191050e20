"""Lines: text that came from outside, made harmless, and records as lines for people.

A line break would forge a record, an escape sequence commands a terminal, and a bidirectional mark shows a text in
another order than it has. All of them are written as escapes.
"""

import logging
from types import TracebackType

_BREAKS = {0x2028, 0x2029}
_BIDIRECTIONAL = {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
_HARMFUL = {*range(32), *range(127, 160), *_BREAKS, *_BIDIRECTIONAL, *range(0xD800, 0xE000)}
_ESCAPES = {number: f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" for number in _HARMFUL}
_IN_A_BLOCK = _ESCAPES | {ord("\n"): "\n    "}

_Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def escaped(text: str) -> str:
    """Return a text in one line that neither a terminal nor a reader can be misled by."""
    return text if text.isascii() and text.isprintable() else text.translate(_ESCAPES)


class LineFormatter(logging.Formatter):
    """Formats a record as one harmless line; a traceback follows in lines that begin with blanks."""

    def __init__(self, fmt: str = "%(asctime)s %(levelname)s %(name)s %(message)s", **options: str) -> None:
        super().__init__(fmt, **options)  # type: ignore[arg-type]

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the record's line, with the job it belongs to where its message does not say so."""
        line = escaped(super().formatMessage(record))
        job_id = getattr(record, "job_id", "")
        return line if not job_id or job_id in line else f"{line} [job {escaped(job_id)}]"

    def formatException(self, ei: _Raised) -> str:
        """Return a traceback as a block."""
        return "    " + super().formatException(ei).translate(_IN_A_BLOCK)

    def formatStack(self, stack_info: str) -> str:
        """Return a stack as a block."""
        return "    " + stack_info.translate(_IN_A_BLOCK)
