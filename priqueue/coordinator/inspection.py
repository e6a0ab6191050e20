"""Inspector: reads the queue for people, pages and commands. It changes nothing.

Everything of one answer is read in one transaction, so that a job that moves meanwhile is not missed or seen twice.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from priqueue import signing
from priqueue.conf import Settings
from priqueue.coordinator.calls import born_ms
from priqueue.coordinator.connection import derive
from priqueue.coordinator.keys import FORGET_AFTER_MS, Keys
from priqueue.coordinator.scripts import translated
from priqueue.exceptions import PriqueueError
from priqueue.jobs import Attempt, Job, JobStatus, State, from_ms

#: what these commands answer where there is no such key
_NOTHING: Mapping[str, Any] = {"LLEN": 0, "ZCARD": 0, "HLEN": 0, "HGETALL": {}, "HVALS": (), "LRANGE": (), "ZRANGE": ()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Who paused a lane, why and since when."""

    caller: str
    reason: str
    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStats:
    """The figures of one lane; the totals count since the queue's store began."""

    weight: int
    ready: int
    delayed: int
    in_flight: int
    oldest_ready_s: float
    paused: Pause | None
    enqueued: int
    picks: int
    #: picks made while every lane of the pool held work: the ones that weights promise something about
    picks_full: int
    acked: int
    retried: int
    buried: int
    released: int
    reclaimed: int


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The whole queue in figures."""

    lanes: Mapping[str, LaneStats]
    dead: int
    workers: Sequence[WorkerStats]
    #: lanes that left the configuration while they held jobs: name → jobs still there
    left_behind: Mapping[str, int]


class Inspector:
    """Reads of one queue."""

    def __init__(self, client: "Redis", settings: Settings, clock: Callable[[], int] | None = None) -> None:
        self.settings = settings
        self.keys = Keys(settings.namespace)
        self._client = derive(client, socket_timeout_s=settings.socket_timeout_s)
        self._clock = clock

    def job(self, job_id: str) -> JobStatus | None:
        """Return what is known of a job; None when it is done, purged, cancelled or was never there."""
        keys, lanes = self.keys, self.settings.lane_names
        envelope, lease, letter, attempts, trail, *due = self._read(
            ("HGET", keys.jobs, job_id), ("HGET", keys.inflight, job_id), ("HGET", keys.letters, job_id),
            ("HGET", keys.attempts, job_id), ("LRANGE", keys.trail(job_id), 0, -1),
            *(("ZSCORE", keys.delayed(lane), job_id) for lane in lanes),
        )  # fmt: skip
        if envelope is None:
            return None
        job = self._decoded(job_id, envelope)
        failures, crashes = (int(number) for number in (attempts or "0 0").split()[:2])
        worker, _, _, lane = lease.split(" ")[:4] if lease else (None, None, None, job.lane)
        due_ms = next((float(score) for score in due if score is not None), None)
        state = _state(lease, letter, due_ms)
        return JobStatus(
            job=job, state=state, lane=lane or job.lane, crashes=crashes, worker=worker,
            attempt=failures if state is State.DEAD else failures + 1,
            run_at=None if due_ms is None else from_ms(due_ms), trail=[_attempt(line) for line in trail],
        )  # fmt: skip

    def stats(self) -> Stats:
        """Return the figures of lanes, dead letters and workers."""
        now_ms, lanes = self.now_ms(), self.settings.lanes
        counters, held, pauses, dead = self._read(
            ("HGETALL", self.keys.counters), ("HVALS", self.keys.inflight), ("HGETALL", self.keys.paused),
            ("HLEN", self.keys.letters),
        )  # fmt: skip
        in_flight = [record.split(" ")[3] for record in held]
        depths = self._depths([lane.name for lane in lanes])
        return Stats(
            lanes={
                lane.name: LaneStats(
                    weight=lane.weight, **depths[lane.name], in_flight=in_flight.count(lane.name),
                    oldest_ready_s=self._oldest_ready_s(lane.name, now_ms),
                    paused=_pause(pauses.get(lane.name)), **_totals(counters, lane.name),
                )
                for lane in lanes
            },
            dead=dead, workers=self.workers(), left_behind=self._left_behind(counters),
        )  # fmt: skip

    def workers(self) -> list[WorkerStats]:
        """Return all known workers, the ones gone for less than ten minutes too."""
        now_ms = self.now_ms()
        records, beats, slots = self._read(
            ("HGETALL", self.keys.workers), ("HGETALL", self.keys.heartbeats), ("HGETALL", self.keys.slots)
        )
        return [
            _worker(worker_id, json.loads(record), int(slots.get(worker_id, 0)), now_ms - int(beats.get(worker_id, 0)))
            for worker_id, record in sorted(records.items())
        ]

    def agenda(self) -> tuple[float | None, list[str]]:
        """Return what the ticker has before it: seconds until the next due job, and lanes whose pause is over.

        The seconds are 0 or less when one is due already, None when nothing is delayed.
        """
        due = [("ZRANGE", self.keys.delayed(lane), 0, 0, "WITHSCORES") for lane in self.settings.lane_names]
        time, pauses, *earliest = self._read(("TIME",), ("HGETALL", self.keys.paused), *due)
        now_ms = self._ms(time)
        due_ms = [float(found[-1]) for found in earliest if found]
        ends_ms = {lane: json.loads(record).get("until_ms") for lane, record in pauses.items()}
        over = [lane for lane, end_ms in ends_ms.items() if end_ms is not None and end_ms <= now_ms]
        return (min(due_ms) - now_ms) / 1000 if due_ms else None, over

    def silent_workers(self) -> list[str]:
        """Return the workers that have not been heard of for ten minutes."""
        time, beats = self._read(("TIME",), ("HGETALL", self.keys.heartbeats))
        silent_since_ms = self._ms(time) - FORGET_AFTER_MS
        return [worker_id for worker_id, beat_ms in beats.items() if int(beat_ms) < silent_since_ms]

    def gauges(self) -> dict[str, int]:
        """Return this moment's gauges for the series: depths, leases, capacity and the server's memory."""
        gauges = {
            f"{gauge}:{lane}": depth
            for lane, depths in self._depths(self.settings.lane_names).items()
            for gauge, depth in depths.items()
        }
        here = [worker for worker in self.workers() if worker.beat_s_ago <= self.settings.lease_s]
        gauges["slots"] = sum(worker.in_flight for worker in here)
        gauges["capacity"] = sum(worker.concurrency for worker in here)
        memory = self.memory_bytes()
        return gauges if memory is None else {**gauges, "memory": memory}

    def paused(self) -> dict[str, Pause]:
        """Return the paused lanes."""
        (pauses,) = self._read(("HGETALL", self.keys.paused))
        return {lane: pause for lane, record in pauses.items() if (pause := _pause(record))}

    def memory_bytes(self) -> int | None:
        """Return the memory the server uses; None where it does not say."""
        try:
            return int(self._client.info("memory")["used_memory"])
        except (RedisError, KeyError):
            return None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def now_ms(self) -> int:
        """Return the server's time."""
        (time,) = self._read(("TIME",))
        return self._ms(time)

    def _ms(self, time: Sequence[Any]) -> int:
        return int(time[0]) * 1000 + int(time[1]) // 1000 if self._clock is None else self._clock()

    def _read(self, *commands: Sequence[Any]) -> list[Any]:
        pipeline = self._client.pipeline(transaction=True)
        for command in commands:
            pipeline.execute_command(*command)
        try:
            answers = pipeline.execute(raise_on_error=False)
        except RedisError as error:
            raise translated(error) from error
        return [_answer(*pair) for pair in zip(commands, answers, strict=True)]

    def _depths(self, lanes: Sequence[str]) -> dict[str, dict[str, int]]:
        commands = [c for lane in lanes for c in (("LLEN", self.keys.lane(lane)), ("ZCARD", self.keys.delayed(lane)))]
        numbers = self._read(*commands) if commands else []
        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        return {lane: {"ready": ready, "delayed": delayed} for lane, (ready, delayed) in zip(lanes, pairs, strict=True)}

    def _oldest_ready_s(self, lane: str, now_ms: int) -> float:
        (oldest,) = self._read(("LINDEX", self.keys.lane(lane), 0))
        if oldest is None:
            return 0.0
        (since_ms,) = self._read(("HGET", self.keys.since, oldest))
        return max(0, now_ms - int(since_ms or born_ms(oldest) or now_ms)) / 1000

    def _left_behind(self, counters: Mapping[str, str]) -> dict[str, int]:
        seen = {field.partition(":")[2] for field in counters if field.startswith("enqueued:")}
        depths = self._depths(sorted(seen - set(self.settings.lane_names)))
        return {lane: total for lane, depth in depths.items() if (total := sum(depth.values()))}

    def _decoded(self, job_id: str, stored: str) -> Job:
        try:
            return Job.decode(job_id, signing.verify(self.settings.signing_keys, job_id, stored))
        except (ValueError, LookupError, TypeError, PriqueueError):
            return Job(id=job_id, name="unreadable", payload={})


def _answer(command: Sequence[Any], answer: Any) -> Any:
    """Return the answer; where a foreign value stands at the key, that of nothing, so that the rest is seen."""
    if not isinstance(answer, RedisError):
        return answer
    if str(answer).startswith("WRONGTYPE"):
        return _NOTHING.get(command[0])
    raise translated(answer) from answer


def _state(lease: str | None, letter: str | None, due_ms: float | None) -> State:
    if lease:
        return State.IN_FLIGHT
    if letter:
        return State.DEAD
    return State.READY if due_ms is None else State.DELAYED


def _attempt(line: str) -> Attempt:
    _, _, at_ms, record = line.split(" ", 3)
    return Attempt(**json.loads(record), at=from_ms(int(at_ms)))


def _pause(record: str | None) -> Pause | None:
    if record is None:
        return None
    found = json.loads(record)
    until_ms = found.get("until_ms")
    return Pause(
        caller=found["caller"], reason=found["reason"], since=from_ms(found["since_ms"]),
        until=None if until_ms is None else from_ms(until_ms),
    )  # fmt: skip


def _totals(counters: Mapping[str, str], lane: str) -> dict[str, int]:
    names = ("enqueued", "picks", "picks_full", "acked", "retried", "buried", "released", "reclaimed")
    return {name: int(counters.get(f"{name}:{lane}", 0)) for name in names}


def _worker(worker_id: str, record: dict[str, Any], in_flight: int, silent_ms: int) -> WorkerStats:
    return WorkerStats(
        id=worker_id, lanes=record.pop("lanes"), concurrency=record.pop("concurrency"), in_flight=in_flight,
        beat_s_ago=silent_ms / 1000, draining=record.pop("drain", False), about=record,
    )  # fmt: skip
