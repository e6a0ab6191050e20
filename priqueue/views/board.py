"""Board: the overview's rows, made of one look at the queue. Templates draw them; what is unknown stays None."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from priqueue import health
from priqueue.conf import Settings
from priqueue.coordinator.overview import Cause, Snapshot
from priqueue.coordinator.series import Sums
from priqueue.coordinator.stats import LaneStats, WorkerStats
from priqueue.jobs import from_ms
from priqueue.words import UNKNOWN, at_most, count, duration, percent, rate, size

_WORKERS, _CAUSES = 50, 8
_ROUNDS = 10
_ORDER = ("gone", "late", "draining", "alive")
_DUTIES = ("ticker", "sweeper", "auditor")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRow:
    """A lane, its figures and what is wrong with it."""

    name: str
    #: its place among the lanes: colour and line of the charts
    place: int
    stats: LaneStats
    #: the part of the picks that its weight promises
    promised: float
    share: float | None
    in_per_s: float | None
    out_per_s: float | None
    failed: int | None
    #: half of the jobs claimed in the last minute, and 95 of 100, had waited no longer than this
    half_waited: str
    most_waited: str
    late: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """A worker, how it is, and what it holds."""

    stats: WorkerStats
    state: str
    beat_at: datetime
    since: datetime | None
    version: str
    held: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The title of a chart: its current value, its threshold, and on which side of that it is, in words."""

    name: str
    title: str
    value: str
    #: over what it is
    window: str
    slo: str
    #: "" when there is no threshold or no value
    verdict: str
    breached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A duty, or the server: how it is in a word, and its figure."""

    name: str
    ok: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """All rows of the overview."""

    at: datetime
    lanes: Sequence[LaneRow]
    figures: Sequence[Figure]
    causes: Sequence[Cause]
    dead: int
    buried: int
    workers: Sequence[WorkerRow]
    #: workers beyond those shown
    more_workers: int
    slots: int
    capacity: int
    services: Sequence[Service]
    is_empty: bool


def board(snapshot: Snapshot, settings: Settings) -> Board:
    """Return the rows for a snapshot."""
    rows = workers(snapshot, settings)
    present = [row.stats for row in rows if row.state != "gone"]
    lanes = [_lane(place, name, snapshot, settings) for place, name in enumerate(snapshot.stats.lanes)]
    return Board(
        at=from_ms(snapshot.at_ms), lanes=lanes, figures=_figures(snapshot, settings),
        causes=snapshot.causes[:_CAUSES], dead=snapshot.stats.dead, buried=snapshot.buried,
        workers=rows[:_WORKERS], more_workers=max(0, len(rows) - _WORKERS),
        slots=sum(worker.in_flight for worker in present), capacity=sum(worker.concurrency for worker in present),
        services=[*_duties(snapshot, settings), _memory(snapshot)],
        is_empty=not any(lane.stats.enqueued for lane in lanes),
    )  # fmt: skip


def workers(snapshot: Snapshot, settings: Settings) -> list[WorkerRow]:
    """Return all known workers, those in trouble first."""
    rows = [_worker(worker, snapshot, settings) for worker in snapshot.stats.workers]
    return sorted(rows, key=lambda row: (_ORDER.index(row.state), row.stats.id))


def _lane(place: int, name: str, snapshot: Snapshot, settings: Settings) -> LaneRow:
    stats, recent = snapshot.stats.lanes[name], snapshot.recent
    return LaneRow(
        name=name, place=place, stats=stats, share=recent.share(name) if _is_enough(snapshot, settings) else None,
        promised=stats.weight / sum(lane.weight for lane in settings.lanes),
        in_per_s=recent.enqueued_per_s(name), out_per_s=recent.per_s(name),
        failed=recent.failed.get(name, 0) if recent.known_s else None,
        half_waited=_waited(recent, name, 0.5), most_waited=_waited(recent, name, 0.95),
        late=health.is_late(name, stats, settings),
    )  # fmt: skip


def _waited(recent: Sums, lane: str, part: float) -> str:
    return at_most(recent.waits[lane].at_most_ms(part)) if lane in recent.waits else UNKNOWN


def _is_enough(snapshot: Snapshot, settings: Settings) -> bool:
    """Return whether enough picks were made while all lanes held work: of a few, every share is far from its weight."""
    return sum(snapshot.recent.picks_full.values()) >= _ROUNDS * sum(lane.weight for lane in settings.lanes)


def _worker(worker: WorkerStats, snapshot: Snapshot, settings: Settings) -> WorkerRow:
    since_ms = worker.about.get("since_ms")
    return WorkerRow(
        stats=worker, state=worker.state(settings),
        beat_at=from_ms(snapshot.at_ms) - timedelta(seconds=worker.beat_s_ago),
        since=from_ms(since_ms) if isinstance(since_ms, int | float) else None,
        version=str(worker.about.get("version", "")), held=snapshot.held.get(worker.id, ()),
    )  # fmt: skip


def _figures(snapshot: Snapshot, settings: Settings) -> list[Figure]:
    recent, slo = snapshot.recent, settings.slo
    per_s, floor = recent.per_s(), slo.throughput_per_s
    return [
        Figure(
            name="throughput", title="Throughput", value=UNKNOWN if per_s is None else f"{rate(per_s)}/s",
            window="jobs that worked, per second of the last minute",
            slo="" if floor is None else f"{rate(floor)}/s", breached=_is(per_s, floor, below=True),
            verdict=_verdict(per_s, floor, "below"),
        ),
        _part("errors", "Error rate", recent.error_rate, slo.error_rate, "runs of the last minute that failed"),
        _part("load", "Utilisation", recent.utilisation, slo.utilisation, "slots in use, mean of the last minute"),
    ]  # fmt: skip


def _part(name: str, title: str, value: float | None, slo: float | None, window: str) -> Figure:
    return Figure(
        name=name, title=title, value=UNKNOWN if value is None else percent(value), window=window,
        slo="" if slo is None else percent(slo), breached=_is(value, slo), verdict=_verdict(value, slo, "above"),
    )  # fmt: skip


def _is(value: float | None, slo: float | None, *, below: bool = False) -> bool:
    return value is not None and slo is not None and (value < slo if below else value > slo)


def _verdict(value: float | None, slo: float | None, side: str) -> str:
    if value is None or slo is None:
        return ""
    return f"{side} its SLO" if _is(value, slo, below=side == "below") else "OK"


def _duties(snapshot: Snapshot, settings: Settings) -> list[Service]:
    return [_duty(duty, snapshot, settings) for duty in _DUTIES if duty != "auditor" or settings.audit != "off"]


def _duty(duty: str, snapshot: Snapshot, settings: Settings) -> Service:
    silent = health.silent_duty(duty, snapshot, settings)
    text = silent or f"{duration(snapshot.seen_s[duty])} ago"
    if duty == "auditor" and snapshot.backlog:
        text = f"{text}, {count(snapshot.backlog)} behind"
    return Service(name=duty, ok=silent is None, text=text)


def _memory(snapshot: Snapshot) -> Service:
    used, limit = snapshot.memory_bytes, snapshot.memory_limit_bytes
    if used is None:
        return Service(name="Redis", ok=True, text=f"{UNKNOWN} (it does not say)")
    if limit is None:
        return Service(name="Redis", ok=True, text=f"{size(used)}, no limit")
    return Service(name="Redis", ok=used / limit <= health.MEMORY, text=f"{percent(used / limit)} of {size(limit)}")
