"""Story: what happened to a job, from its trail: its attempts, the newest first, and the times between."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from priqueue.jobs import Attempt, Job
from priqueue.views import trace
from priqueue.views.trace import Piece

_REPEATED = "the same as of the attempt before"


@dataclass(frozen=True, slots=True)
class Told:
    """An attempt as a page tells it."""

    attempt: Attempt
    #: same error and message as the newest one's
    same: bool
    pieces: Sequence[Piece]
    #: where in the project's own code it happened
    place: str
    #: the attempt that has its traceback, where this one's is the same
    as_of: int | None
    cut: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One moment of a job's life, and how long it took since the one before."""

    what: str
    at: datetime
    after_s: float | None


def told(trail: Sequence[Attempt]) -> list[Told]:
    """Return the attempts, the newest first."""
    return [_told(trail, at) for at in reversed(range(len(trail)))]


def timeline(job: Job, trail: Sequence[Attempt], ends: Sequence[tuple[str, datetime]] = ()) -> list[Step]:
    """Return the moments of a job's life in their order."""
    moments = [("enqueued", job.enqueued_at)]
    moments += [(f"attempt {each.attempt} {'lost' if each.crash else 'failed'}", each.at) for each in trail]
    moments += ends
    befores = [None, *(at for _, at in moments)]
    return [
        Step(what, at, max(0.0, (at - before).total_seconds()) if before else None)
        for (what, at), before in zip(moments, befores, strict=False)
    ]


def _told(trail: Sequence[Attempt], at: int) -> Told:
    attempt, newest = trail[at], trail[-1]
    source = at
    while source > 0 and trail[source].traceback == _REPEATED:
        source -= 1
    text = trail[source].traceback if trail[source].traceback != _REPEATED else ""
    return Told(
        attempt=attempt, pieces=trace.pieces(text), place=trace.place(text), cut=len(text) > trace.SHOWN_CHARS,
        same=at < len(trail) - 1 and (attempt.error, attempt.message) == (newest.error, newest.message),
        as_of=None if source == at else trail[source].attempt,
    )  # fmt: skip
