"""The accounts of the demo find what is missing, and their figures are right."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from priqueue.coordinator.stats import LaneStats, Stats, lane_stats
from priqueue.jobs import Job, JobStatus, State
from project.demo.accounting import Accounts, Planned, percentile

T0 = datetime(2026, 1, 1, tzinfo=UTC)
NOTHING = lane_stats({}, "high", weight=1, ready=0, delayed=0, in_flight=0, oldest_ready_s=0.0, paused=None)


@dataclass
class Ran:
    """A run of a handler, as the shop records it."""

    job_id: str
    attempt: int = 1
    worked: bool = True
    started_at: datetime = T0


def stats(**lanes: LaneStats) -> Stats:
    return Stats(
        lanes=lanes, dead=0, workers=[], slots=0, capacity=0, left_behind={}, audit_backlog=0, audit_oldest_s=0,
        last_turn_s={}, refused={}, late_beats=0, memory_bytes=None, memory_limit_bytes=None,
    )  # fmt: skip


def planned(job_id: str, *, doomed: bool = False, lane: str = "high") -> Planned:
    return Planned(id=job_id, lane=lane, due=T0, doomed=doomed)


def in_state(job_id: str, state: State) -> JobStatus:
    job = Job(id=job_id, name="shop.work", payload={})
    return JobStatus(job=job, state=state, lane="high", attempt=1, crashes=0, worker=None, run_at=None)


def account(*jobs: Planned, **states: State) -> Accounts:
    """Return accounts that have looked at the queue once; a job without a state is gone from it."""
    accounts = Accounts(jobs, stats(high=NOTHING))
    accounts.update(lambda job_id: in_state(job_id, states[job_id]) if job_id in states else None)
    return accounts


def test_a_job_that_worked_and_one_that_died_as_planned_are_accounted_for() -> None:
    accounts = account(planned("a"), planned("b", doomed=True), b=State.DEAD)

    assert accounts.faults([Ran("a"), Ran("b", worked=False)]) == []


@pytest.mark.parametrize("state", [State.READY, State.DELAYED, State.IN_FLIGHT])
def test_a_job_that_is_still_in_the_queue_is_open(state: State) -> None:
    accounts = account(planned("a"), a=state)

    assert accounts.faults([Ran("a")]) == ["1 still open: a"]


def test_a_job_that_is_gone_without_a_run_that_worked_is_lost() -> None:
    accounts = account(planned("a"), planned("b"))

    assert accounts.faults([Ran("a", worked=False)]) == ["2 gone without having been done: a, b"]


def test_a_job_that_died_against_the_plan_is_a_fault() -> None:
    assert account(planned("a"), a=State.DEAD).faults([]) == ["1 dead that were to be done: a"]


def test_a_job_that_worked_against_the_plan_is_a_fault() -> None:
    assert account(planned("a", doomed=True)).faults([Ran("a")]) == ["1 done that were to be dead: a"]


def test_a_job_is_asked_about_until_it_has_its_end_and_no_longer() -> None:
    accounts, asked = Accounts([planned("a"), planned("b")], stats(high=NOTHING)), []

    def find(job_id: str) -> JobStatus | None:
        asked.append(job_id)
        return in_state("b", State.READY) if job_id == "b" else None

    assert [accounts.update(find), accounts.update(find)] == [1, 1]
    assert sorted(asked) == ["a", "b", "b"]


def test_the_report_shows_what_happened_since_the_start_in_each_lane() -> None:
    before = stats(high=replace(NOTHING, picks=50, picks_full=30), low=NOTHING)
    after = stats(high=replace(NOTHING, picks=54, picks_full=36), low=replace(NOTHING, picks=2, picks_full=2))
    jobs = [planned("a"), planned("b", doomed=True), planned("c", lane="low")]
    accounts = Accounts(jobs, before)
    accounts.update(lambda job_id: in_state("b", State.DEAD) if job_id == "b" else None)
    late = T0 + timedelta(milliseconds=40)

    report = accounts.report(
        after,
        [
            Ran("a", started_at=late),
            Ran("b", worked=False),
            Ran("b", attempt=2, worked=False, started_at=late),
            Ran("c", started_at=late),
        ],
    )

    assert [text.split() for text in report] == [
        ["lane", "jobs", "picks", "share", "wait", "p50", "wait", "p95", "retries", "dead"],
        ["high", "2", "4", "75.0%", "0", "ms", "40", "ms", "1", "1"],
        ["low", "1", "2", "25.0%", "40", "ms", "40", "ms", "0", "0"],
        ["2", "done", "+", "1", "dead", "=", "3", "of", "3", "jobs"],
    ]


@pytest.mark.parametrize(
    ("values", "part", "expected"),
    [([1.0], 0.5, 1.0), ([1.0, 2.0], 0.5, 1.0), ([1.0, 2.0, 3.0], 0.5, 2.0), (list(range(1, 101)), 0.95, 95)],
)
def test_a_percentile_is_one_of_the_values(values: list[float], part: float, expected: float) -> None:
    assert percentile(values, part) == expected
