"""Census: where every job is, and each that is not in exactly one place.

The queue is read in bounded batches while it lives, so a job that moves meanwhile may be missed or met twice. Whatever
looks wrong is looked at once more in a second pass, and what looks wrong again is asked for in one transaction: its
answer is of one moment, and it alone counts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from redis.exceptions import RedisError, ResponseError

from priqueue.coordinator.inspection import Inspector
from priqueue.coordinator.scripts import translated

_BATCH = 1000
#: so many are looked at for certain: each look walks through the lanes, and everybody else waits for that
_LOOKED_AT = 1000


@dataclass(frozen=True, slots=True)
class Finding:
    """A job, or an id, that is not in exactly one place; or a key that holds a foreign value."""

    id: str
    #: such as "ready in high", "in flight", "dead"; empty for a job that is nowhere
    places: tuple[str, ...] = ()
    has_job: bool = True
    foreign: bool = False

    def __str__(self) -> str:
        if self.foreign:
            return f"key {self.id} holds a foreign value"
        if not self.places:
            return f"job {self.id} is in no place"
        where = ", and ".join(self.places)
        return f"job {self.id} is {where}" if self.has_job else f"id {self.id} is {where}, and there is no job"


@dataclass(frozen=True, slots=True)
class Count:
    """How many jobs there are, and what is wrong with which."""

    jobs: int
    findings: Sequence[Finding]
    #: ids that seem wrong, too, and were not looked at for certain
    more: int


class Census(Inspector):
    """Counts the jobs of one queue."""

    def take(self) -> Count:
        """Go through the whole queue, in batches; memory grows with the number of jobs. Raises QueueUnavailable."""
        foreign = self._foreign()
        number, suspects = self._pass()
        if suspects:
            suspects &= self._pass()[1]
        ids = sorted(suspects)
        wrong = [finding for job_id in ids[:_LOOKED_AT] if (finding := self._look(job_id))]
        return Count(number, [*foreign, *wrong], len(ids[_LOOKED_AT:]))

    def _pass(self) -> tuple[int, set[str]]:
        """Return how many jobs there are, and the ids that seem not to be in exactly one place."""
        jobs = set(self._fields(self.keys.jobs))
        number, missing, wrong = len(jobs), jobs, set[str]()
        for job_id in self._placed():
            if job_id in missing:
                missing.discard(job_id)
            else:  # met before, or not a job
                wrong.add(job_id)
        return number, missing | wrong

    def _placed(self) -> Iterator[str]:
        """Give the id of every place. In the order of a job's life: one that moves on is met twice, not missed."""
        for lane in self._lanes():
            yield from self._set(self.keys.delayed(lane))
        for lane in self._lanes():
            yield from self._list(self.keys.lane(lane))
        yield from self._fields(self.keys.inflight)
        yield from self._fields(self.keys.letters)

    def _look(self, job_id: str) -> Finding | None:
        """Return what is wrong with an id at one moment, if anything is."""
        lanes = self._lanes()
        job, lease, letter, *found = self._read(
            ("HEXISTS", self.keys.jobs, job_id), ("HEXISTS", self.keys.inflight, job_id),
            ("HEXISTS", self.keys.letters, job_id), *(("ZSCORE", self.keys.delayed(lane), job_id) for lane in lanes),
            *(("LPOS", self.keys.lane(lane), job_id, "COUNT", 2) for lane in lanes),
        )  # fmt: skip
        places = [f"delayed in {lane}" for lane, score in zip(lanes, found, strict=False) if score is not None]
        for lane, at in zip(lanes, found[len(lanes) :], strict=True):
            places += [f"ready in {lane}"] * len(at or ())
        places += ["in flight"] * bool(lease) + ["dead"] * bool(letter)
        right = len(places) == 1 if job else not places
        return None if right else Finding(job_id, tuple(places), bool(job))

    def _lanes(self) -> list[str]:
        """Return the lanes, those that left the configuration with jobs in them too."""
        (counters,) = self._read(("HGETALL", self.keys.counters))
        seen = {name.partition(":")[2] for name in counters if name.startswith("enqueued:")}
        return [*self.settings.lane_names, *sorted(seen - set(self.settings.lane_names))]

    def _foreign(self) -> list[Finding]:
        keys = {name: getattr(self.keys, name) for name in ("jobs", "inflight", "letters")}
        kinds = dict.fromkeys(keys.values(), "hash")
        for lane in self._lanes():
            kinds |= {self.keys.lane(lane): "list", self.keys.delayed(lane): "zset"}
        found = self._read(*(("TYPE", key) for key in kinds))
        pairs = zip(kinds.items(), found, strict=True)
        return [Finding(key, foreign=True) for (key, kind), is_now in pairs if is_now not in (kind, "none")]

    # --- reading in batches ---

    def _fields(self, key: str) -> Iterator[str]:
        """Give each field of a hash once, or more often, as HSCAN does; the values stay where they are if possible."""
        given: set[str] = set()
        for batch in self._scan(key):
            yield from (name for name in batch if name not in given)
            given.update(batch)

    def _scan(self, key: str) -> Iterator[list[str]]:
        cursor, novalues = 0, True
        while True:
            try:
                cursor, found = self._ask(self._client.hscan, key, cursor, count=_BATCH, no_values=novalues)
            except ResponseError as error:
                if not novalues or str(error).startswith("WRONGTYPE"):
                    return
                novalues = False  # Redis before 7.4
                continue
            yield list(found)
            if cursor == 0:
                return

    def _set(self, key: str) -> Iterator[str]:
        return self._by_place(lambda start, end: self._ask(self._client.zrange, key, start, end))

    def _list(self, key: str) -> Iterator[str]:
        # From the tail: what is claimed meanwhile leaves at the head and shifts nothing.
        return self._by_place(lambda start, end: self._ask(self._client.lrange, key, -end - 1, -start - 1))

    def _by_place(self, read: Callable[[int, int], Sequence[str]]) -> Iterator[str]:
        start = 0
        while True:
            try:
                batch = read(start, start + _BATCH - 1)
            except ResponseError:  # a foreign value, which is a finding of its own
                return
            yield from batch
            if len(batch) < _BATCH:
                return
            start += _BATCH

    def _ask(self, ask: Callable[..., Any], *args: Any, **options: Any) -> Any:
        try:
            return ask(*args, **options)
        except ResponseError:
            raise
        except RedisError as error:
            raise translated(error) from error
