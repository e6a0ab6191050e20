"""The checker finds what it is there to find; and a figure out of its bound fails its test and is in the table."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.faults.checker import WORK, check, imbalance, misplaced, percentile, produce
from tests.faults.figures import Figures
from tests.support.processes import Live


def write(live: Live, what: str, job_id: str, at: float = 0, pid: int = 1, attempt: int = 1) -> None:
    with live.history_path.open("a") as file:
        file.write(json.dumps({"what": what, "id": job_id, "at": at, "pid": pid, "attempt": attempt}) + "\n")


def acked(live: Live) -> str:
    """Return the id of a job that was enqueued and acked, by nobody who wrote it down."""
    (job,) = produce(live, WORK)
    live.coordinator.register("w", lanes=live.settings.lane_names, concurrency=1)
    live.coordinator.ack(live.coordinator.pull("w")[0])
    return job.id


def test_a_job_that_was_run_to_its_end_is_no_fault(live: Live) -> None:
    job_id = acked(live)
    write(live, "start", job_id, at=1)
    write(live, "end", job_id, at=2)

    found = check(live)

    assert (found.faults(), found.recovered, found.double_starts, found.overlaps) == ({}, set(), 0, 0)


def test_a_job_that_was_acked_and_never_came_to_its_end_is_lost(live: Live) -> None:
    job_id = acked(live)

    assert check(live).faults() == {"lost": {job_id}}


def test_a_run_that_nobody_asked_for_is_unexpected(live: Live) -> None:
    write(live, "start", "nobody's")

    assert check(live).faults() == {"unexpected": {"nobody's"}}


def test_a_second_ack_is_a_double_effect(live: Live) -> None:
    job_id = acked(live)
    write(live, "start", job_id, at=1)
    write(live, "end", job_id, at=2)
    live.raw.xadd(live.coordinator.keys.audit, {"action": "ack", "job": job_id})

    assert check(live).faults() == {"double_effects": {job_id: 2}}


def test_runs_of_one_job_at_the_same_time_overlap_and_the_second_start_is_counted(live: Live) -> None:
    job_id = acked(live)
    for what, at, pid in (("start", 1, 1), ("start", 2, 2), ("end", 3, 1), ("end", 4, 2)):
        write(live, what, job_id, at=at, pid=pid)

    found = check(live)

    assert (found.faults(), found.double_starts, found.overlaps) == ({}, 1, 1)


def test_a_start_after_a_planned_retry_is_not_counted(live: Live) -> None:
    job_id = acked(live)
    live.raw.xadd(live.coordinator.keys.audit, {"action": "retry", "job": job_id})
    for what, at, attempt in (("start", 1, 1), ("start", 2, 2), ("end", 3, 2)):
        write(live, what, job_id, at=at, attempt=attempt)

    assert check(live).double_starts == 0


HARM: dict[str, Any] = {
    "in a place without being a job": lambda live, job: live.raw.hdel(live.coordinator.keys.jobs, job),
    "in two places": lambda live, job: live.raw.rpush(live.coordinator.keys.lane("low"), job),
    "a job without a place": lambda live, job: live.raw.delete(live.coordinator.keys.lane("default")),
    "remembered without being a job": lambda live, job: live.raw.rpush(live.coordinator.keys.trail("x"), "1"),
    "a deadline without a lease": lambda live, job: live.raw.zadd(live.coordinator.keys.deadlines, {"x": 1}),
    "slots that are not the leases": lambda live, job: live.raw.hset(live.coordinator.keys.slots, "w", 3),
}


@pytest.mark.parametrize("what", HARM)
def test_what_does_not_fit_together_in_the_store_is_found(live: Live, what: str) -> None:
    (job,) = produce(live, WORK)
    assert misplaced(live) == []

    HARM[what](live, job.id)

    assert [line.startswith(what) for line in misplaced(live)] == [True]


def test_a_job_that_vanishes_is_an_imbalance(live: Live) -> None:
    produce(live, WORK, 3)
    assert imbalance(live) == []

    live.raw.lpop(live.coordinator.keys.lane("default"))

    assert imbalance(live) == ["2 there + 0 gone, of 3"]


def test_a_percentile_is_the_value_that_so_many_do_not_exceed() -> None:
    assert [percentile([3, 1, 2, 4], share) for share in (0, 0.5, 0.95)] == [1, 3, 4]


def test_figures_are_in_the_table_in_the_order_of_their_rows_also_those_not_held(tmp_path: Path) -> None:
    figures = Figures(seed=7)
    figures.report("B1", "lost", 0, "0", held=True)
    with pytest.raises(AssertionError, match=r"A10: s to end is 2\.35, and must be ≤ 2"):
        figures.report("A10", "s to end", 2.345, "≤ 2", held=False)
    figures.failed("A10", "test_a10_x")  # says nothing that is not said
    figures.failed("A2", "test_a2_x")

    figures.write(tmp_path / "new" / "table.md")

    head, _, *lines = (tmp_path / "new" / "table.md").read_text().splitlines()
    assert head.endswith("UTC, seed 7.")
    assert lines == [
        "| row | figure | value | bound | held |",
        "| --- | --- | --- | --- | --- |",
        "| A2 | test_a2_x | failed | passes | NOT HELD |",
        "| A10 | s to end | 2.35 | ≤ 2 | NOT HELD |",
        "| B1 | lost | 0 | 0 | held |",
    ]
