"""A queue for tests: a coordinator on a fresh namespace, a clock that only the test moves, and its whole state."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

from redis import Redis
from redis.exceptions import ConnectionError, NoScriptError

from priqueue.conf import Settings
from priqueue.coordinator import Coordinator, Inspector
from priqueue.coordinator.line import Line
from priqueue.jobs import Claim, Failure, Job, now

START_MS = 1_800_000_000_000
SIGNING_KEY = b"only for tests, 32 bytes or more"
HANDLER = "tests.shop.jobs.note"
FAILURE = Failure(error="ValueError", message="no", traceback="here")
CAUSE = f"ValueError {HANDLER}"
_MEASURED = re.compile(r"(wait|lateness|run)_")
_numbers = count(1)
_made: list["Queue"] = []  # so that none is collected, in any order, before its connections are closed


@dataclass
class Clock:
    """The server's time, as the coordinator is told it."""

    now_ms: int = START_MS

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, seconds: float) -> None:
        self.now_ms += round(seconds * 1000)


def fresh_namespace() -> str:
    """Return a namespace that no other test of this run has."""
    return f"test{next(_numbers)}"


def test_settings(**options: Any) -> Settings:
    """Return settings with a fresh namespace: no test sees another's keys."""
    given = {"NAMESPACE": fresh_namespace(), "AUDIT": "all", "SIGNING_KEYS": [SIGNING_KEY], **options}
    return Settings.parse({"URL": "redis://127.0.0.1:1/0", **given})


test_settings.__test__ = False  # type: ignore[attr-defined]


@dataclass
class Queue:
    """A coordinator, its inspector, and the raw client to look behind them (it answers in str)."""

    client: Redis
    settings: Settings
    clock: Any = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.coordinator = Coordinator(self.client, self.settings, self.clock)
        self.inspector = Inspector(self.client, self.settings, self.clock)
        self.keys = self.coordinator.keys
        self.raw = self.coordinator.client
        _made.append(self)

    def on_the_servers_clock(self) -> "Queue":
        """Return the same queue with the server's own time."""
        return Queue(self.client, self.settings, clock=None)

    def with_settings(self, **options: Any) -> "Queue":
        """Return a queue of the same kind with other settings."""
        return Queue(self.client, test_settings(**options), self.clock)

    def enqueue(self, *, number: int = 1, **options: Any) -> list[Job]:
        """Enqueue jobs of the handler ``tests.shop.jobs.note`` and return them."""
        made = now()
        due = made + timedelta(milliseconds=options.get("delay_ms") or 0)
        usual = {"name": HANDLER, "enqueued_at": made, "run_at": due}
        jobs = [Job(**{**usual, "payload": {"n": n}, **options}) for n in range(number)]
        self.coordinator.enqueue_many(jobs)
        return jobs

    def register(self, worker_id: str = "worker", lanes: Iterable[str] = (), concurrency: int = 100) -> str:
        wanted = tuple(lanes) or self.settings.lane_names
        self.coordinator.register(worker_id, lanes=wanted, concurrency=concurrency)
        return worker_id

    def claimed(self, *, number: int = 1, worker_id: str = "worker", **options: Any) -> list[Claim]:
        """Enqueue jobs and claim them all for a worker with room for 100."""
        self.enqueue(number=number, **options)
        if worker_id not in self.raw.hgetall(self.keys.workers):
            self.register(worker_id)
        claims = self.coordinator.pull(worker_id, number)
        assert len(claims) == number
        return claims

    def buried(self, *, number: int = 1, failure: Failure | None = None, **options: Any) -> list[Job]:
        """Enqueue, claim and bury jobs, and return them."""
        claims = self.claimed(number=number, **options)
        for claim in claims:
            self.coordinator.bury(claim, failure or FAILURE)
        return [claim.job for claim in claims]

    def events(self) -> list[tuple[str, str, str]]:
        """Return (action, caller, job id) of every audit event so far."""
        entries = self.raw.xrange(self.keys.audit)
        return [(entry["action"], entry["caller"], entry["job"]) for _, entry in entries]

    def state(self) -> dict[str, Any]:
        """Return the whole state: where every job is, and every index beside it. Tokens of waking are left out."""
        raw, keys = self.raw, self.keys
        leases = {job_id: record.split(" ") for job_id, record in raw.hgetall(keys.inflight).items()}
        return {
            "ready": {lane: raw.lrange(keys.lane(lane), 0, -1) for lane in self.settings.lane_names},
            "delayed": {
                lane: dict(raw.zrange(keys.delayed(lane), 0, -1, withscores=True))
                for lane in self.settings.lane_names
            },
            "in flight": {
                job_id: {
                    "worker": worker, "token": token, "deadline_ms": int(deadline), "lane": lane,
                    "attempt": int(attempt), "crashes": int(crashes),
                }
                for job_id, (worker, token, deadline, lane, attempt, crashes) in leases.items()
            },
            "deadlines": dict(raw.zrange(keys.deadlines, 0, -1, withscores=True)),
            "slots": {worker: int(held) for worker, held in raw.hgetall(keys.slots).items() if int(held)},
            "dead": raw.lrange(keys.dead, 0, -1),
            "letters": {job_id: json.loads(letter) for job_id, letter in raw.hgetall(keys.letters).items()},
            "causes": {cause: int(number) for cause, number in raw.hgetall(keys.causes).items()},
            "jobs": set(raw.hkeys(keys.jobs)),
            "attempts": raw.hgetall(keys.attempts),
            "since": {job_id: int(times.split(" ")[0]) for job_id, times in raw.hgetall(keys.since).items()},
        }  # fmt: skip

    def places(self) -> dict[str, str]:
        """Return where each job is: "ready", "delayed", "in flight" or "dead". Fails when one is in two places."""
        state, found = self.state(), {}
        where = [
            *(("ready", ids) for ids in state["ready"].values()),
            *(("delayed", ids) for ids in state["delayed"].values()),
            ("in flight", state["in flight"]),
            ("dead", state["letters"]),
        ]
        for place, ids in where:
            for job_id in ids:
                assert job_id not in found, f"{job_id} is {found[job_id]} and {place}"
                found[job_id] = place
        assert found.keys() == state["jobs"]
        return found

    def tokens(self) -> dict[str, int]:
        """Return the tokens that wait to wake somebody: lane, or "ticker" → number."""
        names = {lane: self.keys.wake(lane) for lane in self.settings.lane_names}
        names["ticker"] = self.keys.wake_ticker
        return {name: self.raw.llen(key) for name, key in names.items() if self.raw.llen(key)}

    def everything(self) -> dict[str, Any]:
        """Return all that is stored: what a refused call must leave exactly as it was."""
        reads: dict[str, Callable[[str], Any]] = {
            "string": self.raw.get,
            "hash": self.raw.hgetall,
            "list": lambda key: self.raw.lrange(key, 0, -1),
            "zset": lambda key: self.raw.zrange(key, 0, -1, withscores=True),
            "stream": self.raw.xrange,
        }
        # What repeats are answered with, for some minutes; and who had a turn, which a turn without effect is, too.
        besides = (self.keys.prefix + "answer:", self.keys.seen)
        names = sorted(
            key for key in self.raw.scan_iter(f"{self.keys.prefix}*", count=10_000) if not key.startswith(besides)
        )
        return {key: reads[self.raw.type(key)](key) for key in names}

    def expected(self, *held: Claim, **parts: Any) -> dict[str, Any]:
        """Return the whole state in which these claims are in flight and all else is as given, or empty."""
        lanes = self.settings.lane_names
        ready = {lane: parts.get("ready", {}).get(lane, []) for lane in lanes}
        delayed = {lane: parts.get("delayed", {}).get(lane, {}) for lane in lanes}
        state: dict[str, Any] = {
            "in flight": {
                claim.job.id: {
                    "worker": claim.worker_id, "token": claim.token, "deadline_ms": claim.deadline_ms,
                    "lane": claim.lane, "attempt": claim.attempt, "crashes": claim.crashes,
                }
                for claim in held
            },
            "deadlines": {claim.job.id: float(claim.deadline_ms) for claim in held},
            "slots": dict(Counter(claim.worker_id for claim in held)),
            "dead": [], "letters": {}, "causes": {}, "attempts": {}, "since": {},
        }  # fmt: skip
        state |= parts | {"ready": ready, "delayed": delayed}
        places = (*ready.values(), *delayed.values(), state["in flight"], state["letters"])
        return state | {"jobs": {job_id for place in places for job_id in place}}

    def letter(self, job: Job, cause: str = CAUSE) -> dict[str, Any]:
        """Return the letter of a job that is buried now."""
        return {
            "lane": job.lane, "cause": cause, "handler": job.name, "caller": job.caller,
            "buried_at_ms": self.clock.now_ms,
        }  # fmt: skip

    def counters(self) -> dict[str, int]:
        """Return the totals so far: "event:lane" → number."""
        return {name: number for name, number in self._totals().items() if not _MEASURED.match(name)}

    def measured(self) -> dict[str, int]:
        """Return what was measured so far: "measure_range:lane" → number, and the sums."""
        return {name: number for name, number in self._totals().items() if _MEASURED.match(name)}

    def _totals(self) -> dict[str, int]:
        return {name: int(number) for name, number in self.raw.hgetall(self.keys.counters).items()}

    def event(self) -> dict[str, str]:
        """Return the newest audit event without its empty fields."""
        ((_, fields),) = self.raw.xrevrange(self.keys.audit, count=1)
        return {name: value for name, value in fields.items() if value}

    def trail(self, job_id: str) -> list[tuple[str, str, bool]]:
        """Return (error, traceback, crash) of each attempt that failed or crashed."""
        lines = [json.loads(line.split(" ", 3)[3]) for line in self.raw.lrange(self.keys.trail(job_id), 0, -1)]
        return [(line["error"], line["traceback"], line["crash"]) for line in lines]

    def lapse(self) -> None:
        """Let every lease lapse and be reclaimed, by a sweeper that ran all the time."""
        self.coordinator.reclaim()
        self.clock.advance(self.settings.lease_s)
        self.coordinator.reclaim()

    def give_up_at_once(self) -> None:
        """Let the first call without an answer be the last: its deadline is over at once."""
        self.coordinator._scripts._deadline_s = 0

    def eat_replies(self, number: int = 1) -> None:
        """Let the next calls be done on the server and their replies be lost on the way."""
        line = self.coordinator._scripts._line
        line.__class__ = _Deaf
        line.left = number

    def close(self) -> None:
        """Close the connections: those of a loop that refers to itself would be closed by nobody."""
        for client in (self.coordinator.client, self.coordinator._waiting._client, self.inspector._client):
            client.close()


class _Deaf(Line):
    """A line that loses some replies."""

    left = 0

    def send(self, *commands: Any) -> Callable[[], list[Any]]:
        wait = super().send(*commands)
        return lambda: self._eat(wait())

    def _eat(self, answers: list[Any]) -> list[Any]:
        if not self.left or any(isinstance(each, NoScriptError) for each in answers):
            return answers
        self.left -= 1
        raise ConnectionError("the reply was eaten")


def close_all() -> None:
    """Close what is open of the queues that were made so far."""
    while _made:
        _made.pop().close()
