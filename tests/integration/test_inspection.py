"""inspection: what people and pages read. It changes nothing."""

from collections.abc import Callable

import pytest

from priqueue.jobs import State, from_ms
from tests.support.queues import FAILURE, START_MS, Queue
from tests.support.trips import trips_of


def test_a_job_that_is_not_there_is_none(queue: Queue) -> None:
    assert queue.inspector.job("nowhere") is None


def test_a_ready_job_is_shown_as_such(queue: Queue) -> None:
    (job,) = queue.enqueue(lane="low")

    status = queue.inspector.job(job.id)

    assert status is not None
    assert (status.job, status.state, status.lane) == (job, State.READY, "low")
    assert (status.attempt, status.crashes, status.worker, status.run_at) == (1, 0, None, None)
    assert list(status.trail) == []


def test_a_delayed_job_is_shown_with_its_due_time(queue: Queue) -> None:
    (job,) = queue.enqueue(delay_ms=5_000)

    status = queue.inspector.job(job.id)

    assert status is not None
    assert (status.state, status.run_at) == (State.DELAYED, from_ms(START_MS + 5_000))


def test_a_job_in_flight_is_shown_with_its_worker(queue: Queue) -> None:
    (claim,) = queue.claimed(lane="low", worker_id="w")

    status = queue.inspector.job(claim.job.id)

    assert status is not None
    assert (status.state, status.worker, status.lane) == (State.IN_FLIGHT, "w", "low")


def test_a_retried_job_is_shown_with_its_next_attempt_and_its_trail(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.retry(claim, FAILURE, delay_s=5)

    status = queue.inspector.job(claim.job.id)

    assert status is not None
    assert (status.state, status.attempt, status.crashes) == (State.DELAYED, 2, 0)
    (line,) = status.trail
    assert (line.error, line.message, line.traceback, line.worker) == ("ValueError", "no", "here", "worker")
    assert (line.attempt, line.crash, line.at) == (1, False, from_ms(START_MS))


def test_a_dead_job_is_shown_with_the_failures_it_had(queue: Queue) -> None:
    (job,) = queue.buried()

    status = queue.inspector.job(job.id)

    assert status is not None
    assert (status.state, status.attempt, len(status.trail)) == (State.DEAD, 1, 1)


def test_a_job_that_is_done_purged_or_cancelled_is_none(queue: Queue) -> None:
    (dead,) = queue.buried()
    queue.coordinator.purge([dead.id], caller="user:1", reason="spam")
    (claim,) = queue.claimed()
    queue.coordinator.ack(claim)
    (ready,) = queue.enqueue()
    queue.coordinator.cancel(ready.id, lane="default", caller="user:1")

    assert [queue.inspector.job(job_id) for job_id in (dead.id, claim.job.id, ready.id)] == [None] * 3


def test_reading_changes_nothing(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.buried()
    queue.enqueue(delay_ms=5_000)
    queue.coordinator.pause("low", caller="user:1", reason="quiet", lasts_s=5)
    before = queue.everything()

    queue.inspector.job(claim.job.id)
    queue.inspector.stats()
    queue.inspector.agenda()
    queue.inspector.silent_workers()
    queue.inspector.gauges()
    queue.inspector.paused()

    assert queue.everything() == before


def test_an_empty_queue_has_figures_too(queue: Queue) -> None:
    stats = queue.inspector.stats()

    assert list(stats.lanes) == ["high", "default", "low"]
    assert [lane.weight for lane in stats.lanes.values()] == [6, 3, 1]
    assert (stats.dead, list(stats.workers), stats.left_behind) == (0, [], {})
    assert {lane.ready + lane.delayed + lane.in_flight for lane in stats.lanes.values()} == {0}


def test_the_depths_of_each_lane_are_counted(queue: Queue) -> None:
    queue.claimed(number=2, lane="low")
    queue.enqueue(number=3, lane="low")
    queue.enqueue(number=4, lane="low", delay_ms=5_000)
    queue.buried()

    stats = queue.inspector.stats()

    low = stats.lanes["low"]
    assert (low.ready, low.delayed, low.in_flight, stats.dead) == (3, 4, 2, 1)


def test_the_totals_of_each_lane_are_counted(queue: Queue) -> None:
    acked, retried, released, buried = queue.claimed(number=4, lane="low")
    queue.coordinator.ack(acked)
    queue.coordinator.retry(retried, FAILURE, delay_s=60)
    queue.coordinator.release(released)
    queue.coordinator.bury(buried, FAILURE)
    queue.coordinator.pull("worker")
    queue.lapse()

    low = queue.inspector.stats().lanes["low"]

    assert (low.enqueued, low.picks, low.picks_full) == (4, 5, 0)
    assert (low.acked, low.retried, low.released, low.buried, low.reclaimed) == (1, 1, 1, 1, 1)


def test_a_lane_tells_how_long_its_oldest_job_has_been_ready(queue: Queue) -> None:
    (claim,) = queue.claimed(lane="low")
    queue.coordinator.release(claim)
    queue.clock.advance(7)

    stats = queue.inspector.stats()

    assert (stats.lanes["low"].oldest_ready_s, stats.lanes["high"].oldest_ready_s) == (7, 0)


def test_a_paused_lane_is_shown_with_who_and_why(queue: Queue) -> None:
    queue.coordinator.pause("low", caller="user:1", reason="quiet", lasts_s=60)

    pause = queue.inspector.stats().lanes["low"].paused

    assert pause is not None
    assert (pause.caller, pause.reason) == ("user:1", "quiet")
    assert (pause.since, pause.until) == (from_ms(START_MS), from_ms(START_MS + 60_000))
    assert queue.inspector.paused() == {"low": pause}


def test_a_pause_without_an_end_has_none(queue: Queue) -> None:
    queue.coordinator.pause("low", caller="user:1", reason="quiet")

    assert queue.inspector.paused()["low"].until is None


def test_a_lane_that_left_the_configuration_with_jobs_is_shown(make_queue: Callable[..., Queue]) -> None:
    before = make_queue(LANES={"high": 6, "bulk": 1})
    before.enqueue(number=2, lane="bulk")
    before.enqueue(lane="bulk", delay_ms=5_000)
    after = make_queue(LANES={"high": 6}, NAMESPACE=before.settings.namespace)

    assert after.inspector.stats().left_behind == {"bulk": 3}


def test_each_worker_is_shown_with_what_it_holds(queue: Queue) -> None:
    queue.coordinator.register("w", lanes=["low"], concurrency=3, host="here", pid=7)
    queue.enqueue(number=2, lane="low")
    queue.coordinator.pull("w", 2)
    queue.coordinator.drain("w", caller="user:1")
    queue.clock.advance(4)

    (worker,) = queue.inspector.workers()

    assert (worker.id, worker.lanes, worker.concurrency, worker.in_flight) == ("w", ["low"], 3, 2)
    assert (worker.beat_s_ago, worker.draining) == (4, True)
    assert worker.about == {"host": "here", "pid": 7, "since_ms": START_MS}


def test_the_agenda_of_an_empty_queue_is_empty(queue: Queue) -> None:
    assert queue.inspector.agenda() == (None, [])


@pytest.mark.parametrize(("later_s", "due_s"), [(0, 2), (2, 0), (5, -3)])
def test_the_agenda_says_when_the_next_job_of_any_lane_is_due(queue: Queue, later_s: float, due_s: float) -> None:
    queue.enqueue(lane="high", delay_ms=9_000)
    queue.enqueue(lane="low", delay_ms=2_000)
    queue.clock.advance(later_s)

    assert queue.inspector.agenda() == (due_s, [])


def test_the_agenda_is_exact_to_less_than_a_millisecond(real_queue: Queue) -> None:
    queue = real_queue.on_the_servers_clock()
    due_ms = _time_ms(queue) // 1 + 5_000
    queue.raw.zadd(queue.keys.delayed("low"), {"id": due_ms})

    for _ in range(20):
        before_ms = _time_ms(queue)
        due_s, _ = queue.inspector.agenda()
        assert due_s is not None
        assert before_ms - 0.01 < due_ms - due_s * 1_000 < _time_ms(queue) + 0.01


def _time_ms(queue: Queue) -> float:
    seconds, us = queue.raw.time()
    return seconds * 1_000 + us / 1_000


def test_the_agenda_names_the_lanes_whose_pause_is_over(queue: Queue) -> None:
    queue.coordinator.pause("high", caller="user:1", reason="quiet")
    queue.coordinator.pause("default", caller="user:1", reason="quiet", lasts_s=5)
    queue.coordinator.pause("low", caller="user:1", reason="quiet", lasts_s=6)
    queue.clock.advance(5)

    assert queue.inspector.agenda() == (None, ["default"])


def test_workers_silent_for_longer_than_ten_minutes_are_named(queue: Queue) -> None:
    queue.register("silent")
    queue.clock.advance(1)
    queue.register("late")
    queue.clock.advance(600)

    assert queue.inspector.silent_workers() == ["silent"]


def test_the_gauges_count_the_capacity_of_workers_that_beat(queue: Queue) -> None:
    queue.register("gone", concurrency=7)
    queue.clock.advance(10.001)
    queue.register("here", concurrency=3)
    queue.enqueue(number=2, lane="low")
    queue.coordinator.pull("here")

    gauges = queue.inspector.gauges()

    assert {name: gauges[name] for name in ("ready:low", "delayed:low", "slots", "capacity")} == {
        "ready:low": 1, "delayed:low": 0, "slots": 1, "capacity": 3,
    }  # fmt: skip


def test_the_realised_share_is_that_of_the_picks_made_while_every_lane_held_work(queue: Queue) -> None:
    before = queue.inspector.stats().shares
    for lane in ("high", "default", "low"):
        queue.enqueue(number=20, lane=lane)
    queue.register()

    queue.coordinator.pull("worker", 10)

    assert before == {"high": None, "default": None, "low": None}
    assert queue.inspector.stats().shares == {"high": 0.6, "default": 0.3, "low": 0.1}


def test_utilisation_is_the_part_of_the_living_workers_slots_that_hold_a_lease(queue: Queue) -> None:
    nobody = queue.inspector.stats()
    queue.register("gone", concurrency=7)
    queue.clock.advance(10.001)
    queue.register("here", concurrency=4)
    queue.enqueue()
    queue.coordinator.pull("here")

    stats = queue.inspector.stats()

    assert (nobody.slots, nobody.capacity, nobody.utilisation) == (0, 0, None)
    assert (stats.slots, stats.capacity, stats.utilisation) == (1, 4, 0.25)


def test_what_waits_for_an_auditor_is_counted_and_its_age_told(real_queue: Queue) -> None:
    queue = real_queue.on_the_servers_clock()
    before = queue.inspector.stats()
    queue.enqueue(number=3)

    stats = queue.inspector.stats()

    assert (before.audit_backlog, before.audit_oldest_s) == (0, 0)
    assert stats.audit_backlog == 3
    assert 0 <= stats.audit_oldest_s < 60


def test_each_duty_tells_how_long_ago_it_had_its_turn(queue: Queue) -> None:
    queue.coordinator.reclaim()
    queue.clock.advance(3)
    queue.coordinator.promote()
    queue.clock.advance(0.5)

    assert queue.inspector.stats().last_turn_s == {"ticker": 0.5, "sweeper": 3.5, "auditor": None}


def test_refusals_are_counted_by_policy(queue: Queue) -> None:
    queue.raw.hset(queue.keys.counters, mapping={"refused:default": "3", "refused:key": "1", "enqueued:low": "9"})

    assert queue.inspector.stats().refused == {"default": 3, "key": 1}


def test_foreign_values_at_every_key_leave_figures_that_say_nothing_wrong(make_queue: Callable[..., Queue]) -> None:
    for name in ("counters", "inflight", "paused", "letters", "workers", "audit", "seen", "since", "slots"):
        queue = make_queue()
        queue.claimed()
        queue.enqueue(lane="low")
        queue.raw.set(queue.keys.prefix + name, "foreign")

        assert queue.inspector.stats().lanes["low"].ready == 1, name


def test_the_figures_are_read_in_two_round_trips_whatever_there_is(
    real_queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = real_queue.with_settings(LANES={"high": 6, "low": 1, "bulk": 1})
    queue = before.with_settings(LANES={"high": 6, "low": 1}, NAMESPACE=before.settings.namespace)
    for lane in ("high", "low", "bulk"):
        before.enqueue(number=100, lane=lane)
    queue.claimed(lane="low")
    queue.inspector.stats()
    trips = trips_of(monkeypatch)

    stats = queue.inspector.stats()

    assert (stats.left_behind, stats.slots, stats.memory_limit_bytes) == ({"bulk": 100}, 1, 0)
    assert trips == ["MULTI", "HMGET"]


def test_a_real_server_tells_its_memory(real_queue: Queue) -> None:
    stats = real_queue.inspector.stats()

    assert (stats.memory_bytes or 0) > 100_000
    assert stats.memory_limit_bytes == 0


def test_without_a_clock_of_the_test_the_time_is_the_servers(real_queue: Queue) -> None:
    real_queue.inspector._clock = None
    seconds, microseconds = real_queue.raw.time()

    now_ms = real_queue.inspector.now_ms()

    assert 0 <= now_ms - (seconds * 1_000 + microseconds // 1_000) < 5_000
