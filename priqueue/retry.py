"""Retry: after a failure, wait and try again, or give up. Pure: it decides, others act.

The order of the decision: a ``Bury`` gives up; so does the last attempt; a ``Retry`` says its own wait; then
the handler's ``backoff``; then the default, which doubles from ``backoff_s`` with a jitter of ±10 % and never
exceeds ``backoff_max_s``. What a handler says is taken exactly, up to ten years, with no jitter. What makes
no sense is replaced by the default and noted: the way a failure is handled must not fail.
"""

import random as randomness
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from priqueue import jobs, traces
from priqueue.exceptions import Bury, InvalidDelay, Retry

Wait = float | timedelta
#: seconds, or one wait per attempt of which the last repeats, or a function of (attempt, exception)
Backoff = Wait | Sequence[Wait] | Callable[[int, BaseException], Wait]

_JITTER = 0.1
_MAX_DOUBLINGS = 1_000  # 2.0 ** 1024 raises OverflowError; long before that the cap holds


class Limits(Protocol):
    """What the policy reads of the settings."""

    @property
    def backoff_s(self) -> float:
        """Seconds before the second attempt."""

    @property
    def backoff_max_s(self) -> float:
        """The longest default wait in seconds."""


@dataclass(frozen=True, slots=True)
class Again:
    """Try once more in ``delay_s`` seconds. A ``note`` says why this is not the wait that was asked for."""

    delay_s: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Bury the job."""


def decide(
    attempt: int,
    exception: BaseException,
    *,
    max_attempts: int,
    backoff: Backoff | None,
    limits: Limits,
    random: Callable[[], float] = randomness.random,
) -> Again | GiveUp:
    """Return what follows the failure of an attempt, counted from 1. Never raises.

    ``max_attempts`` of 0 or 1 means one run. ``random`` returns a number from 0 up to 1.
    """
    if isinstance(exception, Bury) or attempt >= max_attempts:
        return GiveUp()
    usual_s = default_delay_s(attempt, limits, random)
    try:
        asked = _asked(attempt, exception, backoff)
        return Again(usual_s if asked is None else asked.total_seconds())
    except InvalidDelay as nonsense:
        return Again(usual_s, note=f"{nonsense}; used the default backoff")


def default_delay_s(attempt: int, limits: Limits, random: Callable[[], float] = randomness.random) -> float:
    """Return the default wait in seconds after this attempt, counted from 1."""
    doubled_s = limits.backoff_s * 2.0 ** min(attempt - 1, _MAX_DOUBLINGS)
    return min(doubled_s * (1 + _JITTER * (2 * random() - 1)), limits.backoff_max_s)


def _asked(attempt: int, exception: BaseException, backoff: Backoff | None) -> timedelta | None:
    """Return the wait that the exception or the handler asks for. Raises InvalidDelay."""
    if isinstance(exception, Retry) and exception.after is not None:
        return jobs.wait("Retry(after)", exception.after)
    if callable(backoff):
        return jobs.wait("backoff", _call(backoff, attempt, exception))
    if isinstance(backoff, Sequence) and not isinstance(backoff, str | bytes) and backoff:
        return jobs.wait("backoff", backoff[min(attempt, len(backoff)) - 1])
    return None if backoff is None else jobs.wait("backoff", backoff)


def _call(backoff: Callable[[int, BaseException], Wait], attempt: int, exception: BaseException) -> Wait:
    try:
        return backoff(attempt, exception)
    except BaseException as fault:  # a user's code: whatever it raises, the failed job must still be settled
        raise InvalidDelay(f"backoff: the function raised {traces.error_name(fault)}") from fault
