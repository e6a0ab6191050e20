"""Callers: who acts, why, and under which correlation id.

Kept in context variables, so that a view, a command or a handler says it once and everything inside is
recorded under that name: ``user:42``, ``key:billing``, ``command:alice``, ``worker:…``, or ``system``.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from urllib.parse import quote

from priqueue.exceptions import InvalidCaller

# No quote, backslash, space or control character: Lua reads these words by a pattern, and logs print them.
_WORD = re.compile(r"[^\s\"\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]{1,200}\Z")


def check_word(field: str, value: object) -> str:
    """Return ``value`` if it may stand in an envelope's head. Raises InvalidCaller naming the field."""
    if not isinstance(value, str) or not _WORD.match(value):
        shown = repr(value)[:60]
        raise InvalidCaller(
            f"{field}: {shown} is not 1 to 200 characters without spaces, quotes, backslashes and control characters"
        )
    return value


def of_user(key: object) -> str:
    """Return the caller that a user of this primary key is: ``user:<key>``."""
    # A primary key may be any text. Quoting keeps two of them apart, which leaving characters out would not.
    return f"user:{quote(str(key), safe='@+:')}"


@dataclass(frozen=True, slots=True)
class Acting:
    """Who acts, and why."""

    caller: str = "system"
    reason: str = ""
    correlation_id: str = ""


@dataclass(frozen=True, slots=True)
class _WhenAsked:
    """Who acts is found out when something asks. The correlation id is passed on without asking who."""

    who: Callable[[], str]
    correlation_id: str


_acting: ContextVar[Acting | _WhenAsked] = ContextVar("priqueue_acting", default=Acting())  # noqa: B039 (frozen)


def acting() -> Acting:
    """Return who acts here."""
    current = _acting.get()
    if isinstance(current, Acting):
        return current
    return Acting(check_word("caller", current.who()), "", current.correlation_id)


def correlation_id() -> str:
    """Return the correlation id of what happens here, "" without one. Asks nobody who acts."""
    return _acting.get().correlation_id


@contextmanager
def acting_as(caller: str, *, reason: str = "", correlation_id: str = "") -> Iterator[None]:
    """Name the caller, and the reason, of everything that happens inside the block.

    ``caller`` is a word such as ``"user:42"``. A correlation id that is not given stays what it was outside.
    Raises InvalidCaller.
    """
    check_word("caller", caller)
    inherited = _acting.get().correlation_id
    with _set(Acting(caller, reason, _checked(correlation_id) or inherited)):
        yield


@contextmanager
def acting_when_asked(who: Callable[[], str], *, correlation_id: str = "") -> Iterator[None]:
    """Let ``who`` say the caller of what happens inside the block, each time something asks and never before.

    A correlation id that is not given stays what it was outside. Raises InvalidCaller.
    """
    inherited = _acting.get().correlation_id
    with _set(_WhenAsked(who, _checked(correlation_id) or inherited)):
        yield


def _checked(correlation_id: str) -> str:
    return check_word("correlation_id", correlation_id) if correlation_id else ""


@contextmanager
def _set(current: Acting | _WhenAsked) -> Iterator[None]:
    reset = _acting.set(current)
    try:
        yield
    finally:
        _acting.reset(reset)
