"""The queue as a plain Python model: every transition of the design, and nothing of how the coordinator does it.

Each method has the name of a transition, returns what the caller must be told, and notes the audit events it leaves.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from priqueue.conf import Settings
from priqueue.coordinator.keys import FORGET_AFTER_MS
from priqueue.jobs import Claim, Failure, Job, to_ms
from priqueue.picker import pick

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
class Model:
    """One queue. ``now_ms`` is set by whoever drives it."""

    settings: Settings
    now_ms: int
    ready: dict[str, list[str]] = field(init=False)
    delayed: dict[str, dict[str, int]] = field(init=False)
    in_flight: dict[str, Lease] = field(default_factory=dict)
    letters: dict[str, dict[str, Any]] = field(default_factory=dict)
    dead: list[str] = field(default_factory=list)
    holes: Counter[str] = field(default_factory=Counter)
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

    # --- a job's life ---

    def enqueue(self, job: Job) -> bool:
        if job.id in self.jobs:
            return False
        due_ms = to_ms(job.run_at) if job.delay_ms is None and job.run_at else self.now_ms + (job.delay_ms or 0)
        self.jobs[job.id] = job
        if due_ms <= self.now_ms:
            self.ready[job.lane].append(job.id)
            self._wake(job.lane)
        else:
            self._delay(job.id, job.lane, due_ms)
        self._tell("enqueue", "enqueued", job.caller, job.id, job.lane)
        return True

    def promote(self, limit: int) -> int:
        moved = 0
        for lane in self.settings.lane_names:
            due = sorted((ms, job_id) for job_id, ms in self.delayed[lane].items() if ms <= self.now_ms)
            for _, job_id in due[: limit - moved]:
                del self.delayed[lane][job_id]
                self._make_ready(job_id, lane, at_head=False)
                self._tell("promote", "promoted", "ticker", job_id, lane)
                moved += 1
        return moved

    def claim(self, worker_id: str, limit: int, token: str) -> str | list[str]:
        """Return the ids in pick order, or why there are none."""
        if refusal := self.claim_refusal(worker_id):
            return refusal
        worker = self.workers[worker_id]
        self.heartbeats[worker_id] = self.now_ms
        room = min(limit, worker.concurrency - self.held(worker_id))
        ids = [job_id for _ in range(max(room, 0)) if (job_id := self._claim_one(worker_id, worker.lanes, token))]
        for lane in worker.lanes:
            if self.ready[lane]:
                self._wake(lane)
        if ids:
            self.claims[worker_id] = token, ids
        return ids

    def claim_refusal(self, worker_id: str) -> str:
        worker = self.workers.get(worker_id)
        return "" if worker and not worker.draining else "draining" if worker else "unregistered"

    def _claim_one(self, worker_id: str, pool: tuple[str, ...], token: str) -> str | None:
        lanes = [lane for lane in self.settings.lanes if lane.name in pool]
        with_work = {lane.name for lane in lanes if self.ready[lane.name] and lane.name not in self.paused}
        chosen = pick(lanes, self.credits.setdefault(pool, {}), with_work)
        if chosen is None:
            return None
        job_id = self.ready[chosen].pop(0)
        failures, crashes = self.attempts.get(job_id, (0, 0))
        self.since.pop(job_id, None)
        self.in_flight[job_id] = Lease(
            worker_id, token, self.now_ms + self.lease_ms, chosen, failures + 1, crashes
        )
        self._tell("claim", "picks", f"worker:{worker_id}", job_id, chosen)
        if len(with_work) == len(lanes):
            self.counters[f"picks_full:{chosen}"] += 1
        return job_id

    def claim_again(self, worker_id: str) -> list[str]:
        """Return what a repeat of the worker's last claim gives: the leases of it that are still held."""
        token, ids = self.claims[worker_id]
        return [job_id for job_id in ids if self._held_by(job_id, token)]

    def beat(self, worker_id: str, claims: Sequence[Claim]) -> list[str] | None:
        if worker_id not in self.workers:
            return None
        self.heartbeats[worker_id] = self.now_ms
        for claim in claims:
            if lease := self._held_by(claim.job.id, claim.token):
                lease.deadline_ms = self.now_ms + self.lease_ms
        return [claim.job.id for claim in claims if not self._held_by(claim.job.id, claim.token)]

    def ack(self, claim: Claim, repeat: bool) -> bool:
        if not self._held_by(claim.job.id, claim.token):
            return repeat and claim.job.id not in self.jobs
        lease = self.in_flight.pop(claim.job.id)
        self._forget_job(claim.job.id)
        self._tell("ack", "acked", f"worker:{lease.worker}", claim.job.id, lease.lane)
        return True

    def retry(self, claim: Claim, delay_ms: int, repeat: bool) -> bool:
        if not self._held_by(claim.job.id, claim.token):
            return repeat and self._failed_with(claim)
        lease = self._fail(claim)
        self._delay(claim.job.id, lease.lane, self.now_ms + delay_ms)
        self._tell("retry", "retried", f"worker:{lease.worker}", claim.job.id, lease.lane)
        return True

    def bury(self, claim: Claim, failure: Failure, repeat: bool) -> bool:
        if not self._held_by(claim.job.id, claim.token):
            return repeat and self._failed_with(claim)
        lease = self._fail(claim)
        self._write_letter(claim.job.id, lease.lane, failure.error)
        self._tell("bury", "buried", f"worker:{lease.worker}", claim.job.id, lease.lane)
        return True

    def release(self, claims: Sequence[Claim], delay_ms: int, repeat: bool) -> bool:
        answers = [self._release_one(claim, delay_ms, repeat) for claim in reversed(claims)]
        return all(answers)

    def _release_one(self, claim: Claim, delay_ms: int, repeat: bool) -> bool:
        if not self._held_by(claim.job.id, claim.token):
            return repeat
        lease = self.in_flight.pop(claim.job.id)
        if delay_ms:
            self.delayed[lease.lane][claim.job.id] = self.now_ms + delay_ms
            self.tokens.add("ticker")
        else:
            self._make_ready(claim.job.id, lease.lane, at_head=True)
        self._tell("release", "released", f"worker:{lease.worker}", claim.job.id, lease.lane)
        return True

    def reclaim(self, limit: int) -> int:
        for _, lease in self._by_deadline(lambda ms: ms > self.now_ms + self.lease_ms)[:limit]:
            lease.deadline_ms = self.now_ms + self.lease_ms
        if self._in_grace():
            return 0
        lapsed = self._by_deadline(lambda ms: ms <= self.now_ms)[:limit]
        for job_id, lease in lapsed:
            del self.in_flight[job_id]
            self._note_attempt(job_id, lease.token, crash=True)
            self.attempts[job_id] = lease.attempt - 1, lease.crashes + 1
            if lease.crashes + 1 < self.settings.max_crashes:
                self._make_ready(job_id, lease.lane, at_head=True)
            else:
                self._write_letter(job_id, lease.lane, "WorkerLost")
                self.counters[f"buried:{lease.lane}"] += 1
            self._tell("reclaim", "reclaimed", "sweeper", job_id, lease.lane)
        return len(lapsed)

    def _in_grace(self) -> bool:
        """After a silence of more than one lease, nothing is reclaimed for one more."""
        last_ms = self.now_ms if self.last_reclaim_ms is None else self.last_reclaim_ms
        longest_ms = self.now_ms + self.lease_ms
        silent = self.now_ms - last_ms > self.lease_ms
        self.hold_until_ms = longest_ms if silent else min(self.hold_until_ms, longest_ms)
        self.last_reclaim_ms = self.now_ms
        return self.now_ms < self.hold_until_ms

    # --- people ---

    def requeue(self, ids: Sequence[str], caller: str, until_ms: int | None) -> list[str]:
        done = self._letters_until(ids, until_ms)
        for job_id in done:
            letter = self._remove_letter(job_id)
            self._make_ready(job_id, letter["lane"], at_head=False)
            self._tell("requeue", "requeued", caller, job_id, letter["lane"])
        return done

    def purge(self, ids: Sequence[str], caller: str, until_ms: int | None) -> list[str]:
        done = self._letters_until(ids, until_ms)
        for job_id in done:
            letter = self._remove_letter(job_id)
            self._forget_job(job_id)
            self._tell("purge", "purged", caller, job_id, letter["lane"])
        return done

    def cancel(self, job_id: str, lane: str, caller: str) -> bool:
        if job_id in self.delayed[lane]:
            del self.delayed[lane][job_id]
        elif job_id in self.ready[lane]:
            self.ready[lane].remove(job_id)
        else:
            return False
        self._forget_job(job_id)
        self._tell("cancel", "cancelled", caller, job_id, lane)
        return True

    def pause(self, lane: str, caller: str, lasts_ms: int | None) -> None:
        self.paused[lane] = None if lasts_ms is None else self.now_ms + lasts_ms
        self.events.append(("pause", caller, ""))

    def resume(self, lane: str, caller: str, if_over: bool) -> bool:
        if lane not in self.paused:
            return False
        until_ms = self.paused[lane]
        if if_over and (until_ms is None or until_ms > self.now_ms):
            return False
        del self.paused[lane]
        if self.ready[lane]:
            self._wake(lane)
        self.events.append(("resume", caller, ""))
        return True

    # --- workers ---

    def register(self, worker_id: str, lanes: Sequence[str], concurrency: int) -> None:
        ordered = tuple(lane for lane in self.settings.lane_names if lane in lanes)
        self.workers[worker_id] = Worker(ordered, concurrency)
        self.heartbeats[worker_id] = self.now_ms
        self.events.append(("register", f"worker:{worker_id}", ""))

    def drain(self, worker_id: str, caller: str) -> bool:
        if worker_id not in self.workers:
            return False
        self.workers[worker_id].draining = True
        self.tokens.update(self.workers[worker_id].lanes)
        self.events.append(("drain", caller, ""))
        return True

    def leave(self, worker_id: str) -> bool:
        if self.held(worker_id):
            return False
        if worker_id in self.workers:
            self._forget_worker(worker_id)
            self.events.append(("leave", f"worker:{worker_id}", ""))
        return True

    def forget(self, worker_ids: Sequence[str]) -> int:
        silent = [
            worker_id
            for worker_id in worker_ids
            if worker_id in self.workers
            and self.heartbeats[worker_id] + FORGET_AFTER_MS < self.now_ms
            and not self.held(worker_id)
        ]
        for worker_id in silent:
            self._forget_worker(worker_id)
            self.events.append(("forget", "sweeper", ""))
        return len(silent)

    def held(self, worker_id: str) -> int:
        return sum(lease.worker == worker_id for lease in self.in_flight.values())

    # --- what they share ---

    def _tell(self, action: str, counter: str, caller: str, job_id: str, lane: str) -> None:
        self.counters[f"{counter}:{lane}"] += 1
        self.events.append((action, caller, job_id))

    def _wake(self, lane: str) -> None:
        if lane not in self.paused:
            self.tokens.add(lane)

    def _delay(self, job_id: str, lane: str, due_ms: int) -> None:
        self.delayed[lane][job_id] = due_ms
        if min((ms, other) for other, ms in self.delayed[lane].items())[1] == job_id:
            self.tokens.add("ticker")

    def _make_ready(self, job_id: str, lane: str, *, at_head: bool) -> None:
        self.ready[lane].insert(0 if at_head else len(self.ready[lane]), job_id)
        self.since[job_id] = self.now_ms
        self._wake(lane)

    def _held_by(self, job_id: str, token: str) -> Lease | None:
        lease = self.in_flight.get(job_id)
        return lease if lease and lease.token == token else None

    def holds(self, claim: Claim) -> bool:
        return self._held_by(claim.job.id, claim.token) is not None

    def _failed_with(self, claim: Claim) -> bool:
        return self.trails.get(claim.job.id, [])[-1:] == [(claim.token, False)]

    def _fail(self, claim: Claim) -> Lease:
        lease = self.in_flight.pop(claim.job.id)
        self.attempts[claim.job.id] = lease.attempt, lease.crashes
        self._note_attempt(claim.job.id, lease.token, crash=False)
        return lease

    def _note_attempt(self, job_id: str, token: str, *, crash: bool) -> None:
        self.trails[job_id] = [*self.trails.get(job_id, []), (token, crash)][-TRAIL_LENGTH:]

    def _by_deadline(self, wanted: Any) -> list[tuple[str, Lease]]:
        found = [(job_id, lease) for job_id, lease in self.in_flight.items() if wanted(lease.deadline_ms)]
        return sorted(found, key=lambda pair: (pair[1].deadline_ms, pair[0]))

    def _write_letter(self, job_id: str, lane: str, error: str) -> None:
        job = self.jobs[job_id]
        self.dead.insert(0, job_id)
        self.letters[job_id] = {
            "lane": lane, "cause": f"{error} {job.name}", "handler": job.name, "caller": job.caller,
            "buried_at_ms": self.now_ms,
        }  # fmt: skip

    def _letters_until(self, ids: Sequence[str], until_ms: int | None) -> list[str]:
        letters = [(job_id, self.letters.get(job_id)) for job_id in dict.fromkeys(ids)]
        return [i for i, letter in letters if letter and (until_ms is None or letter["buried_at_ms"] <= until_ms)]

    def _remove_letter(self, job_id: str) -> dict[str, Any]:
        self.holes[job_id] += 1
        self.attempts.pop(job_id, None)
        return self.letters.pop(job_id)

    def _forget_job(self, job_id: str) -> None:
        for kept in (self.jobs, self.attempts, self.since, self.trails):
            kept.pop(job_id, None)  # type: ignore[attr-defined]

    def _forget_worker(self, worker_id: str) -> None:
        for kept in (self.workers, self.heartbeats, self.claims):
            kept.pop(worker_id, None)  # type: ignore[attr-defined]

    # --- what is compared ---

    def written_credits(self) -> dict[str, int]:
        """Return the picker's credits as they are stored."""
        return {f"{','.join(pool)}:{lane}": n for pool, lanes in self.credits.items() for lane, n in lanes.items()}

    def state(self) -> dict[str, Any]:
        """Return the whole state as ``Queue.state()`` shows it."""
        return {
            "ready": self.ready,
            "delayed": self.delayed,
            "in flight": {job_id: asdict(lease) for job_id, lease in self.in_flight.items()},
            "deadlines": {job_id: lease.deadline_ms for job_id, lease in self.in_flight.items()},
            "slots": dict(Counter(lease.worker for lease in self.in_flight.values())),
            "dead": self.dead,
            "letters": self.letters,
            "causes": dict(Counter(letter["cause"] for letter in self.letters.values())),
            "jobs": set(self.jobs),
            "attempts": {
                job_id: f"{failures} {crashes}" for job_id, (failures, crashes) in self.attempts.items()
            },
            "since": self.since,
        }
