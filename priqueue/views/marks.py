"""Marks: what happened to lanes and workers in the hour that the charts show, and how a page tells of it. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from priqueue.coordinator.overview import Snapshot
from priqueue.coordinator.series import HOUR_MS, POINT_MS
from priqueue.jobs import from_ms, to_ms
from priqueue.words import count, worker_name

_MOST, _NAMED = 30, 3
_WORDS = {
    "pause": "paused", "resume": "resumed", "start": "started", "drain": "asked to drain", "leave": "left",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mark:
    """One event: a lane was paused or resumed; a worker started, was asked to drain, or left."""

    at_ms: int
    #: "pause", "resume", "start", "drain", "leave"
    kind: str
    #: the lane, or the worker's id
    name: str
    #: who did it, and why; a worker starts and leaves by itself
    caller: str = ""
    reason: str = ""

    @property
    def key(self) -> tuple[int, str, str]:
        """What is the same, whether Redis tells of it or the audit log."""
        return self.at_ms, self.kind, self.name


@dataclass(frozen=True, slots=True)
class Row:
    """One line in the charts, and what is said of it. Workers that did the same within a point are one."""

    at: datetime
    kind: str
    what: str
    caller: str
    reason: str

    @property
    def at_s(self) -> int:
        """When it was, in whole seconds since 1970."""
        return to_ms(self.at) // 1000


def in_force(snapshot: Snapshot) -> Iterator[Mark]:
    """Give the marks of what is so now: the pauses, and the workers that are there."""
    for name, lane in snapshot.stats.lanes.items():
        if pause := lane.paused:
            yield Mark(to_ms(pause.since), "pause", name, pause.caller, pause.reason)
    for worker in snapshot.stats.workers:
        since_ms = worker.about.get("since_ms")
        if isinstance(since_ms, int):
            yield Mark(since_ms, "start", worker.id)


def rows(marks: Iterable[Mark], now_ms: int) -> list[Row]:
    """Return what to tell of the last hour, the newest first."""
    once = {mark.key: mark for mark in marks if now_ms - HOUR_MS < mark.at_ms <= now_ms}
    groups: dict[object, list[Mark]] = {}
    for mark in sorted(once.values(), key=lambda mark: mark.key):
        groups.setdefault(_group(mark), []).append(mark)
    newest = sorted(groups.values(), key=lambda group: group[0].key, reverse=True)[:_MOST]
    return [_row(group) for group in newest]


def _group(mark: Mark) -> object:
    if mark.kind in ("pause", "resume"):
        return mark.key
    return mark.kind, mark.at_ms // POINT_MS, mark.caller, mark.reason


def _row(group: Sequence[Mark]) -> Row:
    first, word = group[0], _WORDS[group[0].kind]
    what = f"{worker_name(first.name)} {word}"
    if len(group) > 1:
        names = ", ".join(worker_name(mark.name) for mark in group[:_NAMED])
        more = f" and {count(len(group) - _NAMED)} more" if len(group) > _NAMED else ""
        what = f"{count(len(group))} workers {word}: {names}{more}"
    return Row(from_ms(first.at_ms), first.kind, what, first.caller, first.reason)
