"""Figures: the queue's statistics as a table for people and as a document for programs."""

import json
from dataclasses import asdict
from datetime import datetime
from math import inf
from typing import Any

from priqueue import health
from priqueue.conf import Settings
from priqueue.coordinator.histograms import BOUNDS_MS, MEASURES, Histogram
from priqueue.coordinator.overview import Snapshot
from priqueue.coordinator.stats import LaneStats, Pause, Stats, WorkerStats
from priqueue.management.text import described, table, utc, visible

_LANE_HEADS = (
    "lane", "weight", "share", "ready", "delayed", "in flight", "oldest",
    "enqueued", "acked", "retried", "buried", "reclaimed",
)  # fmt: skip
_WORKER_HEADS = ("worker", "slots", "last beat", "state", "lanes")


def document(snapshot: Snapshot, settings: Settings) -> str:
    """Return everything as one JSON document."""
    stats, judged = snapshot.stats, health.judge(snapshot, settings)
    whole: dict[str, Any] = {
        "health": {"level": judged.level, "findings": [asdict(finding) for finding in judged.findings]}
    }
    whole |= asdict(stats) | {"utilisation": stats.utilisation}
    for name, lane in whole["lanes"].items():
        lane["share"] = stats.shares[name]
        lane |= {measure: _measured(getattr(stats.lanes[name], measure)) for measure in MEASURES}
    for worker, known in zip(whole["workers"], stats.workers, strict=True):
        worker["state"] = known.state(settings)
    return json.dumps({"namespace": settings.namespace, **whole}, default=_encoded)


def screen(snapshot: Snapshot, settings: Settings) -> str:
    """Return everything as lines for a person: first what is wrong, in the words of the pages."""
    stats = snapshot.stats
    lanes = table(_LANE_HEADS, [_lane_row(stats, name, lane) for name, lane in stats.lanes.items()])
    pauses = [_pause(name, lane.paused) for name, lane in stats.lanes.items() if lane.paused]
    workers = [_worker_row(worker, settings) for worker in stats.workers]
    warnings = left_behind(stats)
    parts = (
        [described(settings), *_judgement(snapshot, settings), "", lanes, *pauses]
        + ["", f"dead letters: {stats.dead}", ""]
        + ([table(_WORKER_HEADS, workers)] if workers else ["no workers"])
        + (["", *warnings] if warnings else [])
    )
    return "\n".join(parts)


def left_behind(stats: Stats) -> list[str]:
    """Return a warning for each lane that left the configuration while it held jobs."""
    return [
        f"warning: lane {visible(lane)} left the configuration with {number} jobs in it: no worker takes them"
        for lane, number in stats.left_behind.items()
    ]


def _measured(histogram: Histogram) -> dict[str, Any]:
    """Return a histogram as programs read it: numbers by the end of their range, in ms; what has no end is null."""
    names = [*map(str, BOUNDS_MS), "inf"]
    ends = {f"p{part}_ms": histogram.at_most_ms(part / 100) for part in (50, 95)}
    return {
        "count": histogram.count, "sum_ms": histogram.sum_ms, **{name: _finite(end) for name, end in ends.items()},
        "le_ms": dict(zip(names, histogram.numbers, strict=True)),
    }  # fmt: skip


def _finite(number: float | None) -> float | None:
    return None if number == inf else number


def _judgement(snapshot: Snapshot, settings: Settings) -> list[str]:
    findings = health.judge(snapshot, settings).findings
    return [visible(f"{finding.level}: {finding.text}") for finding in findings] or ["OK"]


def _lane_row(stats: Stats, name: str, lane: LaneStats) -> tuple[object, ...]:
    part = stats.shares[name]
    return (
        name, lane.weight, "-" if part is None else f"{part:.1%}", lane.ready, lane.delayed, lane.in_flight,
        f"{lane.oldest_ready_s:.1f} s" if lane.ready else "-",
        lane.enqueued, lane.acked, lane.retried, lane.buried, lane.reclaimed,
    )  # fmt: skip


def _pause(name: str, pause: Pause) -> str:
    until = f" until {utc(pause.until)}" if pause.until else ""
    return visible(f"{name} is paused by {pause.caller} since {utc(pause.since)}{until}: {pause.reason}")


def _worker_row(worker: WorkerStats, settings: Settings) -> tuple[object, ...]:
    slots = f"{worker.in_flight}/{worker.concurrency}"
    return worker.id, slots, f"{worker.beat_s_ago:.1f} s ago", worker.state(settings), ",".join(worker.lanes)


def _encoded(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no place in JSON")
