"""Runs: many letters requeued or purged in steps, by pages that come and go, and by several at once."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from priqueue import callers, runs, wiring
from priqueue.coordinator import Run, Runs
from priqueue.coordinator.letters import Filter
from priqueue.jobs import Failure, Job, from_ms
from tests.support.queues import START_MS, Queue

LONG_S = 60


@pytest.fixture(autouse=True)
def configured(queue: Queue) -> Iterator[Queue]:
    with wiring.override(queue.coordinator), callers.acting_as("user:7"):
        yield queue


@pytest.fixture
def reader(queue: Queue) -> Runs:
    return Runs(queue.raw, queue.settings, queue.clock)


def bury(queue: Queue, number: int, **options: object) -> list[Job]:
    """Bury jobs and let a millisecond pass, so that they are before the bound of a run that begins then."""
    made = [job for at in range(0, number, 100) for job in queue.buried(number=min(100, number - at), **options)]
    queue.clock.advance(0.001)
    return made


def begun(queue: Queue, reader: Runs, action: str = "purge", **options: object) -> Run:
    wanted = {"wanted": Filter(), "number": 0, "until_ms": queue.clock.now_ms - 1, **options}
    assert runs.begin(Run(id="r", action=action, reason="old", **wanted))
    found = reader.run("r")
    assert found
    return found


def test_a_run_does_all_that_is_meant_and_ends(queue: Queue, reader: Runs) -> None:
    bury(queue, 250, lane="low")
    (high,) = bury(queue, 1, lane="high")

    ended = runs.work(begun(queue, reader, wanted=Filter(lane="low"), number=250), reader, LONG_S)

    assert (ended.state, ended.done, ended.alone, ended.left) == ("done", 250, 0, 0)
    assert queue.places() == {high.id: "dead"}
    assert queue.event()["outcome"] == "done: purged 250 of 250"


def test_letters_are_requeued_the_oldest_first(queue: Queue, reader: Runs) -> None:
    made = bury(queue, 120)

    runs.work(begun(queue, reader, "requeue"), reader, LONG_S)

    assert queue.state()["ready"]["default"] == [job.id for job in made]


def test_a_requeue_leaves_out_what_was_replaced_and_a_purge_does_not(queue: Queue, reader: Runs) -> None:
    replaced, other = bury(queue, 2)
    copy = Job(name=replaced.name, payload={}, replaces=replaced.id)
    queue.coordinator.replace(replaced.id, copy, caller="user:7", reason="edited")

    requeued = runs.work(begun(queue, reader, "requeue"), reader, LONG_S)
    runs.begin(Run(id="p", action="purge", reason="old", wanted=Filter(), number=1, until_ms=START_MS))
    purged = runs.work(reader.run("p") or RuntimeError, reader, LONG_S)  # type: ignore[arg-type]

    assert (requeued.done, requeued.alone, purged.done) == (1, 0, 1)
    assert queue.places() == {other.id: "ready", copy.id: "ready"}


def test_what_is_buried_after_the_bound_is_never_touched(queue: Queue, reader: Runs) -> None:
    bury(queue, 3)
    run = begun(queue, reader)
    later = bury(queue, 3)

    ended = runs.work(run, reader, LONG_S)

    assert ended.done == 3
    assert queue.places() == {job.id: "dead" for job in later}


def test_letters_that_die_again_meanwhile_are_requeued_once(queue: Queue, reader: Runs) -> None:
    bury(queue, 150)
    run = begun(queue, reader, "requeue", number=150)
    for _ in range(4):
        run = runs.work(run, reader, 0)
        queue.clock.advance(1)
        for ids, cursor in reader.ahead(run):
            queue.coordinator.step(run, ids, cursor, caller="user:7")
            break
        queue.clock.advance(1)
        for claim in queue.coordinator.pull("worker", 100):
            queue.coordinator.bury(claim, Failure(error="ValueError"))
        run = reader.run("r") or run

    ended = runs.work(run, reader, LONG_S)

    assert (ended.state, ended.done) == ("done", 150)
    assert [action for action, _, job in queue.events() if job].count("requeue") == 150
    assert set(queue.places().values()) == {"dead"}


def test_a_run_without_time_takes_no_step_and_is_gone_on_with_by_its_id(queue: Queue, reader: Runs) -> None:
    bury(queue, 3)

    first = runs.work(begun(queue, reader, number=3), reader, 0)
    assert (first.state, first.done, first.left) == ("going", 0, 3)

    with callers.acting_as("user:8"):
        ended = runs.work(reader.run("r") or first, reader, LONG_S)
    assert (ended.state, ended.done, ended.steered_by) == ("done", 3, "user:8")
    assert queue.events()[-2][:2] == ("purge", "user:8")


def test_a_stopped_run_does_nothing_until_somebody_lets_it_go_on(queue: Queue, reader: Runs) -> None:
    made = bury(queue, 3)
    run = begun(queue, reader)
    assert runs.stop(run)

    stopped = runs.work(reader.run("r") or run, reader, LONG_S)
    assert (stopped.state, queue.places()) == ("stopped", {job.id: "dead" for job in made})

    assert runs.go_on(stopped)
    assert runs.work(reader.run("r") or run, reader, LONG_S).done == 3


def test_two_who_drive_one_run_take_each_letter_once_and_count_it_once(queue: Queue, reader: Runs) -> None:
    bury(queue, 1_000)
    begun(queue, reader, "requeue", number=1_000)

    def drive() -> None:
        own = Runs(queue.raw, queue.settings, queue.clock)
        with callers.acting_as("user:9"):
            while (run := own.run("r")) and run.state == "going":
                runs.work(run, own, 0.05)
        own.close()

    drivers = [threading.Thread(target=drive) for _ in range(3)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()

    ended = reader.run("r")
    assert ended
    assert (ended.state, ended.done, ended.alone) == ("done", 1_000, 0)
    assert len(queue.state()["ready"]["default"]) == 1_000
    assert [action for action, _, job in queue.events() if job].count("requeue") == 1_000
    assert [action for action, _, job in queue.events() if not job and action == "requeue"].count("requeue") == 2


def test_two_runs_over_the_same_letters_take_each_once(queue: Queue, reader: Runs) -> None:
    bury(queue, 300)
    for run_id in "ab":
        runs.begin(Run(id=run_id, action="requeue", reason="x", wanted=Filter(), number=300, until_ms=START_MS))
    first, second = (reader.run(run_id) for run_id in "ab")
    assert first
    assert second
    ahead, others = reader.ahead(first), reader.ahead(second)
    queue.coordinator.step(first, *next(ahead), caller="user:1")
    queue.coordinator.step(second, *next(others), caller="user:2")

    ended = [runs.work(reader.run(run_id) or first, reader, LONG_S) for run_id in "ba"]

    assert sum(run.done for run in ended) == 300
    assert len(queue.state()["ready"]["default"]) == 300


def test_a_trim_in_the_middle_makes_a_run_miss_nothing(queue: Queue, reader: Runs) -> None:
    queue.buried(number=100)
    queue.clock.advance(1)
    made = bury(queue, 200)
    queue.clock.advance(1)
    run = begun(queue, reader, wanted=Filter(until=from_ms(queue.clock.now_ms)))
    for ids, cursor in reader.ahead(run):
        queue.coordinator.step(run, ids, cursor, caller="user:7")
        break
    queue.coordinator.purge([job.id for job in made[::2]], caller="user:1", reason="others")
    while queue.coordinator.trim() or queue.raw.exists(queue.keys.trim):
        pass

    ended = runs.work(reader.run("r") or run, reader, LONG_S)

    assert (ended.done, queue.places()) == (200, {})


def test_a_rate_lets_only_so_many_go_in_a_second(queue: Queue, reader: Runs) -> None:
    bury(queue, 30)
    run = begun(queue, reader, "requeue", per_s=10)
    done = []
    for _ in range(4):
        run = runs.work(run, reader, LONG_S)
        done.append(run.done)
        queue.clock.advance(0.5)

    assert done == [5, 10, 15, 20]


@pytest.mark.parametrize(("options", "fault"), [({"reason": "  "}, "reason"), ({"action": "bury"}, "action")])
def test_a_run_that_could_not_be_is_refused(queue: Queue, options: dict[str, str], fault: str) -> None:
    run = Run(id="r", action="purge", reason="x", wanted=Filter(), number=1, until_ms=START_MS)

    with pytest.raises(ValueError, match=fault):
        runs.begin(replace(run, **options))

    assert queue.raw.exists(queue.keys.run("r")) == 0


def test_times_of_a_filter_survive_in_a_run(queue: Queue, reader: Runs) -> None:
    wanted = Filter(since=from_ms(START_MS), until=from_ms(START_MS) + timedelta(milliseconds=1234))

    assert begun(queue, reader, wanted=wanted).wanted == wanted


def test_a_letter_whose_lane_holds_a_foreign_value_is_left_alone_and_the_others_go(queue: Queue, reader: Runs) -> None:
    (low,), (high,) = (bury(queue, 1, lane=lane) for lane in ("low", "high"))
    queue.raw.set(queue.keys.lane("low"), "foreign")

    ended = runs.work(begun(queue, reader, "requeue", number=2), reader, LONG_S)

    assert (ended.state, ended.done, ended.alone) == ("done", 1, 1)
    assert queue.raw.hexists(queue.keys.letters, low.id)
    assert queue.raw.lrange(queue.keys.lane("high"), 0, -1) == [high.id]


def test_a_requeue_and_a_purge_of_the_same_letters_at_once_take_each_once(queue: Queue, reader: Runs) -> None:
    made = bury(queue, 400)
    for action in ("requeue", "purge"):
        runs.begin(Run(id=action, action=action, reason="x", wanted=Filter(), number=400, until_ms=START_MS))

    def drive(run_id: str) -> None:
        own = Runs(queue.raw, queue.settings, queue.clock)
        with callers.acting_as("user:9"):
            while (run := own.run(run_id)) and run.state == "going":
                runs.work(run, own, 0.01)
        own.close()

    drivers = [threading.Thread(target=drive, args=(action,)) for action in ("requeue", "purge")]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()

    requeued, purged = (reader.run(action) for action in ("requeue", "purge"))
    assert requeued
    assert purged
    assert requeued.done + purged.done == 400
    assert list(queue.places().values()) == ["ready"] * requeued.done
    events = [(action, job) for action, _, job in queue.events() if action in ("requeue", "purge") and job]
    assert sorted(job for _, job in events) == sorted(job.id for job in made)
