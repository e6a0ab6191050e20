"""Dead: a dead letter as a value, and which letters are meant."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from typing import Any, NamedTuple

from priqueue.jobs import Attempt, Job, to_ms

_TEXTS = ("lane", "cause", "handler", "caller")


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

    def test(self) -> Callable[[Mapping[str, Any]], bool]:
        """Return what tells of a letter, as it is kept, whether it is meant. A search asks it of a million."""
        texts = [(name, value) for name in _TEXTS if (value := getattr(self, name)) is not None]
        since_ms = 0 if self.since is None else to_ms(self.since)
        until_ms = inf if self.until is None else to_ms(self.until)
        replaced = self.replaced

        def fits(record: Mapping[str, Any]) -> bool:
            return (
                all(record[name] == value for name, value in texts)
                and since_ms <= record["buried_at_ms"] <= until_ms
                and (replaced is None or replaced == ("replaced_by" in record))
            )

        return fits
