"""Trace: a traceback cut into what a reader looks for, the frames of the project's own code, and the rest.

It is a text like any other: whatever it holds stays text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

_FRAME = re.compile(r'\s*File "(?P<file>[^"]*)", line (?P<line>\d+), in (?P<function>.*)')
_FOREIGN = re.compile(
    r"site-packages|dist-packages|[/\\]lib[/\\]python3|<frozen |[/\\]priqueue[/\\](executor|runner|pool)\.py"
)
#: what is shown of a text at most; the rest is in the export
SHOWN_CHARS = 64 * 1024


@dataclass(frozen=True, slots=True)
class Piece:
    """Some lines: "own" is a frame of the project, "foreign" are frames of libraries, "text" is all else."""

    kind: str
    text: str
    frames: int = 0


def pieces(trace: str) -> list[Piece]:
    """Return a traceback in pieces, which together are the whole text."""
    frames = list(_frames(trace[:SHOWN_CHARS]))
    found = []
    for kind, some in groupby(frames, key=lambda frame: frame[0]):
        texts = [text for _, text in some]
        if kind == "own":
            found += [Piece("own", text, 1) for text in texts]
        else:
            found.append(Piece(kind, "".join(texts), len(texts) if kind == "foreign" else 0))
    return found


def place(trace: str) -> str:
    """Return where in the project's own code it happened: ``shop/jobs.py, line 12, in charge``; "" if not there."""
    own = [_FRAME.match(text) for kind, text in _frames(trace[:SHOWN_CHARS]) if kind == "own"]
    last = own[-1] if own else None
    if last is None:
        return ""
    file = "/".join(re.split(r"[/\\]", last["file"])[-2:])
    return f"{file}, line {last['line']}, in {last['function']}"


def _frames(trace: str) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) of each frame with its lines of code, and of each other line."""
    held, kind, depth = "", "", 0
    for line in trace.splitlines(keepends=True):
        indent = len(line) - len(line.lstrip())
        if _FRAME.match(line):
            if held:
                yield kind, held
            held, kind, depth = line, "foreign" if _FOREIGN.search(line) else "own", indent
        elif held and indent > depth:
            held += line
        else:
            if held:
                yield kind, held
                held = ""
            yield "text", line
    if held:
        yield kind, held
