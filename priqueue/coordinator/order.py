"""Order: the dead letters in the order in which they were buried, read in bounded stretches from any place.

``dead`` followed by ``kept`` is the order, newest first. An entry may be a hole, left by a requeue or a purge; of
several with one id the newest is the letter, and ``holes`` says how many others there are. Places are counted from the
oldest end: new letters do not shift them. A trim does, so a mark knows its letter as well: where that is not found at
its place, the place is looked for by time.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

from priqueue.coordinator.inspection import Inspector

BATCH = 1000
LAST, NOBODY = 2**53, "-"
_PROBES, _PROBE = 32, 8
# The server's clock may have been set back by a little, and a trim may come between the steps of a search.
_MARGIN = BATCH


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the order, the id that stands there, and the time of its letter; NOBODY stands for any."""

    place: int
    ms: int
    id: str


class Entry(NamedTuple):
    """One entry of the order. A hole has no record; one that is ``doubled`` may stand for a newer one of its id."""

    place: int
    id: str
    record: dict[str, Any] | None
    doubled: bool = False
    #: when the letter was buried
    ms: int = 0


class Order(Inspector):
    """Reads the order of all letters, or of those of one cause, which has an index of its own."""

    def below(self, cause: str | None, place: int) -> list[Entry]:
        """Return the entries before a place, or before the end, newest first, a batch at most."""
        return self._entries(cause, None, place)

    def above(self, cause: str | None, place: int) -> list[Entry]:
        """Return the entries from a place on, newest first, a batch at most."""
        return self._entries(cause, place, place + BATCH)

    def before(self, cause: str | None, mark: Mark) -> tuple[int, int]:
        """Return the place before which older ones go on, and the time after which the first of them are not meant.

        That is LAST where the mark stands at its place: an older letter can tell a later time, of a clock set back.
        """
        found = self._find(cause, mark)
        if found is None:
            return _at_most(cause, mark, self.until(cause, mark.ms)), mark.ms
        return found, mark.ms if mark.id == NOBODY else LAST

    def behind(self, cause: str | None, mark: Mark) -> tuple[int, int]:
        """Return the place from which newer ones go on, and the time before which the first were given already."""
        found = self._find(cause, mark)
        if found is None:
            return _at_most(cause, mark, self.since(cause, mark.ms)), mark.ms
        return found + (mark.id != NOBODY), 0

    def _find(self, cause: str | None, mark: Mark) -> int | None:
        """Return the place of a mark; None where it is not any more: its entry left, or a trim has shifted it."""
        if mark.id == NOBODY:
            return mark.place
        if cause is not None:
            rank = self._read(("ZRANK", self.keys.cause(cause), mark.id))[0]
            return None if rank is None else int(rank)
        return mark.place if self._ids(cause, mark.place, mark.place + 1)[1] == [mark.id] else None

    def since(self, cause: str | None, ms: int) -> int:
        """Return a place before which all was buried before a time; not always the last such place."""
        if cause is not None:
            return int(self._read(("ZCOUNT", self.keys.cause(cause), "-inf", f"({ms}"))[0])
        return max(0, self._search(ms, newest=False)[0] - _MARGIN)

    def until(self, cause: str | None, ms: int) -> int:
        """Return a place from which on all was buried after a time; not always the first such place."""
        if cause is not None:
            return int(self._read(("ZCOUNT", self.keys.cause(cause), "-inf", ms))[0])
        return self._search(ms + 1, newest=True)[1] + _MARGIN

    def _search(self, ms: int, *, newest: bool) -> tuple[int, int]:
        """Return two places between which is the first letter that was buried at a time or later.

        Or with ``newest`` the last one that was buried before it: where the clock was set back, these are far apart.
        A step back that is hidden between two probes, less than a thirtieth of all letters, is not seen.
        """
        low, high = 0, sum(self._read(("LLEN", self.keys.dead), ("LLEN", self.keys.kept)))
        while high - low > BATCH:
            narrower = self._narrowed(low, high, ms, newest)
            if narrower == (low, high):
                break
            low, high = narrower
        return low, high

    def _narrowed(self, low: int, high: int, ms: int, newest: bool) -> tuple[int, int]:
        # The newest end, too: it is where a clock that was just set back tells earlier times.
        places = sorted({*range(low, high, max(1, (high - low) // _PROBES)), max(low, high - _PROBE)})
        found = [(place, time_ms) for place, time_ms in zip(places, self._times(places), strict=True) if time_ms]
        earlier = [place for place, time_ms in found if time_ms < ms]
        later = [place for place, time_ms in found if time_ms >= ms]
        if newest:
            older = max(earlier, default=low)
            newer = min((place for place in later if place > older), default=high)
        else:
            newer = min(later, default=high)
            older = max((place for place in earlier if place < newer), default=low)
        return older, min(high, newer + _PROBE)

    def _times(self, places: Sequence[int]) -> list[int | None]:
        """Return for each place when what stands there, or next to it, was buried; None among holes alone."""
        newer, older = self._read(("LLEN", self.keys.dead), ("LLEN", self.keys.kept))
        parts = [self._parts(place, min(place + _PROBE, newer + older), older) for place in places]
        found = iter(self._read(*(command for commands in parts for command in commands)))
        ids = [[job_id for _ in commands for job_id in next(found)] for commands in parts]
        together = [job_id for some in ids for job_id in some]
        records = iter(self._read(("HMGET", self.keys.letters, *together))[0] if together else ())
        return [_earliest([next(records) for _ in some]) for some in ids]

    def _entries(self, cause: str | None, start: int | None, end: int) -> list[Entry]:
        first, ids = self._ids(cause, start, end)
        if not ids:
            return []
        # Only where letters left: an index of one cause has no older entries at all.
        asks = cause is None and self._read(("HLEN", self.keys.holes))[0] > 0
        records, *older = self._read(
            ("HMGET", self.keys.letters, *ids), *((("HMGET", self.keys.holes, *ids),) if asks else ())
        )
        places = range(first + len(ids) - 1, first - 1, -1)
        others = older[0] if asks else repeat(None, len(ids))
        return [_entry(*each) for each in zip(places, ids, records, others, strict=True)]

    def _ids(self, cause: str | None, start: int | None, end: int) -> tuple[int, list[str]]:
        """Return the first place and the ids from there to the end, newest first, as far as there are any.

        Without a start it is a batch.
        """
        if cause is not None:
            key = self.keys.cause(cause)
            end = min(end, self._read(("ZCARD", key))[0])
            start = max(0, end - BATCH) if start is None else start
            return start, self._read(("ZRANGE", key, start, end - 1))[0][::-1] if end else []
        while True:
            newer, older = self._read(("LLEN", self.keys.dead), ("LLEN", self.keys.kept))
            last = min(end, newer + older)
            first = max(0, last - BATCH) if start is None else start
            older_now, *parts = self._read(("LLEN", self.keys.kept), *self._parts(first, last, older))
            if older_now == older:  # no trim came between
                return first, [job_id for part in parts for job_id in part]

    def _parts(self, start: int, end: int, older: int) -> list[tuple[Any, ...]]:
        """Return what reads these places, newest first, where the ``older`` oldest entries are those of ``kept``."""
        commands: list[tuple[Any, ...]] = []
        if end > max(older, start):
            commands.append(("LRANGE", self.keys.dead, older - end, -1 - max(0, start - older)))
        if start < min(end, older):
            commands.append(("LRANGE", self.keys.kept, -min(end, older), -1 - start))
        return commands


def _at_most(cause: str | None, mark: Mark, place: int) -> int:
    """Return a place that was found by time, no newer than a trim can have shifted the mark: it shifts to older ones.

    An index of one cause is in the order of time itself.
    """
    return place if cause is not None else min(place, mark.place)


def _entry(place: int, job_id: str, record: str | None, others: str | None) -> Entry:
    if record is None:
        return Entry(place, job_id, None)
    found = json.loads(record)
    return Entry(place, job_id, found, others is not None, int(found["buried_at_ms"]))


def _earliest(records: Sequence[str | None]) -> int | None:
    """Return the earliest time: an entry that stands for a newer one of its id tells too late a time."""
    return min((int(json.loads(record)["buried_at_ms"]) for record in records if record), default=None)
