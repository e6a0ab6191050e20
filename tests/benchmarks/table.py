"""Table: the figures of all repeats as markdown: medians with the least and the most, and ratios within the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tests.benchmarks.measures import drain_row

#: figures of one contender: row → one value for each repeat
Series = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Row:
    """One line of the table: what it is called, its unit, and the limit it is held against."""

    key: str
    title: str
    unit: str
    limit: str = ""

    @property
    def more_is_better(self) -> bool:
        """Whether a greater value is the better one."""
        return self.unit == "jobs/s"


def _drain(worker: str, number: int, batch: int) -> Row:
    concurrency, _, place = worker.partition(" in ")
    workers = "1 worker" if number == 1 else f"{number} workers"
    where = f", in {place}" if place else ""
    title = f"drain, {workers}, concurrency {concurrency[1:]}{where}"
    return Row(drain_row(worker, number), title, "jobs/s", f"take {batch}")


ROWS = (
    Row("enqueue", "enqueue, one at a time", "jobs/s", "put 1"),
    Row("enqueue_many", "enqueue_many, 500 at a time", "jobs/s", "put 50"),
    *(_drain(f"c{size}", workers, batch) for workers in (1, 2) for size, batch in ((1, 1), (8, 8), (64, 50))),
    *(_drain(f"c{size} in threads", 1, batch) for size, batch in ((1, 1), (8, 8), (64, 50))),
    Row("pickup p50", "pickup by an idle worker, p50", "ms", "call"),
    Row("pickup p99", "pickup by an idle worker, p99", "ms", "call"),
    Row("lateness p50", "lateness of delayed jobs, p50", "ms", "call"),
    Row("lateness p99", "lateness of delayed jobs, p99", "ms", "call"),
    Row("bytes", "Redis memory per queued job", "bytes"),
    Row("bytes without audit", "the same, without the audit event", "bytes"),
    Row("memory", "memory of an idle worker and its children", "MB"),
    Row("idle", "round trips of an idle worker", "1/s"),
)
LIMITS = {
    "put 1": "one call a job", "put 50": "one call per 50", "take 1": "one call a job", "take 8": "one call per 8",
    "take 50": "one call per 50", "call": "one call",
}  # fmt: skip


def render(ours: Series, limits: Series, peers: Mapping[str, Series]) -> str:
    """Return the table. A cell without a figure is a dash."""
    best = ["÷ best peer"] if peers else []
    head = ["", "unit", "priqueue", "limit", "÷ limit", *best, *peers]
    lines = [head, ["---"] * len(head)]
    for row in ROWS:
        limit = f"{shown(limits[row.limit])}, {LIMITS[row.limit]}" if row.limit else "-"
        ratio = f"{median(ours[row.key]) / median(limits[row.limit]):.2f}" if row.limit else "-"
        against = [_against_best(row, ours, peers)] if peers else []
        theirs = [shown(series.get(row.key, ())) for series in peers.values()]
        lines.append([row.title, row.unit, shown(ours[row.key]), limit, ratio, *against, *theirs])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _against_best(row: Row, ours: Series, peers: Mapping[str, Series]) -> str:
    # What runs a delayed job before its time is not the best at it.
    theirs = {name: series[row.key] for name, series in peers.items() if series.get(row.key)}
    medians = {name: median(values) for name, values in theirs.items() if min(values) >= 0}
    if not medians:
        return "-"
    name = (max if row.more_is_better else min)(medians, key=lambda name: medians[name])
    return f"{median(ours[row.key]) / medians[name]:.2f} ({name})" if medians[name] else f"({name})"


def shown(values: Sequence[float]) -> str:
    """Return the median with the least and the most; a dash for nothing."""
    if not values:
        return "-"
    return f"{_number(median(values))} ({_number(min(values))} to {_number(max(values))})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
