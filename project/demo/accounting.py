"""The accounts of ``demo --once``: what became of every job, and the figures per lane.

A job is *done* when it is gone from the queue and its handler has recorded a run that worked; *dead* when the
queue says so; *lost* when it is gone and no run worked. Until then it is open.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from priqueue.coordinator.stats import Stats
from priqueue.jobs import JobStatus, State
from project.demo.table import UNKNOWN, line

COLUMNS = ("lane", "jobs", "picks", "share", "wait p50", "wait p95", "retries", "dead")
WIDTHS = (-10, 7, 8, 9, 11, 11, 10, 7)


@dataclass(frozen=True, slots=True)
class Planned:
    """An enqueued job and what is to become of it."""

    id: str
    lane: str
    #: when it becomes ready, by this machine's clock
    due: datetime
    #: whether it is bound for the dead letters
    doomed: bool


class Run(Protocol):
    """What is known of one run of a handler."""

    job_id: str
    attempt: int
    worked: bool
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Figures:
    """What happened in one lane."""

    lane: str
    jobs: int
    picks: int
    #: of the picks made while every lane held work; None when there were none
    share: float | None
    #: from ready to the first run, sorted, in seconds
    waits_s: Sequence[float]
    retries: int
    dead: int

    def cells(self) -> tuple[object, ...]:
        """Return the row of the printed table."""
        share = UNKNOWN if self.share is None else f"{self.share:.1%}"
        p50, p95 = (f"{percentile(self.waits_s, part) * 1000:,.0f} ms" for part in (0.50, 0.95))
        return self.lane, self.jobs, self.picks, share, p50, p95, self.retries, self.dead


class Accounts:
    """Follows the planned jobs until each has its end."""

    def __init__(self, planned: Sequence[Planned], before: Stats) -> None:
        self._planned = {job.id: job for job in planned}
        self._before = before
        self._open = set(self._planned)
        self.dead: set[str] = set()

    @property
    def ids(self) -> Collection[str]:
        """Return the ids of all planned jobs."""
        return self._planned.keys()

    def update(self, find: Callable[[str], JobStatus | None]) -> int:
        """Ask the queue once more about the open jobs; return how many are open still."""
        status = {job_id: find(job_id) for job_id in self._open}
        self.dead |= {job_id for job_id, found in status.items() if found and found.state == State.DEAD}
        self._open = {job_id for job_id, found in status.items() if found and found.state != State.DEAD}
        return len(self._open)

    def faults(self, runs: Sequence[Run]) -> list[str]:
        """Return what does not add up, a line each; nothing means that every job is accounted for."""
        worked = {run.job_id for run in runs if run.worked}
        doomed = {job.id for job in self._planned.values() if job.doomed}
        lost = set(self._planned) - worked - self.dead - self._open
        cases = {
            "still open": self._open,
            "gone without having been done": lost,
            "dead that were to be done": self.dead - doomed,
            "done that were to be dead": doomed - self.dead - self._open - lost,
        }
        return [f"{len(ids)} {what}: {', '.join(sorted(ids)[:3])}" for what, ids in cases.items() if ids]

    def report(self, after: Stats, runs: Sequence[Run]) -> list[str]:
        """Return the printed table."""
        figures = self._figures(after, runs)
        done = len({run.job_id for run in runs if run.worked} - self.dead - self._open)
        total = f"{done} done + {len(self.dead)} dead = {done + len(self.dead)} of {len(self._planned)} jobs"
        return [line(COLUMNS, WIDTHS), *(line(lane.cells(), WIDTHS) for lane in figures), total]

    def _figures(self, after: Stats, runs: Sequence[Run]) -> list[Figures]:
        waits_s, retries = self._runs_by_lane(runs)
        jobs = Counter(job.lane for job in self._planned.values())
        dead = Counter(self._planned[job_id].lane for job_id in self.dead)
        picks, full = (self._grown(after, name) for name in ("picks", "picks_full"))
        together = sum(full.values())
        return [
            Figures(
                lane=lane,
                jobs=jobs[lane],
                picks=picks[lane],
                share=full[lane] / together if together else None,
                waits_s=sorted(waits_s[lane]),
                retries=retries[lane],
                dead=dead[lane],
            )
            for lane in after.lanes
        ]

    def _runs_by_lane(self, runs: Sequence[Run]) -> tuple[Mapping[str, list[float]], Counter[str]]:
        waits_s: dict[str, list[float]] = defaultdict(list)
        retries: Counter[str] = Counter()
        first = set(self._planned)
        for run in sorted(runs, key=lambda run: run.started_at):
            job = self._planned[run.job_id]
            if job.id in first:
                first.remove(job.id)
                waits_s[job.lane].append(max(0.0, (run.started_at - job.due).total_seconds()))
            elif run.attempt > 1:
                retries[job.lane] += 1
        return waits_s, retries

    def _grown(self, after: Stats, name: str) -> dict[str, int]:
        return {
            lane: getattr(figures, name) - getattr(self._before.lanes[lane], name)
            for lane, figures in after.lanes.items()
        }


def percentile(values: Sequence[float], part: float) -> float:
    """Return the smallest of the sorted ``values`` that ``part`` of them do not exceed; NaN for none."""
    if not values:
        return float("nan")
    return values[math.ceil(len(values) * part) - 1]
