"""Stats: the queue in figures, as values, and how they are made of what the server answers; pure.

Totals count since the queue's store began, or was lost; they never shrink while it lives.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from priqueue.conf import Settings
from priqueue.coordinator.histograms import MEASURES, Histogram
from priqueue.jobs import from_ms

#: who has to have a turn again and again for jobs to move
DUTIES = ("ticker", "sweeper", "auditor")
WORKER_STATES = ("alive", "late", "draining", "gone")
#: what is counted for each lane
TOTALS = (
    "enqueued", "promoted", "picks", "picks_full", "acked", "retried", "buried", "crashed", "released", "reclaimed",
    "cancelled", "requeued", "purged", "bad_signatures", "failed_pushes", "ghosts", "foreign",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Who paused a lane, why and since when."""

    caller: str
    reason: str
    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStats:
    """The figures of one lane."""

    weight: int
    ready: int
    delayed: int
    in_flight: int
    oldest_ready_s: float
    paused: Pause | None
    enqueued: int
    promoted: int
    picks: int
    #: picks made while every lane of the pool held work: the ones that weights promise something about
    picks_full: int
    acked: int
    retried: int
    buried: int
    #: deaths of a process that a job was guilty of; its worker lived on
    crashed: int
    released: int
    #: leases taken over: their workers were lost
    reclaimed: int
    cancelled: int
    requeued: int
    purged: int
    #: buried unrun: not signed by us
    bad_signatures: int
    #: lost after the commit: the queue did not take them
    failed_pushes: int
    #: ids without a job, stepped over
    ghosts: int
    #: foreign values at keys of this lane, stepped over
    foreign: int
    #: from ready to claimed
    wait: Histogram
    #: from due to claimed, of what was delayed
    lateness: Histogram
    #: of handlers, whether it worked or not
    run: Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStats:
    """One worker: what it registered, what it holds and when it was last heard of."""

    id: str
    lanes: Sequence[str]
    concurrency: int
    in_flight: int
    beat_s_ago: float
    draining: bool
    about: Mapping[str, Any]

    def state(self, settings: Settings) -> str:
        """Return how it is, by its last beat: late after the time of one, gone after that of two."""
        if self.beat_s_ago > settings.lease_s:
            return "gone"
        if self.beat_s_ago > settings.heartbeat_s:
            return "late"
        return "draining" if self.draining else "alive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The whole queue in figures."""

    lanes: Mapping[str, LaneStats]
    dead: int
    workers: Sequence[WorkerStats]
    #: leases held by workers that are not gone, and how many those may hold
    slots: int
    capacity: int
    #: lanes that left the configuration while they held jobs: name → jobs still there
    left_behind: Mapping[str, int]
    #: audit events that wait for an auditor, and the age of the oldest
    audit_backlog: int
    audit_oldest_s: float
    #: ticker, sweeper, auditor → seconds since the last turn of any; None for never
    last_turn_s: Mapping[str, float | None]
    #: policy of the rate limiter → calls refused
    refused: Mapping[str, int]
    #: beats that came half an interval late or later
    late_beats: int
    #: None where the server does not say; a limit of 0 is none
    memory_bytes: int | None
    memory_limit_bytes: int | None

    @property
    def shares(self) -> dict[str, float | None]:
        """Lane → its part of the picks that were made while every lane held work; None before the first."""
        total = sum(lane.picks_full for lane in self.lanes.values())
        return {name: lane.picks_full / total if total else None for name, lane in self.lanes.items()}

    @property
    def utilisation(self) -> float | None:
        """The part of all slots that hold a lease; None without workers."""
        return self.slots / self.capacity if self.capacity else None


def lane_stats(counters: Mapping[str, str], lane: str, **gauges: Any) -> LaneStats:
    """Return a lane's figures out of the totals, beside the gauges as they are given."""
    figures: dict[str, Any] = {name: int(counters.get(f"{name}:{lane}", 0)) for name in TOTALS}
    figures |= {name: Histogram.of(counters, name, lane) for name in MEASURES}
    return LaneStats(**gauges, **figures)


def refusals(counters: Mapping[str, str]) -> dict[str, int]:
    """Return how many calls were refused under each policy of the rate limiter."""
    found = {field.partition(":")[2]: number for field, number in counters.items() if field.startswith("refused:")}
    return {policy: int(number) for policy, number in sorted(found.items())}


def pause_of(record: str | None) -> Pause | None:
    """Return a pause as it is stored; None where there is none."""
    if record is None:
        return None
    found = json.loads(record)
    until_ms = found.get("until_ms")
    return Pause(
        caller=found["caller"], reason=found["reason"], since=from_ms(found["since_ms"]),
        until=None if until_ms is None else from_ms(until_ms),
    )  # fmt: skip


def worker_stats(
    records: Mapping[str, str], beats: Mapping[str, str], slots: Mapping[str, str], now_ms: int
) -> list[WorkerStats]:
    """Return the workers, by id, out of what they registered, their last beats and what they hold."""
    return [
        _worker(worker_id, json.loads(record), int(slots.get(worker_id, 0)), now_ms - int(beats.get(worker_id, 0)))
        for worker_id, record in sorted(records.items())
    ]


def _worker(worker_id: str, record: dict[str, Any], in_flight: int, silent_ms: int) -> WorkerStats:
    return WorkerStats(
        id=worker_id, lanes=record.pop("lanes"), concurrency=record.pop("concurrency"), in_flight=in_flight,
        beat_s_ago=silent_ms / 1000, draining=record.pop("drain", False), about=record,
    )  # fmt: skip
