"""Callers: who acts, why, and under which correlation id.

Kept in context variables, so that a view, a command or a handler says it once and everything inside is
recorded under that name: ``user:42``, ``key:billing``, ``command:alice``, ``worker:…``, or ``system``.
"""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from priqueue.exceptions import InvalidCaller

# No quote, backslash, space or control character: Lua reads these words by a pattern, and logs print them.
_WORD = re.compile(r"[^\s\"\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]{1,200}\Z")
_LONGEST = 200


@lru_cache(maxsize=1024)  # of a job's four words, three are the same for most jobs
def _is_word(value: str) -> bool:
    return _WORD.match(value) is not None


def check_word(field: str, value: object) -> str:
    """Return ``value`` if it may stand in an envelope's head. Raises InvalidCaller naming the field."""
    if not isinstance(value, str) or len(value) > _LONGEST or not _is_word(value):
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


class _Acting(AbstractContextManager[None]):
    """Sets who acts for a block. No generator: every run goes through one of these."""

    __slots__ = ("_current", "_reset")

    def __init__(self, current: Acting | _WhenAsked) -> None:
        self._current = current

    def __enter__(self) -> None:
        self._reset = _acting.set(self._current)

    def __exit__(self, *_: object) -> None:
        _acting.reset(self._reset)


def acting_as(caller: str, *, reason: str = "", correlation_id: str = "") -> AbstractContextManager[None]:
    """Name the caller, and the reason, of everything that happens inside the ``with`` block of what this returns.

    ``caller`` is a word such as ``"user:42"``. A correlation id that is not given stays what it was outside.
    Raises InvalidCaller.
    """
    check_word("caller", caller)
    return _Acting(Acting(caller, reason, _checked(correlation_id) or _acting.get().correlation_id))


def acting_when_asked(who: Callable[[], str], *, correlation_id: str = "") -> AbstractContextManager[None]:
    """Let ``who`` say the caller of what happens inside the block, each time something asks and never before.

    A correlation id that is not given stays what it was outside. Raises InvalidCaller.
    """
    return _Acting(_WhenAsked(who, _checked(correlation_id) or _acting.get().correlation_id))


def _checked(correlation_id: str) -> str:
    return check_word("correlation_id", correlation_id) if correlation_id else ""
