"""Overview: one look at the whole queue, for pages, for the terminal and for whoever judges its health.

What it costs grows with lanes, workers and leases, never with the jobs that wait or are dead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from priqueue.coordinator.plans import Plan
from priqueue.coordinator.series import Series, Sums
from priqueue.coordinator.stats import Stats

_TOP = 20
GROWTH_MS = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why letters are dead: one error of one handler, how many there are, and how many of these are new."""

    #: as filters take it
    name: str
    error: str
    handler: str
    number: int
    #: buried in the last ten minutes
    recent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The queue at one moment of the server's clock."""

    at_ms: int
    stats: Stats
    #: the twenty causes that grow most, then the most frequent
    causes: Sequence[Cause]
    #: letters that were buried in the last ten minutes
    buried: int
    #: duty → seconds since its last turn; a duty that never had one is missing
    seen_s: Mapping[str, float]
    #: audit events that wait for the database
    backlog: int
    memory_bytes: int | None
    #: None: the server has no limit, or does not say
    memory_limit_bytes: int | None
    #: the last minute
    recent: Sums
    #: worker → ids of the jobs that it holds
    held: Mapping[str, Sequence[str]]


class Overview(Series):
    """The reader of one queue as a whole."""

    def snapshot(self) -> Snapshot:
        """Return the queue as it is now, in two round trips: a second for what the first one names."""
        stats, grown, recent, (now_ms, held) = self._follow(self._stats(), self._causes(), self._recent(), self._held())
        return Snapshot(
            at_ms=now_ms, stats=stats, causes=grown[:_TOP], buried=sum(cause.recent for cause in grown),
            seen_s={duty: ago_s for duty, ago_s in stats.last_turn_s.items() if ago_s is not None},
            backlog=stats.audit_backlog, recent=recent, held=held,
            memory_bytes=stats.memory_bytes, memory_limit_bytes=stats.memory_limit_bytes or None,
        )  # fmt: skip

    def _held(self) -> Plan[tuple[int, dict[str, list[str]]]]:
        """Return the time, and the jobs that each worker holds then."""
        time, inflight = yield [("TIME",), ("HGETALL", self.keys.inflight)]
        held: dict[str, list[str]] = {}
        for job_id, lease in inflight.items():
            held.setdefault(lease.partition(" ")[0], []).append(job_id)
        return self._ms(time), held

    def _causes(self) -> Plan[list[Cause]]:
        """Return all causes, a thousand at most: a new one is behind all others by its number."""
        time, numbers = yield [("TIME",), ("HGETALL", self.keys.causes)]
        since_ms = self._ms(time) - GROWTH_MS
        recent = yield [("ZCOUNT", self.keys.cause(cause), since_ms, "+inf") for cause in numbers]
        causes = [_cause(name, number, new or 0) for (name, number), new in zip(numbers.items(), recent, strict=True)]
        return sorted(causes, key=lambda cause: (-cause.recent, -cause.number, cause.name))


def _cause(name: str, number: str, recent: int) -> Cause:
    error, _, handler = name.partition(" ")
    return Cause(name=name, error=error, handler=handler, number=int(number), recent=recent)
