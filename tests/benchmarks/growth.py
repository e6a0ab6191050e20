"""Growth: what becomes of drain and claim when the queue is long, workers are many, and beside delayed and dead jobs.

    python -m tests.benchmarks.growth [--scale 0.1] [--repeats 3] [--into docs/performance.md]

Workers are running when a drain begins: the lanes are paused, filled and resumed. All sizes take turns in each repeat,
so that whatever else the machine does falls on all alike; the last column is a ratio to the first size of the same run.
"""

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

from priqueue.conf import Settings
from priqueue.coordinator import Coordinator
from priqueue.jobs import Failure, Job
from tests.benchmarks import page, probe
from tests.benchmarks.arena import Arena
from tests.benchmarks.contenders import OURS, SECRET_KEY
from tests.benchmarks.measures import rate
from tests.benchmarks.table import shown

#: table → size → one figure for each repeat
Figures = dict[str, dict[int, list[float]]]

QUEUED = (1_000, 10_000, 100_000, 1_000_000)
WORKERS = (1, 2, 4, 8, 16)
BESIDE = (0, 1_000, 10_000, 100_000)
_WORKER = "bench:1:abcdefgh"
_SLOTS = 8
_TURNS = 500
_LONGEST_DRAIN_S = 6
_AT_LEAST = 20_000
_FAILURE = Failure(error="ValueError", message="no")
#: what varies, and what is measured, in the order of the page
TABLES = {
    "drain": ("jobs that wait", "drain, 1 worker, concurrency 8, jobs/s"),
    "claim": ("jobs that wait", "claim and ack of 8, ms"),
    "workers": ("workers of 8 slots", "drain, jobs/s"),
    "delayed": ("delayed jobs beside", "claim and ack of 8, ms"),
    "dead": ("dead letters beside", "claim and ack of 8, ms"),
}


class Growth:
    """The queue of one arena, and what is measured of it."""

    def __init__(self, arena: Arena, scale: float) -> None:
        self._arena = arena
        self._scale = scale
        given = {"URL": arena.url, "NAMESPACE": "bench", "AUDIT": "all"}
        self._coordinator = Coordinator(arena.client, Settings.parse(given, secrets=[SECRET_KEY]))
        self.figures: Figures = defaultdict(lambda: defaultdict(list))

    def repeat(self) -> None:
        """Measure everything once."""
        for size in map(self._scaled, QUEUED):
            self.figures["drain"][size].append(self._drain(size, 1))
        for workers in WORKERS:
            self.figures["workers"][workers].append(self._drain(self._scaled(2 * _AT_LEAST), workers))
        for table, prepare in (("claim", self._fill), ("delayed", self._delay), ("dead", self._bury)):
            for size in map(self._scaled, QUEUED if table == "claim" else BESIDE):
                self._arena.clear()
                self._coordinator.register(_WORKER, lanes=["default"], concurrency=1000)
                prepare(size)
                self.figures[table][size].append(self._turn_ms())

    def _scaled(self, number: int) -> int:
        return max(50, round(number * self._scale)) if number else 0

    def _drain(self, jobs: int, workers: int) -> float:
        """Return the rate at which workers that wait for it drain a lane; of a short one, over several times."""
        self._arena.clear()
        self._arena.start(OURS, *[OURS.workers["c8"]] * workers)
        self._fill(_SLOTS * workers)
        self._arena.wait_for(_SLOTS * workers)
        rates = [self._drain_once(jobs) for _ in range(max(1, self._scaled(_AT_LEAST) // jobs))]
        self._arena.end_workers()
        return median(rates)

    def _drain_once(self, jobs: int) -> float:
        self._coordinator.pause("default", caller="system", reason="filled by a benchmark")
        self._fill(jobs)
        self._arena.record.write_bytes(b"")
        self._coordinator.resume("default", caller="system")
        self._arena.wait_for(jobs, within_s=_LONGEST_DRAIN_S)
        return rate(probe.runs(self._arena.record))

    def _fill(self, number: int) -> None:
        for begin in range(0, number, 10_000):
            self._coordinator.enqueue_many([_job() for _ in range(min(10_000, number - begin))])

    def _delay(self, number: int) -> None:
        for begin in range(0, number, 10_000):
            hour_ms = 3_600_000
            self._coordinator.enqueue_many([_job(delay_ms=hour_ms) for _ in range(min(10_000, number - begin))])

    def _bury(self, number: int) -> None:
        self._fill(number)
        while claims := self._coordinator.turn(_WORKER, 100).claims:
            for claim in claims:
                self._coordinator.bury(claim, _FAILURE)

    def _turn_ms(self) -> float:
        """Return the median time of the call that acks the jobs of a worker and claims as many anew."""
        took_ms, done = [], []
        for _ in range(self._scaled(_TURNS)):
            self._fill(_SLOTS)
            began_s = time.perf_counter()
            done = self._coordinator.turn(_WORKER, _SLOTS, done).claims
            took_ms.append((time.perf_counter() - began_s) * 1000)
        return median(took_ms)


def _job(delay_ms: int = 0) -> Job:
    return Job(name="bench.note", payload=probe.payload(), delay_ms=delay_ms)


def render(figures: Figures) -> str:
    """Return the tables."""
    text = ""
    for table, (size_of, measured) in TABLES.items():
        sizes = figures[table]
        first = median(next(iter(sizes.values())))
        text += f"| {size_of} | {measured} | ÷ first |\n|---|---|---|\n"
        text += "".join(
            f"| {size:,} | {shown(values)} | {median(values) / first:.2f} |\n" for size, values in sizes.items()
        )
        text += "\n"
    return text


def main(words: list[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.growth", description="Measure how cost grows.")
    parser.add_argument("--scale", type=float, default=1, help="shrinks all numbers of jobs; 0.01 for a quick look")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--server", help="the program of a server to measure on, such as redis-server; else the embedded"
    )
    parser.add_argument("--into", type=Path, help="put the tables into this page, between its marks")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder, Arena(Path(folder), options.server) as arena:
        growth = Growth(arena, options.scale)
        for _ in range(options.repeats):
            growth.repeat()
        said = page.about(arena.client, repeats=options.repeats, scale=options.scale)
    tables = render(growth.figures)
    sys.stdout.write(f"{said}\n{tables}")
    if options.into:
        page.put_into(options.into, "growth", f"{said}\n{tables.rstrip()}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
