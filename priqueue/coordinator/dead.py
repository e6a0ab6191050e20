"""Dead: a dead letter as a value, and which letters are meant."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from priqueue.jobs import Attempt, Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A dead letter as a list shows it."""

    id: str
    lane: str
    #: error and handler, by which letters are counted; "other" when there are too many different ones
    cause: str
    handler: str
    caller: str
    buried_at: datetime
    #: id of its edited copy, which was enqueued in its place; "" for none
    replaced_by: str = ""
    #: what ``Letters.scan`` takes to go on behind this letter
    cursor: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedLetter:
    """A dead letter with all that is known of its job."""

    letter: Letter
    job: Job
    #: failures, and workers that were lost
    attempts: int
    crashes: int
    trail: Sequence[Attempt]

    @property
    def error(self) -> str:
        """The error of the last attempt."""
        return self.trail[-1].error if self.trail else ""


class Latest(NamedTuple):
    """How often a dead job was tried, and what came of it at last; None where that is not known."""

    failures: int
    crashes: int
    attempt: Attempt | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which letters are meant: those that fit all that is given, ``since`` and ``until`` included."""

    lane: str | None = None
    cause: str | None = None
    handler: str | None = None
    caller: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    #: whether an edited copy was enqueued in its place
    replaced: bool | None = None

    def fits(self, letter: Letter) -> bool:
        """Return whether a letter is meant."""
        words = (
            (self.lane, letter.lane), (self.cause, letter.cause), (self.handler, letter.handler),
            (self.caller, letter.caller), (self.replaced, bool(letter.replaced_by)),
        )  # fmt: skip
        return (
            all(wanted is None or wanted == found for wanted, found in words)
            and (self.since is None or self.since <= letter.buried_at)
            and (self.until is None or letter.buried_at <= self.until)
        )
