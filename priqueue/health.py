"""Health: what is wrong with a queue, worst first, in the words that pages, terminal and alerts share. Pure.

Each rule looks at one thing and yields what it finds. A rule that lacks its figures says nothing: unknown is not wrong.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from priqueue.conf import Settings
from priqueue.coordinator.overview import Snapshot
from priqueue.coordinator.stats import LaneStats
from priqueue.jobs import from_ms
from priqueue.words import amount, count, duration, percent, rate, short_error

_OPEN_ENDED_S = 3600
_BACKLOG = 10_000
_AUDITOR_S = 5
#: parts of the server's memory limit from which on it draws attention, and is trouble
MEMORY, _MEMORY_FULL = 0.8, 0.95
#: this often over its threshold, something that draws attention is trouble
_FAR_OVER = 10


class Level(StrEnum):
    """How bad it is."""

    OK = "OK"
    ATTENTION = "Attention"
    TROUBLE = "Trouble"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, and which of the pages tells more of it: "lane:low", "workers", "dead:<cause>", …"""

    level: Level
    text: str
    about: str
    #: whom the text tells of, as it stands there; pages add the user's name
    caller: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """All that is wrong, the worst first; nothing at all is OK."""

    findings: Sequence[Finding] = ()

    @property
    def level(self) -> Level:
        """How bad the worst of it is."""
        return self.findings[0].level if self.findings else Level.OK

    @property
    def line(self) -> str:
        """Return it in one line, as pages and terminal begin: ``Trouble: no worker pulls high (+2 more)``."""
        if not self.findings:
            return str(Level.OK)
        more = f" (+{len(self.findings) - 1} more)" if len(self.findings) > 1 else ""
        return f"{self.level}: {self.findings[0].text}{more}"


def unknown(why: str) -> Health:
    """Return the health of a queue of which nothing is known."""
    return Health([Finding(Level.UNKNOWN, why, "")])


def judge(snapshot: Snapshot, settings: Settings) -> Health:
    """Return what is wrong."""
    found = [finding for rule in _RULES for finding in rule(snapshot, settings)]
    return Health(sorted(found, key=lambda finding: finding.level is not Level.TROUBLE))


def silent_duty(duty: str, snapshot: Snapshot, settings: Settings) -> str | None:
    """Return since when a duty has had no turn, in words; None when it is alive."""
    seen_s = snapshot.seen_s.get(duty)
    if seen_s is None:
        return "has never run"
    period_s = {"ticker": settings.tick_s, "sweeper": settings.sweep_s}.get(duty, _AUDITOR_S)
    return f"has been silent for {duration(seen_s)}" if seen_s > max(10, 5 * period_s) else None


def far_from(figure: float, threshold: float) -> Level:
    """Return how bad it is that a figure is above its threshold."""
    return Level.TROUBLE if figure > min(threshold * _FAR_OVER, max(threshold, 0.5)) else Level.ATTENTION


def _workers(snapshot: Snapshot, settings: Settings) -> Iterator[Finding]:
    stats = snapshot.stats
    here = [worker for worker in stats.workers if worker.state(settings) in ("alive", "late")]
    waiting = {name: lane.ready for name, lane in stats.lanes.items() if lane.ready and not lane.paused}
    if waiting and not stats.workers:
        ready = amount(sum(waiting.values()), "job is", "jobs are")
        yield Finding(Level.TROUBLE, f"no worker is registered, and {ready} ready", "workers")
        return
    pulled = {lane for worker in here for lane in worker.lanes if not worker.draining}
    for lane in waiting:
        if lane not in pulled:
            yield Finding(Level.TROUBLE, f"no worker pulls {lane}", f"lane:{lane}")
    for worker in stats.workers:
        if worker.state(settings) == "gone" and worker.in_flight:
            held = amount(worker.in_flight, "job")
            yield Finding(Level.ATTENTION, f"worker {worker.id} is gone and held {held}", "workers")


def _pauses(snapshot: Snapshot, _: Settings) -> Iterator[Finding]:
    now = from_ms(snapshot.at_ms)
    for name, lane in snapshot.stats.lanes.items():
        pause = lane.paused
        if pause is None:
            continue
        lasted, left = now - pause.since, pause.until and pause.until - now
        level, end = Level.ATTENTION, "without an end"
        if left:
            end = f"{duration(max(left, timedelta()).total_seconds())} left"
        elif lasted.total_seconds() > _OPEN_ENDED_S:
            level, end = Level.TROUBLE, f"for {duration(lasted.total_seconds())} and without an end"
        yield Finding(level, f"{name} is paused by {pause.caller}, {end}", f"lane:{name}", pause.caller)


def _waits(snapshot: Snapshot, settings: Settings) -> Iterator[Finding]:
    for name, lane in snapshot.stats.lanes.items():
        if is_late(name, lane, settings):
            slo_s = settings.slo.wait_s[name]
            level = Level.TROUBLE if lane.oldest_ready_s > slo_s * _FAR_OVER else Level.ATTENTION
            oldest, limit = duration(lane.oldest_ready_s), duration(slo_s)
            yield Finding(level, f"the oldest job in {name} has waited {oldest}, SLO {limit}", f"lane:{name}")


def is_late(name: str, lane: LaneStats, settings: Settings) -> bool:
    """Return whether a lane's oldest job has waited longer than it should; in a paused lane it is meant to."""
    slo_s = settings.slo.wait_s.get(name)
    return slo_s is not None and not lane.paused and bool(lane.ready) and lane.oldest_ready_s > slo_s


def _duties(snapshot: Snapshot, settings: Settings) -> Iterator[Finding]:
    stats = snapshot.stats
    delayed = sum(lane.delayed for lane in stats.lanes.values())
    in_use = stats.workers or delayed or any(lane.ready or lane.in_flight for lane in stats.lanes.values())
    grave = {"ticker": bool(delayed), "sweeper": bool(in_use), "auditor": snapshot.backlog > _BACKLOG}
    for duty, is_grave in grave.items():
        if duty == "auditor" and (settings.audit == "off" or not snapshot.backlog):
            continue
        if silent := silent_duty(duty, snapshot, settings):
            consequence = {
                "ticker": f", {amount(delayed, 'delayed job')} may be overdue" if delayed else "",
                "sweeper": ", so jobs of a lost worker stay lost" if in_use else "",
                "auditor": f", {amount(snapshot.backlog, 'audit event')} wait",
            }
            level = Level.TROUBLE if is_grave else Level.ATTENTION
            yield Finding(level, f"the {duty} {silent}{consequence[duty]}", "services")


def _failures(snapshot: Snapshot, settings: Settings) -> Iterator[Finding]:
    rate_now, slo = snapshot.recent.error_rate, settings.slo.error_rate
    if rate_now is not None and slo is not None and rate_now > slo:
        text = f"{percent(rate_now)} of the runs of the last minute failed, SLO {percent(slo)}"
        yield Finding(far_from(rate_now, slo), text, "dead:" if snapshot.buried else "")


def _letters(snapshot: Snapshot, _: Settings) -> Iterator[Finding]:
    if snapshot.buried:
        worst = snapshot.causes[0]
        all_of = "all" if worst.recent == snapshot.buried else "most of them"
        which = f"{all_of} {short_error(worst.error)}"
        about = f"dead:{worst.name}" if worst.recent == snapshot.buried else "dead:"
        yield Finding(Level.ATTENTION, f"{amount(snapshot.buried, 'dead letter')} in 10 min, {which}", about)


def _load(snapshot: Snapshot, settings: Settings) -> Iterator[Finding]:
    used, slo = snapshot.recent.utilisation, settings.slo.utilisation
    if used is not None and slo is not None and used > slo:
        text = f"{percent(used)} of the slots were in use in the last minute, SLO {percent(slo)}"
        yield Finding(Level.ATTENTION, text, "workers")
    per_s, floor = snapshot.recent.per_s(), settings.slo.throughput_per_s
    if per_s is not None and floor is not None and per_s < floor and any(
        lane.ready and not lane.paused for lane in snapshot.stats.lanes.values()
    ):  # fmt: skip
        yield Finding(Level.ATTENTION, f"only {rate(per_s)} jobs a second came out, SLO {rate(floor)}", "")


def _store(snapshot: Snapshot, _: Settings) -> Iterator[Finding]:
    for lane, number in snapshot.stats.left_behind.items():
        text = f"lane {lane} left the configuration with {amount(number, 'job')} in it"
        yield Finding(Level.ATTENTION, text, "")
    if snapshot.backlog > _BACKLOG:
        yield Finding(Level.ATTENTION, f"{count(snapshot.backlog)} audit events wait for the database", "services")
    if snapshot.memory_bytes is not None and snapshot.memory_limit_bytes:
        used = snapshot.memory_bytes / snapshot.memory_limit_bytes
        if used > MEMORY:
            level = Level.TROUBLE if used > _MEMORY_FULL else Level.ATTENTION
            yield Finding(level, f"Redis uses {percent(used)} of its memory; at 100 % no job is taken in", "services")


_Rule = Callable[[Snapshot, Settings], Iterator[Finding]]
_RULES: Sequence[_Rule] = (_workers, _pauses, _waits, _duties, _letters, _failures, _load, _store)
