"""Places: where the jobs of a queue are, as plain Python values; what the model's transitions move."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from priqueue.conf import Settings
from priqueue.jobs import Claim, Job

Event = tuple[str, str, str]
TRAIL_LENGTH = 25


@dataclass
class Lease:
    """A job in flight."""

    worker: str
    token: str
    deadline_ms: int
    lane: str
    attempt: int
    crashes: int


@dataclass
class Worker:
    """What a worker registered."""

    lanes: tuple[str, ...]
    concurrency: int
    draining: bool = False


@dataclass
class Places:
    """One queue. ``now_ms`` is set by whoever drives it."""

    settings: Settings
    now_ms: int
    ready: dict[str, list[str]] = field(init=False)
    delayed: dict[str, dict[str, int]] = field(init=False)
    in_flight: dict[str, Lease] = field(default_factory=dict)
    #: in the order in which they died
    letters: dict[str, dict[str, Any]] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    #: id → failures, crashes
    attempts: dict[str, tuple[int, int]] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)
    #: id → token and whether it was a crash, of each attempt
    trails: dict[str, list[tuple[str, bool]]] = field(default_factory=dict)
    workers: dict[str, Worker] = field(default_factory=dict)
    heartbeats: dict[str, int] = field(default_factory=dict)
    #: worker → its last claim's token and ids
    claims: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    #: lane → when its pause ends
    paused: dict[str, int | None] = field(default_factory=dict)
    #: pool → lane → credits
    credits: dict[tuple[str, ...], dict[str, int]] = field(default_factory=dict)
    #: who would be woken: lanes, and the ticker
    tokens: set[str] = field(default_factory=set)
    counters: Counter[str] = field(default_factory=Counter)
    events: list[Event] = field(default_factory=list)
    last_reclaim_ms: int | None = None
    hold_until_ms: int = 0

    def __post_init__(self) -> None:
        self.ready = {lane: [] for lane in self.settings.lane_names}
        self.delayed = {lane: {} for lane in self.settings.lane_names}
        self.lease_ms = round(self.settings.lease_s * 1000)

    def tell(self, action: str, counter: str, caller: str, job_id: str, lane: str) -> None:
        self.counters[f"{counter}:{lane}"] += 1
        self.events.append((action, caller, job_id))

    def wake(self, lane: str) -> None:
        if lane not in self.paused:
            self.tokens.add(lane)

    def delay(self, job_id: str, lane: str, due_ms: int) -> None:
        self.delayed[lane][job_id] = due_ms
        if min((ms, other) for other, ms in self.delayed[lane].items())[1] == job_id:
            self.tokens.add("ticker")

    def make_ready(self, job_id: str, lane: str, *, at_head: bool) -> None:
        self.ready[lane].insert(0 if at_head else len(self.ready[lane]), job_id)
        self.since[job_id] = self.now_ms
        self.wake(lane)

    def held_by(self, job_id: str, token: str) -> Lease | None:
        lease = self.in_flight.get(job_id)
        return lease if lease and lease.token == token else None

    def holds(self, claim: Claim) -> bool:
        return self.held_by(claim.job.id, claim.token) is not None

    def failed_with(self, claim: Claim) -> bool:
        return self.trails.get(claim.job.id, [])[-1:] == [(claim.token, False)]

    def fail(self, claim: Claim) -> Lease:
        lease = self.in_flight.pop(claim.job.id)
        self.attempts[claim.job.id] = lease.attempt, lease.crashes
        self.note_attempt(claim.job.id, lease.token, crash=False)
        return lease

    def note_attempt(self, job_id: str, token: str, *, crash: bool) -> None:
        self.trails[job_id] = [*self.trails.get(job_id, []), (token, crash)][-TRAIL_LENGTH:]

    def by_deadline(self, wanted: Any) -> list[tuple[str, Lease]]:
        found = [(job_id, lease) for job_id, lease in self.in_flight.items() if wanted(lease.deadline_ms)]
        return sorted(found, key=lambda pair: (pair[1].deadline_ms, pair[0]))

    def write_letter(self, job_id: str, lane: str, error: str) -> None:
        job = self.jobs[job_id]
        self.letters[job_id] = {
            "lane": lane, "cause": f"{error} {job.name}", "handler": job.name, "caller": job.caller,
            "buried_at_ms": self.now_ms,
        }  # fmt: skip

    def letters_until(self, ids: Sequence[str], until_ms: int | None) -> list[str]:
        letters = [(job_id, self.letters.get(job_id)) for job_id in dict.fromkeys(ids)]
        until_ms = 2**53 if until_ms is None else until_ms
        return [job_id for job_id, letter in letters if letter and letter["buried_at_ms"] <= until_ms]

    def remove_letter(self, job_id: str) -> dict[str, Any]:
        self.attempts.pop(job_id, None)
        return self.letters.pop(job_id)

    def forget_job(self, job_id: str) -> None:
        for kept in (self.jobs, self.attempts, self.since, self.trails):
            kept.pop(job_id, None)  # type: ignore[attr-defined]

    def forget_worker(self, worker_id: str) -> None:
        for kept in (self.workers, self.heartbeats, self.claims):
            kept.pop(worker_id, None)  # type: ignore[attr-defined]

    # --- what is compared ---

    def written_credits(self) -> dict[str, int]:
        """Return the picker's credits as they are stored."""
        return {
            f"{','.join(pool)}:{lane}": left for pool, credits in self.credits.items() for lane, left in credits.items()
        }

    def state(self) -> dict[str, Any]:
        """Return the whole state as ``Queue.state()`` shows it."""
        return {
            "ready": self.ready,
            "delayed": self.delayed,
            "in flight": {job_id: asdict(lease) for job_id, lease in self.in_flight.items()},
            "deadlines": {job_id: lease.deadline_ms for job_id, lease in self.in_flight.items()},
            "slots": dict(Counter(lease.worker for lease in self.in_flight.values())),
            "letters": self.letters,
            "causes": dict(Counter(letter["cause"] for letter in self.letters.values())),
            "jobs": set(self.jobs),
            "attempts": {job_id: f"{failures} {crashes}" for job_id, (failures, crashes) in self.attempts.items()},
            "since": self.since,
        }
