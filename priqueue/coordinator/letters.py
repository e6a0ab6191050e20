"""Letters: the reader of what is dead, newest first.

``dead`` followed by ``kept`` is the order. An entry may be a hole; of two with one id, the newer is the
letter. Places are counted from the oldest end: new letters do not shift them, and a trim meanwhile shifts
them so that something is read twice, never missed. What is read twice is told by its id, and given once.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from priqueue.coordinator.inspection import Inspector
from priqueue.jobs import Attempt, Job, State, from_ms, to_ms

_BATCH = 1000
_NEWEST = 2**53
_CURSOR = re.compile(r"([0-9]{1,15})-([0-9]{1,15})-(\S{1,200})")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which letters are meant: those that fit all that is given, ``since`` and ``until`` included."""

    lane: str | None = None
    cause: str | None = None
    handler: str | None = None
    caller: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def fits(self, letter: Letter) -> bool:
        """Return whether a letter is meant."""
        words = (
            (self.lane, letter.lane), (self.cause, letter.cause),
            (self.handler, letter.handler), (self.caller, letter.caller),
        )  # fmt: skip
        return (
            all(wanted is None or wanted == found for wanted, found in words)
            and (self.since is None or self.since <= letter.buried_at)
            and (self.until is None or letter.buried_at <= self.until)
        )


class Letters(Inspector):
    """The inspector of one queue's dead letters."""

    def scan(self, wanted: Filter, cursor: str = "") -> Iterator[Letter]:
        """Give the letters that are meant, newest first, reading as many as are taken.

        A ``cursor`` goes on behind the letter it is from. Raises ValueError for one that is from none.
        """
        end, buried_ms, last = _parsed(cursor) if cursor else (_NEWEST, _NEWEST, "")
        seen = {last}
        while end > 0:
            end, batch = self._batch(wanted.cause, end)
            for letter in batch:
                # A job that died again has its old entry left, too: of two, the one that is met first counts.
                if letter.id not in seen and to_ms(letter.buried_at) <= buried_ms and wanted.fits(letter):
                    seen.add(letter.id)
                    yield letter
            # Not at the first letter that is too old: the server's clock may have been set back by a little.
            if batch and wanted.since and all(letter.buried_at < wanted.since for letter in batch):
                return

    def open(self, job_id: str) -> OpenedLetter | None:
        """Return a letter with its job and its trail; None when the job is not dead."""
        (record,) = self._read(("HGET", self.keys.letters, job_id))
        status = self.job(job_id)
        if record is None or status is None or status.state is not State.DEAD:
            return None
        return OpenedLetter(
            letter=_letter(job_id, record), job=status.job, attempts=status.attempt,
            crashes=status.crashes, trail=status.trail,
        )  # fmt: skip

    def causes(self) -> dict[str, int]:
        """Return the number of letters of each cause, the most frequent first."""
        (found,) = self._read(("HGETALL", self.keys.causes))
        numbers = {cause: int(number) for cause, number in found.items()}
        return dict(sorted(numbers.items(), key=lambda item: (-item[1], item[0])))

    def _batch(self, cause: str | None, end: int) -> tuple[int, list[Letter]]:
        """Return where the next batch ends, and the letters before ``end``, newest first."""
        start, ids = self._in_order(end) if cause is None else self._of_cause(cause, end)
        records = self._read(("HMGET", self.keys.letters, *ids))[0] if ids else []
        places = range(start + len(ids) - 1, start - 1, -1)
        found = zip(ids, records, places, strict=True)
        return start, [_letter(job_id, record, place) for job_id, record, place in found if record]

    def _in_order(self, end: int) -> tuple[int, list[str]]:
        dead, kept = self.keys.dead, self.keys.kept
        while True:
            newer, older = self._read(("LLEN", dead), ("LLEN", kept))
            end = min(end, newer + older)
            start = max(0, end - _BATCH)
            commands: list[tuple[Any, ...]] = [("LLEN", kept)]
            if end > older:
                commands.append(("LRANGE", dead, older - end, -1 - max(0, start - older)))
            if start < older:
                commands.append(("LRANGE", kept, -min(end, older), -1 - start))
            older_now, *parts = self._read(*commands)
            if older_now == older:  # no trim came between
                return start, [job_id for part in parts for job_id in part]

    def _of_cause(self, cause: str, end: int) -> tuple[int, list[str]]:
        key = self.keys.cause(cause)
        (number,) = self._read(("ZCARD", key))
        end = min(end, number)
        start = max(0, end - _BATCH)
        ids = self._read(("ZRANGE", key, start, end - 1))[0] if end else []
        return start, ids[::-1]


def _parsed(cursor: str) -> tuple[int, int, str]:
    found = _CURSOR.fullmatch(cursor)
    if not found:
        raise ValueError(f"cursor: {cursor!r:.60} is from no letter")
    return int(found[1]), int(found[2]), found[3]


def _letter(job_id: str, record: str, place: int | None = None) -> Letter:
    found = json.loads(record)
    buried_ms = int(found["buried_at_ms"])
    return Letter(
        id=job_id, lane=found["lane"], cause=found["cause"], handler=found["handler"], caller=found["caller"],
        buried_at=from_ms(buried_ms), cursor="" if place is None else f"{place}-{buried_ms}-{job_id}",
    )  # fmt: skip
