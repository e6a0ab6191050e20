"""health: what is wrong with a queue, worst first, in words."""

from dataclasses import replace
from typing import Any

import pytest

from priqueue.conf import Settings
from priqueue.coordinator.overview import Cause, Snapshot
from priqueue.coordinator.series import Sums
from priqueue.coordinator.stats import LaneStats, Pause, Stats, WorkerStats, lane_stats
from priqueue.health import Level, judge, unknown
from priqueue.jobs import from_ms
from tests.support.queues import START_MS, test_settings

MINUTE_MS = 60_000


def lane(**figures: Any) -> LaneStats:
    nothing = lane_stats({}, "", weight=1, ready=0, delayed=0, in_flight=0, oldest_ready_s=0.0, paused=None)
    return replace(nothing, **figures)


def worker(worker_id: str = "web1:1", **about: Any) -> WorkerStats:
    usual = {"concurrency": 8, "in_flight": 0, "beat_s_ago": 0.1, "draining": False, "about": {}}
    return WorkerStats(**{"id": worker_id, "lanes": ("high", "default", "low"), **usual, **about})


def snapshot(*workers: WorkerStats, lanes: dict[str, LaneStats] | None = None, **figures: Any) -> Snapshot:
    """Return a queue in order, but for what is given."""
    whole = {name: lane() for name in ("high", "default", "low")} | (lanes or {})
    usual = {
        "at_ms": START_MS, "causes": [], "buried": 0, "backlog": 0, "memory_bytes": 1, "memory_limit_bytes": None,
        "seen_s": {"ticker": 0.1, "sweeper": 0.1, "auditor": 0.1}, "recent": Sums(at_ms=START_MS), "held": {},
    }  # fmt: skip
    left_behind = figures.pop("left_behind", {})
    stats = Stats(
        lanes=whole, dead=0, workers=workers or (worker(),), left_behind=left_behind, slots=0, capacity=8,
        audit_backlog=0, audit_oldest_s=0.0, last_turn_s={}, refused={}, late_beats=0,
        memory_bytes=None, memory_limit_bytes=None,
    )  # fmt: skip
    return Snapshot(**{"stats": stats, **usual, **figures})


def told(found: Snapshot, **options: Any) -> list[str]:
    return [f"{each.level}: {each.text}" for each in judge(found, test_settings(**options)).findings]


def pause(minutes_ago: float, until_in: float | None = None) -> Pause:
    since = from_ms(START_MS - minutes_ago * MINUTE_MS)
    until = None if until_in is None else from_ms(START_MS + until_in * MINUTE_MS)
    return Pause(caller="user:ana", reason="bank", since=since, until=until)


def test_a_queue_in_order_is_ok() -> None:
    health = judge(snapshot(), test_settings())

    assert (health.level, health.line) == (Level.OK, "OK")


def test_a_queue_that_does_not_answer_is_unknown_and_not_ok() -> None:
    assert unknown("Redis does not answer").line == "Unknown: Redis does not answer"


def test_trouble_comes_before_attention_and_the_rest_is_counted() -> None:
    found = snapshot(
        worker(lanes=("default",)), lanes={"high": lane(ready=3), "low": lane(paused=pause(20, 40))}, buried=0
    )

    assert judge(found, test_settings()).line == "Trouble: no worker pulls high (+1 more)"


def test_jobs_without_any_worker_are_trouble_told_once() -> None:
    found = snapshot(lanes={"high": lane(ready=120)})
    found = replace(found, stats=replace(found.stats, workers=()))

    assert told(found) == ["Trouble: no worker is registered, and 120 jobs are ready"]


@pytest.mark.parametrize(
    "useless",
    [worker(draining=True), worker(beat_s_ago=11.0), worker(lanes=("low",))],
    ids=["draining", "gone", "other"],
)
def test_a_worker_that_will_not_take_them_does_not_count(useless: WorkerStats) -> None:
    assert told(snapshot(useless, lanes={"high": lane(ready=1)})) == ["Trouble: no worker pulls high"]


def test_nobody_has_to_pull_a_paused_lane() -> None:
    found = snapshot(worker(lanes=("high",)), lanes={"low": lane(ready=9, oldest_ready_s=9999, paused=pause(1, 5))})

    assert told(found) == ["Attention: low is paused by user:ana, 5 m left"]


@pytest.mark.parametrize(
    ("paused", "said"),
    [
        (pause(20, 40), "Attention: low is paused by user:ana, 40 m left"),
        (pause(20), "Attention: low is paused by user:ana, without an end"),
        (pause(61), "Trouble: low is paused by user:ana, for 1 h 1 m and without an end"),
        (pause(300, 40), "Attention: low is paused by user:ana, 40 m left"),
    ],
)
def test_a_pause_is_said_and_becomes_trouble_after_an_hour_without_an_end(paused: Pause, said: str) -> None:
    assert told(snapshot(lanes={"low": lane(paused=paused)})) == [said]


def test_a_lane_whose_oldest_job_waits_too_long_is_said_and_far_too_long_is_trouble() -> None:
    lanes = {"high": lane(ready=1, oldest_ready_s=10.1), "default": lane(ready=1, oldest_ready_s=31)}

    assert told(snapshot(lanes=lanes)) == [
        "Trouble: the oldest job in high has waited 10 s, SLO 1.0 s",
        "Attention: the oldest job in default has waited 31 s, SLO 30 s",
    ]


def test_a_lane_without_a_threshold_is_not_judged() -> None:
    waits = {"high": None, "default": None, "low": None}

    assert told(snapshot(lanes={"high": lane(ready=1, oldest_ready_s=999)}), SLO={"wait_s": waits}) == []


def test_a_silent_ticker_is_trouble_where_jobs_are_delayed() -> None:
    seen_s = {"ticker": 12.0, "sweeper": 0.1}

    idle, waiting = (snapshot(seen_s=seen_s, lanes={"low": lane(delayed=number)}) for number in (0, 3))

    assert told(idle) == ["Attention: the ticker has been silent for 12 s"]
    assert told(waiting) == ["Trouble: the ticker has been silent for 12 s, 3 delayed jobs may be overdue"]


def test_a_sweeper_that_never_ran_is_trouble_once_there_is_a_worker() -> None:
    said = told(snapshot(seen_s={"ticker": 0.1}))

    assert said == ["Trouble: the sweeper has never run, so jobs of a lost worker stay lost"]


def test_an_auditor_is_missed_only_while_events_wait() -> None:
    silent = {"ticker": 0.1, "sweeper": 0.1, "auditor": 400.0}

    assert told(snapshot(seen_s=silent)) == []
    assert told(snapshot(seen_s=silent, backlog=12_400)) == [
        "Trouble: the auditor has been silent for 6 m 40 s, 12,400 audit events wait",
        "Attention: 12,400 audit events wait for the database",
    ]
    assert told(snapshot(seen_s=silent, backlog=5), AUDIT="off") == []


def test_failures_above_the_threshold_are_said_and_many_are_trouble() -> None:
    some, many = (Sums(at_ms=0, known_s=60, acked={"high": 100 - n}, failed={"high": n}) for n in (3, 60))

    assert told(snapshot(recent=some)) == ["Attention: 3.0 % of the runs of the last minute failed, SLO 1.0 %"]
    assert told(snapshot(recent=many)) == ["Trouble: 60.0 % of the runs of the last minute failed, SLO 1.0 %"]


def test_new_dead_letters_are_said_with_their_cause() -> None:
    card = Cause(name="a.CardDeclined h", error="a.CardDeclined", handler="h", number=40, recent=34)
    key = Cause(name="KeyError h", error="KeyError", handler="h", number=2, recent=2)

    assert told(snapshot(causes=[card], buried=34)) == ["Attention: 34 dead letters in 10 min, all CardDeclined"]
    assert told(snapshot(causes=[card, key], buried=36)) == [
        "Attention: 36 dead letters in 10 min, most of them CardDeclined"
    ]


def test_slots_in_use_and_throughput_are_held_to_their_thresholds() -> None:
    recent = Sums(at_ms=0, known_s=60, acked={"high": 60}, slots=9, capacity=10)
    busy = snapshot(recent=recent, lanes={"low": lane(ready=1)})

    assert told(busy, SLO={"throughput_per_s": 5.0}) == [
        "Attention: 90.0 % of the slots were in use in the last minute, SLO 85.0 %",
        "Attention: only 1.0 jobs a second came out, SLO 5.0",
    ]


def test_low_throughput_is_no_fault_where_nothing_waits() -> None:
    assert told(snapshot(recent=Sums(at_ms=0, known_s=60)), SLO={"throughput_per_s": 5.0}) == []


@pytest.mark.parametrize(("used", "level"), [(79, None), (81, "Attention"), (96, "Trouble")])
def test_memory_is_judged_by_the_servers_limit(used: int, level: str | None) -> None:
    said = told(snapshot(memory_bytes=used, memory_limit_bytes=100))

    assert [each.partition(":")[0] for each in said] == ([level] if level else [])


def test_a_lane_that_left_the_configuration_with_jobs_is_said() -> None:
    said = told(snapshot(left_behind={"old": 3}))

    assert said == ["Attention: lane old left the configuration with 3 jobs in it"]


def test_a_worker_that_is_gone_with_jobs_is_said() -> None:
    said = told(snapshot(worker(), worker("web2:2", beat_s_ago=11.0, in_flight=4)))

    assert said == ["Attention: worker web2:2 is gone and held 4 jobs"]


@pytest.mark.parametrize(
    ("about", "state"),
    [({}, "alive"), ({"draining": True}, "draining"), ({"beat_s_ago": 7.0}, "late"), ({"beat_s_ago": 10.1}, "gone")],
)
def test_a_worker_is_late_after_one_beat_and_gone_after_two(about: dict[str, Any], state: str) -> None:
    settings: Settings = test_settings(HEARTBEAT_S=5)

    assert worker(**about).state(settings) == state
