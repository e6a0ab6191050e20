"""Letters: the reader of what is dead, newest first or oldest first, from any letter on."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import dropwhile
from typing import Any

from priqueue.clock import monotonic_s
from priqueue.coordinator import order
from priqueue.coordinator.dead import Filter, Latest, Letter, OpenedLetter
from priqueue.coordinator.inspection import attempt_of
from priqueue.coordinator.order import LAST, NOBODY, Entry, Mark, Order
from priqueue.jobs import Job, from_ms, to_ms

__all__ = ["Count", "Filter", "Latest", "Letter", "Letters", "OpenedLetter", "Page", "Stretch"]

_LOOKED_AT_BY_A_PAGE, _LOOKED_AT_BY_A_COUNT = 10_000, 20_000
_PAGE_S, _COUNT_S = 0.12, 0.2
_CURSOR = re.compile(r"([0-9]{1,16})-([0-9]{1,16})-(\S{1,200})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What one bounded read found: the letters that are meant, in the order of reading."""

    letters: Sequence[Letter]
    #: what goes on behind the last entry that was looked at
    cursor: str
    #: how many entries were looked at
    looked: int
    #: whether there are entries behind it
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some letters, newest first, and what asks for those next to them: "" where there are none, as far as is known."""

    letters: Sequence[Letter]
    older: str = ""
    newer: str = ""
    #: entries that were looked at; when these were too many, the page may have fewer letters than it has room for
    looked: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many letters are meant, among those looked at so far."""

    number: int
    #: what counts on from there; "" when all are counted
    cursor: str


class Letters(Order):
    """The inspector of one queue's dead letters."""

    def page(self, wanted: Filter, cursor: str = "", *, size: int = 50, newer: bool = False) -> Page:
        """Return the letters next to a cursor, ``size`` at most; without one the newest, or with ``newer`` the oldest.

        It looks at 10,000 entries at most, or at as many as it can in a short time. Raises ValueError for a cursor
        that is from none.
        """
        found: list[Letter] = []
        looked, on, give_up_at_s = 0, "", monotonic_s() + _PAGE_S
        for stretch in self.walk(wanted, cursor, newer=newer):
            found, looked = [*found, *stretch.letters], looked + stretch.looked
            if len(found) > size:
                on = found[size - 1].cursor
                break
            if stretch.more and (looked >= _LOOKED_AT_BY_A_PAGE or monotonic_s() > give_up_at_s):
                on = stretch.cursor
                break
        letters = found[:size]
        back = letters[0].cursor if letters else cursor
        if newer:
            return Page(letters=letters[::-1], older=back if cursor else "", newer=on, looked=looked)
        return Page(letters=letters, older=on, newer=back if cursor else "", looked=looked)

    def count(self, wanted: Filter, cursor: str = "") -> Count:
        """Count letters that are meant, in one step that is short, or looks at 20,000 entries; a cursor counts on."""
        number, looked, give_up_at_s = 0, 0, monotonic_s() + _COUNT_S
        for stretch in self.walk(wanted, cursor):
            number, looked = number + len(stretch.letters), looked + stretch.looked
            if stretch.more and (looked >= _LOOKED_AT_BY_A_COUNT or monotonic_s() > give_up_at_s):
                return Count(number=number, cursor=stretch.cursor)
        return Count(number=number, cursor="")

    def beside(self, wanted: Filter, cursor: str, *, newer: bool = False) -> Stretch | None:
        """Return the first stretch behind a cursor that has a letter that is meant; None where no letter is.

        One without letters is where it gave up: as ``page`` does, after half its time, as a page asks for both sides.
        Raises ValueError for a cursor that is from none.
        """
        looked, give_up_at_s = 0, monotonic_s() + _PAGE_S / 2
        for stretch in self.walk(wanted, cursor, newer=newer):
            looked += stretch.looked
            too_far = looked >= _LOOKED_AT_BY_A_PAGE or monotonic_s() > give_up_at_s
            if stretch.letters or (stretch.more and too_far):
                return stretch
        return None

    def scan(self, wanted: Filter, cursor: str = "") -> Iterator[Letter]:
        """Give the letters that are meant, newest first, reading as many as are taken.

        A ``cursor`` goes on behind the letter it is from. Raises ValueError for one that is from none.
        """
        for stretch in self.walk(wanted, cursor):
            yield from stretch.letters

    def walk(self, wanted: Filter, cursor: str = "", *, newer: bool = False) -> Iterator[Stretch]:
        """Give the letters that are meant, stretch by stretch: from the newest on, or from the oldest with ``newer``.

        A ``cursor`` goes on behind the letter or the stretch it is from. Raises ValueError for one that is from none.
        """
        mark = _parsed(cursor) if cursor else None
        return self._to_newer(wanted, mark) if newer else self._to_older(wanted, mark)

    def at(self, wanted: Filter, moment: datetime) -> str:
        """Return the cursor behind which the first of these letters is that were buried at a time or before."""
        ms = to_ms(moment)
        return _cursor(Mark(self.until(wanted.cause, ms), ms, NOBODY))

    def _to_older(self, wanted: Filter, mark: Mark | None) -> Iterator[Stretch]:
        cause, fits, again = wanted.cause, wanted.test(), set[str]()
        if mark is None:
            mark = Mark(LAST if wanted.until is None else self.until(cause, to_ms(wanted.until)), LAST, NOBODY)
        since_ms, began_ms, given = 0 if wanted.since is None else to_ms(wanted.since), mark.ms, {mark.id}
        while True:
            place, to_ms_on = self.before(cause, mark)
            if not (entries := self.below(cause, place)):
                return
            letters, meant = [], _from_first(entries, 0, to_ms_on)
            for entry in meant:
                # A job that died again has its old entry left, too: of two, the one that is met first counts.
                earlier = entry.doubled and (entry.id in again or entry.ms > began_ms)
                if not earlier and entry.id not in given:
                    letters.append(entry)
                    again |= {entry.id} if entry.doubled else set()
            # Where a time was looked for and is not reached, it is looked for behind this stretch as well.
            stands = bool(meant) or to_ms_on == LAST
            mark, given = _moved(mark, entries[-1], letters, stands), {entry.id for entry in entries}
            yield _stretch(fits, letters, len(entries), mark, mark.place > 0)
            too_old = letters and all(letter.ms < since_ms for letter in letters)
            # Where the clock was set back, later letters can follow on those that are too old.
            if too_old and mark.place <= self.since(cause, since_ms):
                return

    def _to_newer(self, wanted: Filter, mark: Mark | None) -> Iterator[Stretch]:
        cause, fits, again = wanted.cause, wanted.test(), set[str]()
        if mark is None:
            mark = Mark(0 if wanted.since is None else self.since(cause, to_ms(wanted.since)), 0, NOBODY)
        until_ms, began_ms, given = LAST if wanted.until is None else to_ms(wanted.until), mark.ms, {mark.id}
        from_ms_on = 0
        while True:
            place, given_ms = self.behind(cause, mark)
            if not (entries := self.above(cause, place)):
                return
            from_ms_on = max(from_ms_on, given_ms)
            letters, meant = [], _from_first(_without_older(entries)[::-1], from_ms_on, LAST)
            for entry in meant:
                # Of a letter that died again an older entry may have stood for it already, on an earlier page.
                earlier = entry.doubled and (entry.id in again or entry.ms < began_ms)
                if not earlier and entry.id not in given:
                    letters.append(entry)
                    again |= {entry.id} if entry.doubled else set()
            from_ms_on = 0 if meant else from_ms_on
            mark, given = _moved(mark, entries[0], letters), {entry.id for entry in entries}
            yield _stretch(fits, letters, len(entries), mark, len(entries) == order.BATCH)
            too_late = letters and all(letter.ms > until_ms for letter in letters)
            if too_late and mark.place >= self.until(cause, until_ms):
                return

    def among(self, job_ids: Sequence[str]) -> list[Letter]:
        """Return those of some ids that are letters, in their order."""
        records = self._read(("HMGET", self.keys.letters, *job_ids))[0] if job_ids else []
        return [
            _letter(Entry(-1, job_id, record, ms=record["buried_at_ms"])) for job_id, record in _pairs(job_ids, records)
        ]

    def open(self, job_id: str) -> OpenedLetter | None:
        """Return a letter with its job and its trail; None when the job is not dead."""
        return next(iter(self.opened(self.among([job_id]))), None)

    def opened(self, letters: Sequence[Letter]) -> list[OpenedLetter]:
        """Return letters with their jobs and trails, without those that are gone by now. For a hundred or so."""
        if not letters:
            return []
        ids = [letter.id for letter in letters]
        trails = [("LRANGE", self.keys.trail(job_id), 0, -1) for job_id in ids]
        jobs, counts, still, *found = self._read(
            ("HMGET", self.keys.jobs, *ids), ("HMGET", self.keys.attempts, *ids), ("HMGET", self.keys.letters, *ids),
            *trails,
        )  # fmt: skip
        return [
            _opened(letter, self._decoded(letter.id, envelope), count, trail)
            for letter, envelope, count, is_letter, trail in zip(letters, jobs, counts, still, found, strict=True)
            if envelope is not None and is_letter is not None
        ]

    def latest(self, letters: Sequence[Letter]) -> list[Latest]:
        """Return how often these jobs were tried, and their latest attempts."""
        ids = [letter.id for letter in letters]
        if not ids:
            return []
        counts, *lines = self._read(
            ("HMGET", self.keys.attempts, *ids), *(("LINDEX", self.keys.trail(job_id), -1) for job_id in ids)
        )
        return [
            Latest(*_numbers(count), attempt_of(line) if line else None)
            for count, line in zip(counts, lines, strict=True)
        ]

    def causes(self) -> dict[str, int]:
        """Return the number of letters of each cause, the most frequent first."""
        (found,) = self._read(("HGETALL", self.keys.causes))
        numbers = {cause: int(number) for cause, number in found.items()}
        return dict(sorted(numbers.items(), key=lambda item: (-item[1], item[0])))


def _pairs(ids: Sequence[str], records: Sequence[str | None]) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((job_id, json.loads(record)) for job_id, record in zip(ids, records, strict=True) if record)


def _numbers(count: str | None) -> tuple[int, int]:
    failures, crashes, *_ = (count or "0 0").split()
    return int(failures), int(crashes)


def _opened(letter: Letter, job: Job, count: str | None, trail: Sequence[str]) -> OpenedLetter:
    failures, crashes = _numbers(count)
    return OpenedLetter(
        letter=letter, job=job, attempts=failures, crashes=crashes, trail=[attempt_of(line) for line in trail]
    )


def _without_older(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries that are letters, and not older ones of a letter that died again.

    Such a one tells the time of its newest, so it is later than a neighbour that came after it.
    """
    kept, later_ms = [], LAST
    for entry in entries:
        if entry.record and not (entry.doubled and entry.ms > later_ms):
            kept.append(entry)
            later_ms = later_ms if entry.doubled else entry.ms
    return kept


def _from_first(entries: Sequence[Entry], earliest_ms: int, latest_ms: int) -> list[Entry]:
    """Return the letters from the first one on that is within these times; those behind it tell any time."""
    letters = (entry for entry in entries if entry.record)
    return list(dropwhile(lambda letter: not earliest_ms <= letter.ms <= latest_ms, letters))


def _moved(mark: Mark, end: Entry, letters: Sequence[Entry], stands: bool = True) -> Mark:
    return Mark(end.place, letters[-1].ms if letters else mark.ms, end.id if stands else NOBODY)


def _parsed(cursor: str) -> Mark:
    found = _CURSOR.fullmatch(cursor)
    if not found:
        raise ValueError(f"cursor: {cursor!r:.60} is from no letter")
    return Mark(int(found[1]), int(found[2]), found[3])


def _cursor(mark: Mark) -> str:
    return f"{mark.place}-{mark.ms}-{mark.id}"


def _stretch(
    fits: Callable[[Mapping[str, Any]], bool], letters: Sequence[Entry], looked: int, end: Mark, more: bool
) -> Stretch:
    meant = [_letter(entry) for entry in letters if entry.record and fits(entry.record)]
    return Stretch(letters=meant, cursor=_cursor(end), looked=looked, more=more)


def _letter(entry: Entry) -> Letter:
    found: dict[str, Any] = entry.record or {}
    return Letter(
        id=entry.id, lane=found["lane"], cause=found["cause"], handler=found["handler"], caller=found["caller"],
        buried_at=from_ms(entry.ms), replaced_by=found.get("replaced_by", ""),
        cursor="" if entry.place < 0 else _cursor(Mark(entry.place, entry.ms, entry.id)),
    )  # fmt: skip
