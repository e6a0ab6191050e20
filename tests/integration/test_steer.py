"""steer: a run over many letters begins, stops, goes on and ends; and its steps."""

from dataclasses import replace

import pytest

from priqueue.coordinator import Run, Runs
from priqueue.coordinator.letters import Filter
from tests.support.queues import START_MS, Queue

RUN = Run(id="run-1", action="purge", wanted=Filter(lane="low"), reason="old", until_ms=START_MS, number=3)
PERSON = "user:7"


@pytest.fixture
def reader(queue: Queue) -> Runs:
    return Runs(queue.raw, queue.settings, queue.clock)


def begun(queue: Queue, reader: Runs, **options: object) -> Run:
    assert queue.coordinator.steer(replace(RUN, **options), "going", caller=PERSON)
    found = reader.run(RUN.id)
    assert found
    return found


def test_a_run_that_began_is_kept_as_it_was_meant(queue: Queue, reader: Runs) -> None:
    wanted = Filter(lane="low", cause="a b", caller="user:1", handler="h", replaced=False)

    found = begun(queue, reader, wanted=wanted, per_s=10)

    assert found == replace(
        RUN, wanted=wanted, per_s=10, state="going", begun_ms=START_MS, steered_by=PERSON, steered_ms=START_MS
    )
    assert 0 < queue.raw.ttl(queue.keys.run(RUN.id)) <= 604_800


def test_it_leaves_an_event_when_it_is_intended_and_one_of_what_came_of_it(queue: Queue, reader: Runs) -> None:
    job, *_ = queue.buried(lane="low", number=2)
    run = begun(queue, reader)
    intended = queue.event()
    queue.coordinator.step(run, [job.id], "a", caller=PERSON)
    queue.coordinator.steer(run, "done", caller="user:8")

    said = {"action": "purge", "input": "3 letters: lane=low", "reason": "old", "correlation_id": "run-1"}
    assert intended == said | {"caller": PERSON, "outcome": "intended", "at": str(START_MS)}
    assert queue.event() == said | {"caller": "user:8", "outcome": "done: purged 1 of 3", "at": str(START_MS)}


MOVES = [
    ([], "going", True),
    ([], "stopped", False),
    ([], "done", False),
    (["going"], "going", False),
    (["going"], "stopped", True),
    (["going"], "done", True),
    (["going", "stopped"], "going", True),
    (["going", "stopped"], "done", False),
    (["going", "done"], "going", False),
    (["going", "done"], "stopped", False),
]


@pytest.mark.parametrize(("before", "state", "moved"), MOVES)
def test_a_run_goes_only_where_it_may(queue: Queue, reader: Runs, before: list[str], state: str, moved: bool) -> None:
    for earlier in before:
        queue.coordinator.steer(reader.run(RUN.id) or RUN, earlier, caller=PERSON)
    there = queue.everything()

    assert queue.coordinator.steer(reader.run(RUN.id) or RUN, state, caller=PERSON) is moved

    found = reader.run(RUN.id)
    assert (found.state if found else "new") == (state if moved else ["new", *before][-1])
    if not moved:
        assert queue.everything() == there


def test_a_run_that_began_is_not_begun_again_under_its_id(queue: Queue, reader: Runs) -> None:
    begun(queue, reader)

    assert not queue.coordinator.steer(replace(RUN, reason="another"), "going", caller="user:8")

    found = reader.run(RUN.id)
    assert found
    assert (found.reason, found.steered_by) == ("old", PERSON)


def test_a_step_does_it_and_moves_the_run_on(queue: Queue, reader: Runs) -> None:
    first, second = queue.buried(lane="low", number=2)
    run = begun(queue, reader)

    assert queue.coordinator.step(run, [first.id, "nobody"], "7-7-a", caller=PERSON) == [first.id]

    assert reader.run(run.id) == replace(run, cursor="7-7-a", done=1, alone=1)
    assert queue.places() == {second.id: "dead"}
    assert queue.events()[-1] == ("purge", PERSON, first.id)


def test_a_step_from_where_the_run_stands_no_more_changes_nothing(queue: Queue, reader: Runs) -> None:
    first, second = queue.buried(lane="low", number=2)
    run = begun(queue, reader)
    queue.coordinator.step(run, [first.id], "a", caller=PERSON)
    before = queue.everything()

    assert queue.coordinator.step(run, [second.id], "b", caller="user:8") == []

    assert queue.everything() == before


@pytest.mark.parametrize("state", ["stopped", "done"])
def test_a_run_that_does_not_go_takes_no_step(queue: Queue, reader: Runs, state: str) -> None:
    (job,) = queue.buried(lane="low")
    run = begun(queue, reader)
    queue.coordinator.steer(run, state, caller=PERSON)
    before = queue.everything()

    assert queue.coordinator.step(run, [job.id], "a", caller=PERSON) == []

    assert queue.everything() == before


def test_a_run_that_nobody_began_takes_no_step(queue: Queue) -> None:
    (job,) = queue.buried(lane="low")

    assert queue.coordinator.step(RUN, [job.id], "a", caller=PERSON) == []

    assert queue.places() == {job.id: "dead"}


def test_what_was_buried_after_its_bound_is_left_alone_by_a_step(queue: Queue, reader: Runs) -> None:
    run = begun(queue, reader)
    queue.clock.advance(0.001)
    (job,) = queue.buried(lane="low")

    assert queue.coordinator.step(run, [job.id], "a", caller=PERSON) == []

    assert queue.places() == {job.id: "dead"}


def test_a_run_with_a_rate_waits_before_its_next_step(queue: Queue, reader: Runs) -> None:
    first, second = queue.buried(lane="low", number=2)
    run = begun(queue, reader, action="requeue", per_s=10)
    queue.coordinator.step(run, [first.id], "a", caller=PERSON)
    moved = reader.run(run.id)
    assert moved
    assert moved.next_ms == START_MS + 100

    assert queue.coordinator.step(moved, [second.id], "b", caller=PERSON) == []
    queue.clock.advance(0.1)
    assert queue.coordinator.step(moved, [second.id], "b", caller=PERSON) == [second.id]
