"""Checker: what must be true of a queue after whatever was done to it.

It reads two records that know nothing of each other: the history, which producers (``produce``) and the handlers
themselves wrote, and the audit stream, which the queue wrote. Handlers that take part write "start" and "end".

    jobs = produce(live, WORK, 5000, payload={"seconds": 0.05})
    with watched(live) as imbalances:
        …do harm…
        drain(live)
    found = check(live)
    assert (found.faults(), imbalances) == ({}, [])
"""

import json
import os
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from redis.exceptions import RedisError

from priqueue.exceptions import NotHandedOver
from priqueue.jobs import Job
from tests.support.processes import Live

WORK = "tests.shop.jobs.work"
_BATCH = 100
_SAMPLE_S = 1.0


def produce(live: Live, handler: str, number: int = 1, **options: Any) -> list[Job]:
    """Enqueue jobs as a producer that writes down what it asked for, what was accepted and what got no answer."""
    jobs = [Job(**{"name": handler, "payload": {}, **options}) for _ in range(number)]
    for at in range(0, number, _BATCH):
        batch = jobs[at : at + _BATCH]
        _note(live, "enqueue-invoke", batch)
        try:
            live.coordinator.enqueue_many(batch)
        except NotHandedOver:
            _note(live, "enqueue-unknown", batch)
        else:
            _note(live, "enqueue-ok", batch)
    return jobs


def _note(live: Live, what: str, jobs: Iterable[Job]) -> None:
    lines = "".join(json.dumps({"what": what, "id": job.id}) + "\n" for job in jobs)
    file = os.open(live.history_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, lines.encode())
    os.close(file)


def drain(live: Live, timeout_s: float = 60) -> None:
    """Wait until no job is left but the dead."""
    keys, raw = live.coordinator.keys, live.raw
    live.until(lambda: raw.hlen(keys.jobs) == raw.hlen(keys.letters), timeout_s)


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the records say, read side by side."""

    #: accepted, and neither run to its end nor dead
    lost: set[str]
    #: run, though nobody asked for them
    unexpected: set[str]
    #: enqueued without an answer, and run: allowed
    recovered: set[str]
    #: starts beyond the first that no retry and no person asked for
    double_starts: int
    #: pairs of runs of one job that went on at the same time
    overlaps: int
    #: jobs acked more than once
    double_effects: dict[str, int]
    #: what does not fit together in the store
    misplaced: list[str]

    def faults(self) -> dict[str, Any]:
        """Return what may never be, whatever was done: nothing, when all is well."""
        never = {name: getattr(self, name) for name in ("lost", "unexpected", "double_effects", "misplaced")}
        return {name: found for name, found in never.items() if found}


def check(live: Live) -> Findings:
    """Read history, audit stream and store of a drained queue."""
    ids: dict[str, set[str]] = defaultdict(set)
    lines = live.history()
    for line in lines:
        ids[line["what"]].add(line["id"])
    dead = set(live.raw.hkeys(live.coordinator.keys.letters))
    acks = Counter(entry["job"] for _, entry in audit(live, "ack"))
    return Findings(
        lost=ids["enqueue-ok"] - ids["end"] - dead,
        unexpected=ids["start"] - ids["enqueue-invoke"],
        recovered=ids["enqueue-unknown"] & ids["start"],
        double_starts=_double_starts(live, lines),
        overlaps=_overlaps(lines),
        double_effects={job_id: number for job_id, number in acks.items() if number > 1},
        misplaced=misplaced(live),
    )


def audit(live: Live, *actions: str) -> list[tuple[int, dict[str, str]]]:
    """Return (server ms, event) of every audit event with one of these actions."""
    entries = live.raw.xrange(live.coordinator.keys.audit)
    return [(int(entry_id.partition("-")[0]), entry) for entry_id, entry in entries if entry["action"] in actions]


def _double_starts(live: Live, lines: Sequence[dict[str, Any]]) -> int:
    starts = Counter(line["id"] for line in lines if line["what"] == "start")
    planned = Counter(entry["job"] for _, entry in audit(live, "retry", "requeue"))
    return sum(max(0, number - 1 - planned[job_id]) for job_id, number in starts.items())


def _overlaps(lines: Sequence[dict[str, Any]]) -> int:
    """Count runs of a job that began before an earlier one had ended. A run without an end ended with its process."""
    open_runs: dict[tuple[str, int, int], float] = {}
    runs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for line in lines:
        if line["what"] == "start":
            open_runs[line["id"], line["pid"], line["attempt"]] = line["at"]
        elif line["what"] == "end":
            runs[line["id"]].append((open_runs.pop((line["id"], line["pid"], line["attempt"])), line["at"]))
    return sum(later[0] < earlier[1] for of_job in runs.values() for earlier, later in pairwise(sorted(of_job)))


def misplaced(live: Live) -> list[str]:
    """Return what does not fit together in the store: every job in exactly one place, every reference with its job."""
    raw, keys, lanes = live.raw, live.coordinator.keys, live.settings.lane_names
    jobs, in_flight, letters = (set(raw.hkeys(key)) for key in (keys.jobs, keys.inflight, keys.letters))
    held = Counter(lease.split(" ")[0] for lease in raw.hvals(keys.inflight))
    places = Counter([*in_flight, *letters])
    for lane in lanes:
        places.update(raw.lrange(keys.lane(lane), 0, -1))
        places.update(raw.zrange(keys.delayed(lane), 0, -1))
    about = set(raw.hkeys(keys.attempts)) | set(raw.hkeys(keys.since))
    about |= {key.removeprefix(keys.trail("")) for key in raw.scan_iter(keys.trail("*"), count=10_000)}
    slots = {worker: int(number) for worker, number in raw.hgetall(keys.slots).items() if int(number)}
    wrong = {
        "in two places": {job_id for job_id, number in places.items() if number > 1},
        "in a place without being a job": places.keys() - jobs,
        "a job without a place": jobs - places.keys(),
        "remembered without being a job": about - jobs,
        "a deadline without a lease, or the reverse": set(raw.zrange(keys.deadlines, 0, -1)) ^ in_flight,
        "slots that are not the leases": set(slots.items()) ^ set(held.items()),
    }
    return [f"{what}: {sorted(found)[:5]}" for what, found in wrong.items() if found]


@contextmanager
def watched(live: Live) -> Iterator[list[str]]:
    """Look once a second whether all accepted jobs are accounted for; what is not is put on the list."""
    imbalances: list[str] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(_SAMPLE_S):
            imbalances.extend(imbalance(live))

    watcher = threading.Thread(target=look, name="watcher")
    watcher.start()
    try:
        yield imbalances
    finally:
        over.set()
        watcher.join()
    imbalances.extend(imbalance(live))


def imbalance(live: Live) -> list[str]:
    """Return what is accounted for, where that is not all that was accepted. Read in one transaction."""
    keys, lanes = live.coordinator.keys, live.settings.lane_names
    with live.raw.pipeline(transaction=True) as pipeline:
        for lane in lanes:
            pipeline.llen(keys.lane(lane)).zcard(keys.delayed(lane))
        pipeline.hlen(keys.inflight).hlen(keys.letters).hgetall(keys.counters)
        try:
            *depths, in_flight, dead, counters = pipeline.execute()
        except RedisError:  # whatever is being done to the server: a look that was not had says nothing
            return []
    total = {name: sum(int(counters.get(f"{name}:{lane}", 0)) for lane in lanes) for name in _ENDS}
    there = sum(depths) + in_flight + dead
    gone = total["acked"] + total["purged"] + total["cancelled"]
    return [] if there + gone == total["enqueued"] else [f"{there} there + {gone} gone, of {total['enqueued']}"]


_ENDS = ("enqueued", "acked", "purged", "cancelled")


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
