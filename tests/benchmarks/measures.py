"""Measures: each runs one contender once and returns its figures by row of the table."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import quantiles
from time import sleep

from tests.benchmarks import probe
from tests.benchmarks.arena import Arena, Producer
from tests.benchmarks.contenders import Contender
from tests.benchmarks.probe import Run

Figures = dict[str, float]

_LONGEST_DRAIN_S = 8
_FIRST_DUE_S, _LAST_DUE_S = 1.0, 5.0
_GAP_S = 0.02


@dataclass
class Stand:
    """A contender, ready to be measured. ``scale`` shrinks every number of jobs and every length of time."""

    arena: Arena
    contender: Contender
    producer: Producer
    scale: float

    def scaled(self, number: float) -> int:
        """Return a number of jobs at this scale; enough for a rate at any."""
        return max(20, round(number * self.scale))


def enqueueing(stand: Stand) -> Figures:
    """Return the rates at which one process enqueues, and what a waiting job takes."""
    number = stand.scaled(20_000)
    figures = {"enqueue": number / _enqueue(stand, "one_by_one", number)}
    if stand.producer.knows_many:
        figures["enqueue_many"] = number / _enqueue(stand, "together", number)
    return {**figures, **_size(stand, "bytes")}


def size_without_audit(stand: Stand) -> Figures:
    """Return what a waiting job takes, as another row."""
    return _size(stand, "bytes without audit")


def _size(stand: Stand, row: str) -> Figures:
    number = stand.scaled(20_000)
    _enqueue(stand, "one_by_one", 1)
    before = stand.arena.client.info("memory")["used_memory"]
    stand.producer.do("together", number)
    return {row: (stand.arena.client.info("memory")["used_memory"] - before) / number}


def _enqueue(stand: Stand, how: str, number: int) -> float:
    stand.arena.clear()
    stand.producer.do(how, 20)  # connections and scripts: not what a long-lived process pays for
    return stand.producer.do(how, number)


def draining(worker: str, number_of_workers: int = 1) -> Callable[[Stand], Figures]:
    """Return the measure of the rate at which workers run jobs that wait when they start."""

    def drain(stand: Stand) -> Figures:
        if worker not in stand.contender.workers:
            return {}
        its = stand.contender.workers[worker]
        jobs = stand.scaled(its.jobs * (1.5 if number_of_workers > 1 else 1))
        stand.arena.clear()
        stand.producer.do("together", jobs)
        stand.arena.start(stand.contender, *[its] * number_of_workers)
        stand.arena.wait_for(jobs, within_s=_LONGEST_DRAIN_S)
        runs = probe.runs(stand.arena.record)
        stand.arena.end_workers()
        return {drain_row(worker, number_of_workers): rate(runs)}

    return drain


def drain_row(worker: str, number_of_workers: int) -> str:
    """Return the row of a drain."""
    return f"drain {worker} by {number_of_workers}"


def rate(runs: list[Run]) -> float:
    """Return runs a second, from the first to the last; of several workers, while all of them were at it."""
    by_worker: dict[float, list[float]] = {}
    for run in runs:
        by_worker.setdefault(run.worker, []).append(run.at_s)
    first_s = max(times_s[0] for times_s in by_worker.values())
    last_s = min(times_s[-1] for times_s in by_worker.values())
    number = sum(first_s < run.at_s <= last_s for run in runs)
    if number < 2:  # one was done before the other began: a drain that is too short to say anything about both
        first_s, last_s, number = runs[0].at_s, runs[-1].at_s, len(runs) - 1
    return number / (last_s - first_s)


def waiting(stand: Stand) -> Figures:
    """Return what a worker costs that has nothing to do, and how long a job waits for it then, in ms."""
    stand.arena.clear()
    stand.arena.start(stand.contender, stand.contender.usual)
    stand.producer.do("one_by_one", 1)
    stand.arena.wait_for(1)
    sleep(1)
    memory, seconds, before = stand.arena.memory_of_workers(), max(2, 10 * stand.scale), stand.arena.round_trips()
    sleep(seconds)
    idle = (stand.arena.round_trips() - before - 1) / seconds
    number = stand.scaled(300)
    stand.producer.do("paced", number, _GAP_S)
    stand.arena.wait_for(1 + number)
    late_ms = _late_ms(stand, leave_out=1)
    stand.arena.end_workers()
    return {"memory": memory / 2**20, "idle": idle, "pickup p50": late_ms[49], "pickup p99": late_ms[98]}


def delaying(stand: Stand) -> Figures:
    """Return by how much jobs run after their time, in ms."""
    stand.arena.clear()
    stand.arena.start(stand.contender, *(stand.contender.for_delays or [stand.contender.usual]))
    stand.producer.do("one_by_one", 1)
    stand.arena.wait_for(1)
    number = stand.scaled(200)
    stand.producer.do("delayed", number, _FIRST_DUE_S, _FIRST_DUE_S + (_LAST_DUE_S - _FIRST_DUE_S) * stand.scale)
    stand.arena.wait_for(1 + number)
    late_ms = _late_ms(stand, leave_out=1)
    stand.arena.end_workers()
    return {"lateness p50": late_ms[49], "lateness p99": late_ms[98]}


def _late_ms(stand: Stand, leave_out: int) -> list[float]:
    """Return the percentiles, 1 to 99, of how late jobs ran, without the first ones."""
    late = [(run.at_s - run.due_s) * 1000 for run in probe.runs(stand.arena.record)[leave_out:]]
    return quantiles(late, n=100, method="inclusive")
