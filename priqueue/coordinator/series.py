"""Series: what was counted and measured in each ten seconds, read back for charts and judgement.

Totals come from the scripts, gauges from the sweeper. A bucket without anything is a gap: nobody knows, which is not 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

from priqueue.coordinator.histograms import Histogram, fields_of
from priqueue.coordinator.inspection import Inspector
from priqueue.coordinator.keys import BUCKET_MS
from priqueue.coordinator.plans import Command, Plan

#: a point of a chart: means of 30 s
POINT_MS = 30_000
HOUR_MS = 3_600_000
_RECENT_MS = 60_000
_EVENTS = ("acked", "picks_full", "enqueued", "retried", "buried")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What happened from ``at_ms`` on, added up over those of its buckets that hold anything."""

    at_ms: int
    #: seconds that are known of
    known_s: int = 0
    #: by lane: jobs that worked, and picks made while every lane held work
    acked: Mapping[str, int] = field(default_factory=dict)
    picks_full: Mapping[str, int] = field(default_factory=dict)
    enqueued: Mapping[str, int] = field(default_factory=dict)
    #: by lane: runs that failed, whether they were retried or buried
    failed: Mapping[str, int] = field(default_factory=dict)
    #: leases held and slots there were, added up over the samples
    slots: int = 0
    capacity: int = 0
    #: by lane: how long jobs waited from ready to claimed; read for the last minute only
    waits: Mapping[str, Histogram] = field(default_factory=dict)

    def per_s(self, lane: str | None = None) -> float | None:
        """Return jobs that worked per second, of one lane or of all; None when nothing is known."""
        number = sum(self.acked.values()) if lane is None else self.acked.get(lane, 0)
        return number / self.known_s if self.known_s else None

    def enqueued_per_s(self, lane: str) -> float | None:
        """Return jobs of a lane that came in per second; None when nothing is known."""
        return self.enqueued.get(lane, 0) / self.known_s if self.known_s else None

    @property
    def error_rate(self) -> float | None:
        """Which part of the runs failed; None when there were none."""
        failed = sum(self.failed.values())
        runs = failed + sum(self.acked.values())
        return failed / runs if runs else None

    @property
    def utilisation(self) -> float | None:
        """Which part of the slots was in use; None when nobody measured, or there was no slot."""
        return self.slots / self.capacity if self.capacity else None

    def share(self, lane: str) -> float | None:
        """Return a lane's part of the picks made while every lane held work; None when there were none."""
        picks = sum(self.picks_full.values())
        return self.picks_full.get(lane, 0) / picks if picks else None


class Series(Inspector):
    """The reader of one queue's series."""

    def points(self, since_ms: int, now_ms: int) -> list[Sums]:
        """Return the points that are whole by now: those that begin after ``since_ms``, of the last hour at most."""
        end_ms = now_ms - now_ms % POINT_MS
        first_ms = max(since_ms - since_ms % POINT_MS + POINT_MS, end_ms - HOUR_MS)
        starts = range(first_ms, end_ms, POINT_MS)
        buckets = self._buckets(range(first_ms, end_ms, BUCKET_MS), self._fields())
        return [
            added(at_ms, [buckets[bucket_ms] for bucket_ms in range(at_ms, at_ms + POINT_MS, BUCKET_MS)])
            for at_ms in starts
        ]

    def _recent(self) -> Plan[Sums]:
        """Return the last minute: its whole buckets, added up."""
        (time,) = yield [("TIME",)]
        end_ms, lanes = self._ms(time) // BUCKET_MS * BUCKET_MS, self.settings.lane_names
        start_ms = end_ms - _RECENT_MS
        waits = [name for lane in lanes for name in fields_of("wait", lane)]
        starts, fields = range(start_ms, end_ms, BUCKET_MS), [*self._fields(), *waits]
        found = _by_start(starts, fields, (yield self._asked(starts, fields)))
        return replace(added(start_ms, list(found.values())), waits={lane: _waits(found, lane) for lane in lanes})

    def _fields(self) -> list[str]:
        """Return what a point is made of. A bucket holds much more, which nobody needs for an hour of them."""
        return [*(f"{event}:{lane}" for event in _EVENTS for lane in self.settings.lane_names), "slots", "capacity"]

    def _buckets(self, starts: Sequence[int], fields: Sequence[str]) -> dict[int, dict[str, int]]:
        """Return what each bucket holds of some fields, by its start."""
        return _by_start(starts, fields, self._read(*self._asked(starts, fields)) if starts else [])

    def _asked(self, starts: Sequence[int], fields: Sequence[str]) -> list[Command]:
        return [("HMGET", self.keys.series(at_ms), *fields) for at_ms in starts]


def _by_start(starts: Sequence[int], fields: Sequence[str], found: Sequence[Any]) -> dict[int, dict[str, int]]:
    return {
        at_ms: {name: int(value) for name, value in zip(fields, values or (), strict=False) if _is_number(value)}
        for at_ms, values in zip(starts, found, strict=True)
    }


def added(at_ms: int, buckets: Sequence[Mapping[str, int]]) -> Sums:
    """Return the sums of some buckets."""
    known = [bucket for bucket in buckets if bucket]
    return Sums(
        at_ms=at_ms,
        known_s=len(known) * BUCKET_MS // 1000,
        acked=_by_lane(known, "acked"),
        picks_full=_by_lane(known, "picks_full"),
        enqueued=_by_lane(known, "enqueued"),
        failed=_by_lane(known, "retried", "buried"),
        slots=sum(bucket.get("slots", 0) for bucket in known),
        capacity=sum(bucket.get("capacity", 0) for bucket in known),
    )


def merged(points: Sequence[Sums], span_ms: int) -> list[Sums]:
    """Return points of a longer span, each the sum of those that begin in it."""
    spans: dict[int, list[Sums]] = {}
    for point in points:
        spans.setdefault(point.at_ms - point.at_ms % span_ms, []).append(point)
    return [
        Sums(
            at_ms=at_ms, known_s=sum(point.known_s for point in inside),
            acked=_total([point.acked for point in inside]), picks_full=_total([point.picks_full for point in inside]),
            enqueued=_total([point.enqueued for point in inside]), failed=_total([point.failed for point in inside]),
            slots=sum(point.slots for point in inside), capacity=sum(point.capacity for point in inside),
        )
        for at_ms, inside in spans.items()
    ]  # fmt: skip


def _total(numbers: Sequence[Mapping[str, int]]) -> dict[str, int]:
    lanes = {lane for each in numbers for lane in each}
    return {lane: sum(each.get(lane, 0) for each in numbers) for lane in lanes}


def _waits(buckets: Mapping[int, Mapping[str, int]], lane: str) -> Histogram:
    texts = [{name: str(number) for name, number in bucket.items()} for bucket in buckets.values()]
    return reduce(add, (Histogram.of(text, "wait", lane) for text in texts))


def _is_number(value: str | None) -> bool:
    return value is not None and value.isdecimal()


def _by_lane(buckets: Sequence[Mapping[str, int]], *events: str) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for bucket in buckets:
        for name, number in bucket.items():
            event, _, lane = name.partition(":")
            if event in events:
                numbers[lane] = numbers.get(lane, 0) + number
    return numbers
