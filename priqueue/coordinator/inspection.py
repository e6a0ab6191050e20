"""Inspector: reads the queue for people, pages and commands. It changes nothing.

Everything of one answer is read in one transaction, so that a job that moves meanwhile is not missed or seen twice.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from priqueue import signing
from priqueue.conf import Settings
from priqueue.coordinator.calls import born_ms
from priqueue.coordinator.connection import derive
from priqueue.coordinator.keys import FORGET_AFTER_MS, Keys
from priqueue.coordinator.plans import Command, Plan, follow
from priqueue.coordinator.scripts import translated
from priqueue.coordinator.stats import (
    DUTIES,
    Pause,
    Stats,
    WorkerStats,
    lane_stats,
    pause_of,
    refusals,
    worker_stats,
)
from priqueue.exceptions import PriqueueError
from priqueue.jobs import Attempt, Job, JobStatus, State, from_ms

#: what these commands answer where there is no such key
_NOTHING: Mapping[str, Any] = {
    "INFO": {}, "LLEN": 0, "ZCARD": 0, "HLEN": 0, "XLEN": 0, "HGETALL": {}, "HVALS": (), "LRANGE": (), "ZRANGE": (),
    "XRANGE": (),
}  # fmt: skip
_MEMORY = ("INFO", "memory")


class Inspector:
    """Reads of one queue."""

    def __init__(
        self,
        client: "Redis",
        settings: Settings,
        clock: Callable[[], int] | None = None,
        *,
        timeout_s: float | None = None,
    ) -> None:
        """``timeout_s`` is how long to wait for each answer, SOCKET_TIMEOUT_S if not given."""
        self.settings = settings
        self.keys = Keys(settings.namespace)
        self._client = derive(client, socket_timeout_s=timeout_s or settings.socket_timeout_s)
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
            run_at=None if due_ms is None else from_ms(due_ms), trail=[attempt_of(line) for line in trail],
        )  # fmt: skip

    def known(self, job_ids: Sequence[str]) -> set[str]:
        """Return those of some jobs that are in the queue, wherever there."""
        found = self._read(*(("HEXISTS", self.keys.jobs, job_id) for job_id in job_ids)) if job_ids else []
        return {job_id for job_id, is_there in zip(job_ids, found, strict=True) if is_there}

    def stats(self) -> Stats:
        """Return the queue in figures, in O(lanes + workers + leases) and two round trips: no job is read."""
        stats: Stats = self._follow(self._stats())[0]
        return stats

    def _stats(self) -> Plan[Stats]:
        keys, lanes = self.keys, self.settings.lanes
        time, counters, leases, pauses, dead, records, beats, slots, waiting, oldest, seen, *of_lanes = yield [
            ("TIME",), ("HGETALL", keys.counters), ("HVALS", keys.inflight), ("HGETALL", keys.paused),
            ("HLEN", keys.letters), ("HGETALL", keys.workers), ("HGETALL", keys.heartbeats), ("HGETALL", keys.slots),
            ("XLEN", keys.audit), ("XRANGE", keys.audit, "-", "+", "COUNT", 1), ("HGETALL", keys.seen),
            *(command for lane in lanes for command in self._lane(lane.name)),
        ]  # fmt: skip
        heads, former = of_lanes[2::3], self._former_lanes(counters)
        noted, info, *depths = yield [
            ("HMGET", keys.since, *(job_id or "" for job_id in heads)), _MEMORY, *self._depths_asked(former)
        ]  # fmt: skip
        now_ms, in_flight = self._ms(time), Counter(lane for lease in leases for lane in lease.split(" ")[3:4])
        ages_s = _ages_s(heads, noted or [None] * len(heads), now_ms)
        workers = worker_stats(records, beats, slots, now_ms)
        here = [worker for worker in workers if worker.state(self.settings) != "gone"]
        memory, limit = memory_of(info)
        return Stats(
            lanes={
                lane.name: lane_stats(
                    counters, lane.name, weight=lane.weight, ready=ready, delayed=delayed, oldest_ready_s=age_s,
                    in_flight=in_flight[lane.name], paused=pause_of(pauses.get(lane.name)),
                )
                for lane, ready, delayed, age_s in zip(lanes, of_lanes[::3], of_lanes[1::3], ages_s, strict=True)
            },
            dead=dead, workers=workers, left_behind=_left_behind(former, depths),
            slots=sum(worker.in_flight for worker in here), capacity=sum(worker.concurrency for worker in here),
            audit_backlog=waiting, audit_oldest_s=_age_s(oldest[0][0].split("-")[0], now_ms) if oldest else 0,
            last_turn_s={duty: _age_s(seen[duty], now_ms) if duty in seen else None for duty in DUTIES},
            refused=refusals(counters), late_beats=int(counters.get("late_beats:", 0)),
            memory_bytes=memory, memory_limit_bytes=limit,
        )  # fmt: skip

    def workers(self) -> list[WorkerStats]:
        """Return all known workers, the ones gone for less than ten minutes too."""
        time, records, beats, slots = self._read(
            ("TIME",), ("HGETALL", self.keys.workers), ("HGETALL", self.keys.heartbeats), ("HGETALL", self.keys.slots)
        )
        return worker_stats(records, beats, slots, self._ms(time))

    def agenda(self) -> tuple[float | None, list[str]]:
        """Return what the ticker has before it: seconds until the next due job, and lanes whose pause is over.

        The seconds are 0 or less when one is due already, None when nothing is delayed.
        """
        due = [("ZRANGE", self.keys.delayed(lane), 0, 0, "WITHSCORES") for lane in self.settings.lane_names]
        time, pauses, *earliest = self._read(("TIME",), ("HGETALL", self.keys.paused), *due)
        now_ms = self._exact_ms(time)
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
        (info,) = self._read(_MEMORY, transaction=False)
        memory, _ = memory_of(info)
        return gauges if memory is None else {**gauges, "memory": memory}

    def paused(self) -> dict[str, Pause]:
        """Return the paused lanes."""
        (pauses,) = self._read(("HGETALL", self.keys.paused))
        return {lane: pause for lane, record in pauses.items() if (pause := pause_of(record))}

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def now_ms(self) -> int:
        """Return the server's time."""
        (time,) = self._read(("TIME",))
        return self._ms(time)

    def _ms(self, time: Sequence[Any]) -> int:
        return int(self._exact_ms(time))

    def _exact_ms(self, time: Sequence[Any]) -> float:
        return int(time[0]) * 1000 + int(time[1]) / 1000 if self._clock is None else self._clock()

    def _follow(self, *plans: Plan[Any]) -> list[Any]:
        """Carry out plans together. What they ask first is answered as of one moment, the rest is of one later."""
        together = chain([True], repeat(False))
        return follow(plans, lambda commands: self._read(*commands, transaction=next(together)))

    def _read(self, *commands: Command, transaction: bool = True) -> list[Any]:
        pipeline = self._client.pipeline(transaction=transaction)
        for command in commands:
            pipeline.execute_command(*command)
        try:
            answers = pipeline.execute(raise_on_error=False)
        except RedisError as error:
            raise translated(error) from error
        return [_answer(*pair) for pair in zip(commands, answers, strict=True)]

    def _depths(self, lanes: Sequence[str]) -> dict[str, dict[str, int]]:
        numbers = self._read(*self._depths_asked(lanes)) if lanes else []
        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        return {lane: {"ready": ready, "delayed": delayed} for lane, (ready, delayed) in zip(lanes, pairs, strict=True)}

    def _depths_asked(self, lanes: Sequence[str]) -> list[Command]:
        return [c for lane in lanes for c in (("LLEN", self.keys.lane(lane)), ("ZCARD", self.keys.delayed(lane)))]

    def _lane(self, lane: str) -> list[Command]:
        key = self.keys.lane(lane)
        return [("LLEN", key), ("ZCARD", self.keys.delayed(lane)), ("LINDEX", key, 0)]

    def _former_lanes(self, counters: Mapping[str, str]) -> list[str]:
        """Return the lanes that had jobs once and are in the configuration no more."""
        seen = {field.partition(":")[2] for field in counters if field.startswith("enqueued:")}
        return sorted(seen - set(self.settings.lane_names))

    def _decoded(self, job_id: str, stored: str) -> Job:
        try:
            return Job.decode(job_id, signing.verify(self.settings.signing_keys, job_id, stored))
        except (ValueError, LookupError, TypeError, PriqueueError):
            return Job(id=job_id, name="unreadable", payload={})


def _answer(command: Sequence[Any], answer: Any) -> Any:
    """Return the answer; where a foreign value stands at the key, that of nothing, so that the rest is seen."""
    if not isinstance(answer, RedisError):
        return answer
    if str(answer).startswith("WRONGTYPE") or command == _MEMORY:  # which access rules and stand-ins may refuse
        return _NOTHING.get(command[0])
    raise translated(answer) from answer


def memory_of(info: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the memory the server uses and its limit, 0 for none; None where it does not say."""
    if "used_memory" not in info or "maxmemory" not in info:
        return None, None
    return int(info["used_memory"]), int(info["maxmemory"])


def _ages_s(ids: Sequence[str | None], noted: Sequence[str | None], now_ms: int) -> list[float]:
    """Return for how long each of these jobs has been ready, 0 where there is none."""
    return [
        _age_s(times.split(" ")[0] if times else born_ms(job_id) or now_ms, now_ms) if job_id else 0
        for job_id, times in zip(ids, noted, strict=True)
    ]


def _left_behind(lanes: Sequence[str], depths: Sequence[int]) -> dict[str, int]:
    numbers = zip(lanes, depths[::2], depths[1::2], strict=True)
    return {lane: ready + delayed for lane, ready, delayed in numbers if ready + delayed}


def _age_s(since_ms: str | int, now_ms: int) -> float:
    return max(0, now_ms - int(since_ms)) / 1000


def _state(lease: str | None, letter: str | None, due_ms: float | None) -> State:
    if lease:
        return State.IN_FLIGHT
    if letter:
        return State.DEAD
    return State.READY if due_ms is None else State.DELAYED


def attempt_of(line: str) -> Attempt:
    """Return the attempt of one line of a trail."""
    _, _, at_ms, record = line.split(" ", 3)
    return Attempt(**json.loads(record), at=from_ms(int(at_ms)))
