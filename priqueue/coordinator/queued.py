"""Queued: the jobs at the head of a lane and the next that are due, and what jobs are, by their ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from priqueue.coordinator.calls import born_ms
from priqueue.coordinator.inspection import Inspector
from priqueue.jobs import Job, from_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """A job that waits: since when it is ready, or until when it is delayed."""

    id: str
    handler: str
    caller: str
    at: datetime


class Lanes(Inspector):
    """The reader of what waits in one queue's lanes."""

    def head(self, lane: str, limit: int) -> list[Queued]:
        """Return the jobs that are taken next from a lane."""
        (ids,) = self._read(("LRANGE", self.keys.lane(lane), 0, limit - 1))
        if not ids:
            return []
        since = self._read(("HMGET", self.keys.since, *ids))[0]
        pairs = zip(ids, since, strict=True)
        at_ms = [int(times.split(" ")[0]) if times else born_ms(job_id) for job_id, times in pairs]
        return self._queued(ids, at_ms)

    def next_due(self, lane: str, limit: int) -> list[Queued]:
        """Return the delayed jobs of a lane that are due next."""
        (found,) = self._read(("ZRANGE", self.keys.delayed(lane), 0, limit - 1, "WITHSCORES"))
        return self._queued(found[::2], [int(float(due)) for due in found[1::2]])

    def jobs(self, ids: Sequence[str]) -> dict[str, Job]:
        """Return those of some jobs that are in the store."""
        envelopes = self._read(("HMGET", self.keys.jobs, *ids))[0] if ids else []
        found = zip(ids, envelopes, strict=True)
        return {job_id: self._decoded(job_id, envelope) for job_id, envelope in found if envelope}

    def _queued(self, ids: Sequence[str], at_ms: Sequence[int]) -> list[Queued]:
        """Return what is known of the jobs; an id without a job is a ghost, which a claim will step over."""
        jobs = self.jobs(ids)
        return [
            Queued(id=job_id, handler=jobs[job_id].name, caller=jobs[job_id].caller, at=from_ms(ms))
            for job_id, ms in zip(ids, at_ms, strict=True)
            if job_id in jobs
        ]
