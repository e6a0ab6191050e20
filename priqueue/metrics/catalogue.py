"""Catalogue: every metric there is. Rules, dashboards and runbooks may name these and no others; tests hold them to it.

Each has the label ``queue``, the namespace, and at most one more, whose values come from the configuration or from
this code: never from a job, a caller or a worker. Names and units follow Prometheus: seconds, bytes, ratios from
0 to 1, and ``_total`` for what only grows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Literal, TypeAlias

from priqueue.conf import Settings
from priqueue.coordinator.histograms import Histogram
from priqueue.coordinator.stats import WORKER_STATES, LaneStats, Stats

Value: TypeAlias = float | Histogram | None
#: label → value; what is None is not exposed
Values: TypeAlias = Mapping[str, Value]
Reader: TypeAlias = Callable[[Stats, Settings], Values]

UP = "priqueue_up"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, and how its values are read from the queue's figures."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    #: the label beside ``queue``, "" for none
    label: str
    help: str
    read: Reader

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its time series, as queries have them."""
        ends = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
        return tuple(f"{self.name}{end}" for end in ends[self.kind])


def _of_lanes(read: Callable[[LaneStats], Value]) -> Reader:
    return lambda stats, _: {name: read(lane) for name, lane in stats.lanes.items()}


def _counter(name: str, help_text: str, read: Callable[[LaneStats], Value]) -> Metric:
    return Metric(f"priqueue_{name}", "counter", "lane", help_text, _of_lanes(read))


def _lane_gauge(name: str, help_text: str, read: Callable[[LaneStats], Value]) -> Metric:
    return Metric(f"priqueue_{name}", "gauge", "lane", help_text, _of_lanes(read))


def _histogram(name: str, help_text: str, read: Callable[[LaneStats], Value]) -> Metric:
    return Metric(f"priqueue_{name}", "histogram", "lane", help_text, _of_lanes(read))


def _gauge(name: str, help_text: str, read: Callable[[Stats], Value]) -> Metric:
    return Metric(f"priqueue_{name}", "gauge", "", help_text, lambda stats, _: {"": read(stats)})


def _slo(name: str, help_text: str, read: Callable[[Settings], Value]) -> Metric:
    return Metric(f"priqueue_slo_{name}", "gauge", "", help_text, lambda _, settings: {"": read(settings)})


def _workers(stats: Stats, settings: Settings) -> Values:
    states = [worker.state(settings) for worker in stats.workers]
    return {state: states.count(state) for state in WORKER_STATES}


def _last_turns(stats: Stats, settings: Settings) -> Values:
    """Return the seconds since each duty's last turn, inf for never; no auditor's where there is no audit log."""
    return {
        duty: inf if ago_s is None else ago_s
        for duty, ago_s in stats.last_turn_s.items()
        if duty != "auditor" or settings.audit != "off"
    }


def _slo_waits(_: Stats, settings: Settings) -> Values:
    return {name: settings.slo.wait_s.get(name) for name in settings.lane_names}


METRICS = (
    # ── what happens ──
    _counter("jobs_enqueued", "Jobs taken in, ready or delayed.", lambda lane: lane.enqueued),
    _counter("jobs_promoted", "Delayed jobs that became due and ready.", lambda lane: lane.promoted),
    _counter("jobs_acked", "Runs that worked.", lambda lane: lane.acked),
    _counter("jobs_retried", "Runs that failed and will be repeated.", lambda lane: lane.retried),
    _counter("jobs_buried", "Jobs that became dead letters.", lambda lane: lane.buried),
    _counter("jobs_released", "Jobs given back unrun.", lambda lane: lane.released),
    _counter("jobs_reclaimed", "Leases that lapsed: their workers were lost.", lambda lane: lane.reclaimed),
    _counter("jobs_cancelled", "Jobs cancelled before they ran.", lambda lane: lane.cancelled),
    _counter("jobs_requeued", "Dead letters made ready again by a person.", lambda lane: lane.requeued),
    _counter("jobs_purged", "Dead letters deleted by a person.", lambda lane: lane.purged),
    _counter("crashes", "Processes lost while they held a job: children that died of it, and workers.",
             lambda lane: lane.crashed + lane.reclaimed),
    _counter("bad_signatures", "Jobs buried unrun: no key of ours had signed them.", lambda lane: lane.bad_signatures),
    _counter("failed_pushes", "Jobs lost after their transaction committed: the queue did not take them.",
             lambda lane: lane.failed_pushes),
    _counter("ghosts", "Ids without a job, stepped over.", lambda lane: lane.ghosts),
    _counter("foreign_values", "Values of a foreign type at keys of the queue, stepped over.",
             lambda lane: lane.foreign),
    _counter("picks", "Picks: one for each claim.", lambda lane: lane.picks),
    _counter("picks_full", "Picks made while every lane of the pool held work: what weights share out.",
             lambda lane: lane.picks_full),
    Metric("priqueue_refusals", "counter", "policy", "Calls refused by the rate limiter, by policy.",
           lambda stats, _: stats.refused),
    Metric("priqueue_late_beats", "counter", "", "Beats of workers that came half an interval late, or later.",
           lambda stats, _: {"": stats.late_beats}),
    # ── how long it takes ──
    _histogram("wait_seconds", "From ready to claimed.", lambda lane: lane.wait),
    _histogram("lateness_seconds", "From due to claimed, of jobs that were delayed.", lambda lane: lane.lateness),
    _histogram("run_seconds", "Runs of handlers, whether they worked or not.", lambda lane: lane.run),
    # ── what is there ──
    _lane_gauge("ready_jobs", "Jobs in the lane.", lambda lane: lane.ready),
    _lane_gauge("delayed_jobs", "Jobs that wait for their time.", lambda lane: lane.delayed),
    _lane_gauge("in_flight_jobs", "Jobs claimed and not settled.", lambda lane: lane.in_flight),
    _lane_gauge("oldest_ready_seconds", "How long the job at the head of the lane has been ready; 0 without one.",
                lambda lane: lane.oldest_ready_s),
    _lane_gauge("lane_paused", "1 while the lane is paused.", lambda lane: int(lane.paused is not None)),
    _lane_gauge("lane_weight", "Picks that the lane gets in each round.", lambda lane: lane.weight),
    Metric("priqueue_lane_share_ratio", "gauge", "lane", "The lane's part of all full picks so far.",
           lambda stats, _: stats.shares),
    _gauge("left_behind_jobs", "Jobs in lanes that are not configured any more: no worker takes them.",
           lambda stats: sum(stats.left_behind.values())),
    _gauge("dead_letters", "Dead letters kept for a person.", lambda stats: stats.dead),
    Metric("priqueue_workers", "gauge", "state", "Workers, by their last beat.", _workers),
    _gauge("slots", "Jobs that the workers may hold at a time.", lambda stats: stats.capacity),
    _gauge("slots_held", "Jobs that the workers hold.", lambda stats: stats.slots),
    _gauge("utilisation_ratio", "The part of the slots that hold a job; absent without workers.",
           lambda stats: stats.utilisation),
    Metric("priqueue_last_turn_age_seconds", "gauge", "duty",
           "Since the last turn of any ticker, sweeper or auditor; +Inf for never.", _last_turns),
    _gauge("audit_backlog_events", "Audit events that wait for an auditor.", lambda stats: stats.audit_backlog),
    _gauge("audit_oldest_event_seconds", "Age of the oldest audit event that waits.",
           lambda stats: stats.audit_oldest_s),
    _gauge("redis_memory_bytes", "Memory the server uses.", lambda stats: stats.memory_bytes),
    _gauge("redis_memory_limit_bytes", "The server's maxmemory; absent without one.",
           lambda stats: stats.memory_limit_bytes or None),
    # ── what was promised: SLO of the settings; absent where there is none ──
    _slo("throughput_per_second", "Finished jobs per second, at least.",
         lambda settings: settings.slo.throughput_per_s),
    _slo("error_ratio", "Runs that fail, at most.", lambda settings: settings.slo.error_rate),
    _slo("utilisation_ratio", "Slots in use, at most.", lambda settings: settings.slo.utilisation),
    Metric("priqueue_slo_wait_seconds", "gauge", "lane", "Wait from ready to claimed, at most.", _slo_waits),
)  # fmt: skip
