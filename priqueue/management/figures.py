"""Figures: the queue's statistics as a table for people and as a document for programs."""

import json
from dataclasses import asdict
from datetime import datetime
from typing import Any

from priqueue import health
from priqueue.conf import Settings
from priqueue.coordinator.inspection import LaneStats, Pause, Stats, WorkerStats
from priqueue.coordinator.overview import Snapshot
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
    whole |= asdict(stats)
    for name, lane in whole["lanes"].items():
        lane["share"] = share(stats, stats.lanes[name])
    for worker, known in zip(whole["workers"], stats.workers, strict=True):
        worker["state"] = health.worker_state(known, settings)
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


def share(stats: Stats, lane: LaneStats) -> float | None:
    """Return a lane's part of the picks that were made while every lane held work; None before the first."""
    picks = sum(other.picks_full for other in stats.lanes.values())
    return lane.picks_full / picks if picks else None


def _judgement(snapshot: Snapshot, settings: Settings) -> list[str]:
    findings = health.judge(snapshot, settings).findings
    return [visible(f"{finding.level}: {finding.text}") for finding in findings] or ["OK"]


def _lane_row(stats: Stats, name: str, lane: LaneStats) -> tuple[object, ...]:
    part = share(stats, lane)
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
    return (
        worker.id,
        slots,
        f"{worker.beat_s_ago:.1f} s ago",
        health.worker_state(worker, settings),
        ",".join(worker.lanes),
    )


def _encoded(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no place in JSON")
