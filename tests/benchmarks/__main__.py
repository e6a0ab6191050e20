"""The benchmark: one table of what priqueue does, beside what the server could do at all, and beside other queues.

    python -m tests.benchmarks [--scale 0.1] [--repeats 3] [--peers] [--into docs/performance.md]

All take turns on one server, measure by measure and repeat by repeat, so that whatever else the machine does falls on
all alike.
"""

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

from tests.benchmarks import measures, page
from tests.benchmarks.arena import Arena, Producer
from tests.benchmarks.contenders import OURS, PEERS, UNAUDITED, Contender
from tests.benchmarks.limits import limits
from tests.benchmarks.measures import Figures, Stand, draining
from tests.benchmarks.table import render

LIMIT = "limit"
MEASURES: tuple[Callable[[Stand], Figures], ...] = (
    measures.enqueueing,
    *(draining(f"c{size}", workers) for workers in (1, 2) for size in (1, 8, 64)),
    *(draining(f"c{size} in threads") for size in (1, 8, 64)),
    measures.waiting,
    measures.delaying,
)


class Bench:
    """All figures of one run, by contender and row."""

    def __init__(self, arena: Arena, scale: float, peers: Iterable[Contender]) -> None:
        self._arena = arena
        self._scale = scale
        self._stack = ExitStack()
        self.peers = list(peers)
        self._unaudited = self._stand(UNAUDITED)
        self._stands = [self._stand(each) for each in (OURS, *self.peers)]
        self.series: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def _stand(self, contender: Contender) -> Stand:
        producer = self._stack.enter_context(Producer(self._arena, contender))
        return Stand(self._arena, contender, producer, self._scale)

    def repeat(self, number: int) -> None:
        """Measure everything once; who begins is another each time."""
        begin = number % len(self._stands)
        order = self._stands[begin:] + self._stands[:begin]
        for measure in MEASURES:
            self._arena.clear()
            self._note(LIMIT, limits(self._arena.client, round(5000 * self._scale)))
            for stand in order:
                self._note(stand.contender.name, measure(stand))
        self._note(OURS.name, measures.size_without_audit(self._unaudited))
        for stand in self._stands[1:]:  # none of them audits
            self._note(stand.contender.name, measures.size_without_audit(stand))

    def _note(self, name: str, figures: Figures) -> None:
        for row, value in figures.items():
            self.series[name][row].append(value)

    def close(self) -> None:
        """End the producers."""
        self._stack.close()


def parsed(words: list[str]) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Measure, and print one table.")
    parser.add_argument("--scale", type=float, default=1, help="shrinks all numbers of jobs; 0.1 for a quick look")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peers", action="store_true", help="beside Celery, RQ, Dramatiq and Huey")
    parser.add_argument(
        "--server", help="the program of a server to measure on, such as redis-server; else the embedded"
    )
    parser.add_argument("--into", type=Path, help="put the table into this page, between its marks")
    return parser.parse_args(words)


def main(words: list[str]) -> None:
    """Measure and print."""
    options = parsed(words)
    with tempfile.TemporaryDirectory() as folder, Arena(Path(folder), options.server) as arena:
        bench = Bench(arena, options.scale, PEERS if options.peers else ())
        for number in range(options.repeats):
            bench.repeat(number)
        bench.close()
        peers = {peer.name: bench.series[peer.name] for peer in bench.peers}
        said = page.about(arena.client, repeats=options.repeats, scale=options.scale)
    table = render(bench.series[OURS.name], bench.series[LIMIT], peers)
    sys.stdout.write(f"{said}\n{table}")
    if options.into:
        page.put_into(options.into, "table", f"{said}\n{table}")


if __name__ == "__main__":
    main(sys.argv[1:])
