"""Traces: what is kept of an exception. Text that every store takes, whatever the exception is made of.

1. ``error``, the type's name: dead letters are grouped by it, so it is one bounded word;
2. ``message``, what the exception says, bounded;
3. ``traceback``, the whole story, oldest cause first, at most 16 KiB with head and tail kept.

A handler's exception may lie, raise when it is asked, refer to itself or be 10 MB long. Nothing here fails
for that, nothing copies a long text, and the values of local variables are never shown.
"""

import re
import traceback
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from types import TracebackType
from typing import Any, TypeVar

MAX_ERROR_CHARS = 200
MAX_MESSAGE_CHARS = 2_000
MAX_TRACEBACK_BYTES = 16 * 1024

_MAX_EXCEPTIONS = 200  # in one traceback: causes and members of groups together
_MAX_MEMBERS = 20  # of one group
_MAX_DEPTH = 10  # of groups in groups
_MAX_NOTES = 10
_MAX_FRAMES = 50  # of one exception: as many of the oldest as of the newest
_MAX_FRAME_CHARS = 1_000
_MARKER_BYTES = 80

_NOT_A_WORD = re.compile(r"[\s\"\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# What a database refuses (NUL, lone surrogates), and what lets a text pose as another on a terminal or page.
_UNSHOWABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

_T = TypeVar("_T")


def render(exception: BaseException) -> tuple[str, str, str]:
    """Return the error, the message and the traceback of an exception. Never raises.

    The error has at most 200 characters, none of them a space, quote, backslash or control character; the
    message has at most 2,000 characters; the traceback at most 16 KiB of UTF-8.
    """
    story = _attempt(lambda: "".join(_story(exception, set(), 0)), "this traceback cannot be shown\n")
    return error_name(exception), _message(exception), _cut(story)


def error_name(exception: BaseException) -> str:
    """Return the name of the exception's type as one word, with its module unless it is built in."""
    name = _attempt(lambda: _qualified(type(exception)), "")
    return _NOT_A_WORD.sub("_", name)[-MAX_ERROR_CHARS:] or "Exception"


def _attempt(ask: Callable[[], _T], otherwise: _T) -> _T:
    """Return what ``ask`` returns, or the other value if the exception's own code raises, even SystemExit."""
    try:
        return ask()
    except BaseException:  # a failure that cannot be recorded would be a job that cannot be settled
        return otherwise


def _qualified(kind: type) -> str:
    # Asked past the metaclass, which may override both and raise.
    name: str = type.__dict__["__qualname__"].__get__(kind)
    module = type.__dict__["__module__"].__get__(kind)
    return f"{module}.{name}" if isinstance(module, str) and module != "builtins" else name


def _message(exception: BaseException) -> str:
    return _attempt(lambda: _bounded(str(exception), MAX_MESSAGE_CHARS), "the message cannot be shown")


def _bounded(text: str, limit: int) -> str:
    """Return the text with everything unshowable made visible; if it is too long, its head and its length."""
    # By str itself, which a subclass may override; and before anything else, as the text may be huge.
    shown = _visible(str.__getitem__(text, slice(limit + 1)))
    if len(shown) <= limit:
        return shown
    ending = f"… ({str.__len__(text):,} characters)"
    return shown[: limit - len(ending)] + ending


def _visible(text: str) -> str:
    return _UNSHOWABLE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _story(exception: BaseException, seen: set[int], depth: int) -> Iterator[str]:
    """Yield the exception's lines after those of its causes, each exception once."""
    links, left_out = _links(exception, seen)
    if left_out:
        yield "(earlier causes are left out)\n\n"
    for link, because in links:
        yield from _one(link)
        yield from _members(link, seen, depth)
        if because:
            yield f"\n{because}\n\n"


def _links(exception: BaseException, seen: set[int]) -> tuple[list[tuple[BaseException, str]], bool]:
    """Return the chain of causes, oldest first, each with what it is to the next, and whether it was cut."""
    links: list[tuple[BaseException, str]] = []
    link: BaseException | None = exception
    because = ""
    while link is not None and id(link) not in seen:
        if len(seen) >= _MAX_EXCEPTIONS:
            return links[::-1], True
        seen.add(id(link))
        links.append((link, because))
        link, because = _origin(link)
    return links[::-1], False


def _origin(exception: BaseException) -> tuple[BaseException | None, str]:
    # Read past the class, which may override these with a property that raises.
    base = BaseException.__dict__
    cause = base["__cause__"].__get__(exception)
    if cause is not None:
        return cause, "That was the direct cause of:"
    if base["__suppress_context__"].__get__(exception):
        return None, ""
    return base["__context__"].__get__(exception), "While that was handled, there came:"


def _one(exception: BaseException) -> Iterator[str]:
    """Yield the lines of one exception: its frames, its type and message, its notes."""
    frames = BaseException.__dict__["__traceback__"].__get__(exception)
    if frames is not None:
        yield "Traceback (most recent call last):\n"
        yield from _attempt(lambda: list(_frames(frames)), ["  the frames cannot be shown\n"])
    message = _message(exception)
    yield f"{error_name(exception)}: {message}\n" if message else f"{error_name(exception)}\n"
    for note in _attempt(lambda: _notes(exception), ["a note cannot be shown"]):
        yield f"{note}\n"


def _frames(start: TracebackType) -> Iterator[str]:
    frames = list(traceback.walk_tb(start))
    if len(frames) <= _MAX_FRAMES:
        yield from _lines(frames)
        return
    half = _MAX_FRAMES // 2
    yield from _lines(frames[:half])
    yield f"  … {len(frames) - 2 * half:,} frames left out …\n"
    yield from _lines(frames[-half:])


def _lines(frames: Iterable[tuple[Any, int]]) -> Iterator[str]:
    for line in traceback.StackSummary.extract(frames, capture_locals=False).format():
        yield _bounded(line.rstrip("\n"), _MAX_FRAME_CHARS) + "\n"


def _notes(exception: BaseException) -> list[str]:
    notes: Iterable[object] = getattr(exception, "__notes__", ())
    return [_bounded(str(note), MAX_MESSAGE_CHARS) for note in islice(notes, _MAX_NOTES)]


def _members(exception: BaseException, seen: set[int], depth: int) -> Iterator[str]:
    """Yield the stories of what an exception group holds, indented."""
    if not isinstance(exception, BaseExceptionGroup):
        return
    members: tuple[BaseException, ...] = BaseExceptionGroup.__dict__["exceptions"].__get__(exception)
    if depth == _MAX_DEPTH:
        yield f"    … {len(members):,} exceptions left out …\n"
        return
    for number, member in enumerate(members[:_MAX_MEMBERS], 1):
        yield f"  {number} of {len(members):,}:\n"
        told = "".join(_story(member, seen, depth + 1)) or "(told above)\n"
        yield from (f"    {line}\n" for line in told.removesuffix("\n").split("\n"))
    if len(members) > _MAX_MEMBERS:
        yield f"  … {len(members) - _MAX_MEMBERS:,} exceptions left out …\n"


def _cut(text: str) -> str:
    """Return the text if it has at most 16 KiB, else its head and tail and how much is missing between."""
    encoded = text.encode("utf-8")
    if len(encoded) <= MAX_TRACEBACK_BYTES:
        return text
    kept = (MAX_TRACEBACK_BYTES - _MARKER_BYTES) // 2
    head = encoded[:kept].decode("utf-8", "ignore")
    tail = encoded[-kept:].decode("utf-8", "ignore")
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n… {left_out:,} characters left out …\n{tail}"
