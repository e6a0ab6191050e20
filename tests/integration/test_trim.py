"""trim: what stands for no letter leaves the dead list, and the order of the letters stays."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from priqueue.coordinator import Letters
from priqueue.coordinator.letters import Filter
from priqueue.exceptions import PriqueueError
from priqueue.jobs import Failure
from priqueue.sweeper import Sweeper
from tests.support.queues import Queue

WHY = {"caller": "user:1", "reason": "test"}


def order(queue: Queue) -> list[str]:
    """Return the letters' ids, newest first, as readers see them."""
    letters = Letters(queue.client, queue.settings, queue.clock)
    return [letter.id for letter in letters.scan(Filter())]


def bury_ready(queue: Queue, number: int) -> list[str]:
    """Claim and bury what is ready; return the ids, the last buried first."""
    queue.register()
    claims = queue.coordinator.pull("worker", number)
    for claim in claims:
        queue.coordinator.bury(claim, Failure(error="ValueError"))
    return [claim.job.id for claim in reversed(claims)]


def seed(queue: Queue, number: int) -> list[str]:
    """Write letters as bury does, many at once; return their ids, newest first."""
    ids = [f"letter-{n}" for n in range(number)]
    record = json.dumps(
        {"lane": "low", "cause": "E h", "handler": "h", "caller": "c", "buried_at_ms": queue.clock.now_ms}
    )
    for start in range(0, number, 1000):
        some = ids[start : start + 1000]
        queue.raw.lpush(queue.keys.dead, *some)
        queue.raw.hset(queue.keys.letters, mapping=dict.fromkeys(some, record))
        queue.raw.hset(queue.keys.jobs, mapping=dict.fromkeys(some, "{}"))
        queue.raw.hincrby(queue.keys.causes, "E h", len(some))
    return ids[::-1]


def leftovers(queue: Queue) -> dict[str, Any]:
    """Return what is there of a trim: nothing, once it is over and no hole is left."""
    keys, raw = queue.keys, queue.raw
    return {"holes": raw.hgetall(keys.holes), "kept": raw.lrange(keys.kept, 0, -1), "trim": raw.get(keys.trim)}


NOTHING_LEFT = {"holes": {}, "kept": [], "trim": None}


def test_holes_are_trimmed_and_the_order_of_the_others_stays(queue: Queue) -> None:
    ids = [job.id for job in queue.buried(number=6)][::-1]
    queue.coordinator.purge([ids[0], ids[2]], **WHY)
    queue.coordinator.requeue([ids[5]], **WHY)

    assert queue.coordinator.trim() == 3

    assert queue.raw.lrange(queue.keys.dead, 0, -1) == [ids[1], ids[3], ids[4]]
    assert leftovers(queue) == NOTHING_LEFT


def test_a_letter_that_died_again_stands_where_it_died_last(queue: Queue) -> None:
    ids = [job.id for job in queue.buried(number=3)][::-1]
    queue.coordinator.requeue([ids[2]], **WHY)
    bury_ready(queue, 1)

    assert queue.coordinator.trim() == 1

    assert queue.raw.lrange(queue.keys.dead, 0, -1) == [ids[2], ids[0], ids[1]]
    assert leftovers(queue) == NOTHING_LEFT


def test_a_list_without_holes_is_left_as_it_is(queue: Queue) -> None:
    ids = [job.id for job in queue.buried(number=3)][::-1]

    assert queue.coordinator.trim() == 0

    assert queue.raw.lrange(queue.keys.dead, 0, -1) == ids
    assert leftovers(queue) == NOTHING_LEFT


def test_without_a_letter_the_whole_list_goes_at_once(queue: Queue) -> None:
    queue.coordinator.purge(seed(queue, 3000), **WHY)

    assert queue.coordinator.trim(1) == 3000

    assert queue.raw.exists(queue.keys.dead, queue.keys.holes, queue.keys.kept, queue.keys.trim) == 0


def test_a_trim_of_nothing_writes_nothing(queue: Queue) -> None:
    assert queue.coordinator.trim() == 0

    assert queue.raw.keys(f"{queue.keys.prefix}*") == []


def test_a_call_looks_at_no_more_than_its_limit(queue: Queue) -> None:
    ids = seed(queue, 100)
    queue.coordinator.purge(ids[50:], **WHY)

    assert queue.coordinator.trim(10) == 10

    assert queue.raw.llen(queue.keys.dead) == 90


def test_few_holes_in_a_long_list_wait_for_more(queue: Queue) -> None:
    ids = seed(queue, 100)
    queue.coordinator.purge(ids[:12], **WHY)
    assert queue.coordinator.trim(10) == 0

    queue.coordinator.purge(ids[12:13], **WHY)
    queue.coordinator.trim(10)

    assert queue.raw.llen(queue.keys.kept) == 10


def test_an_entry_of_which_nothing_is_known_goes(queue: Queue) -> None:
    ids = [job.id for job in queue.buried(number=2)][::-1]
    queue.raw.rpush(queue.keys.dead, "ghost")

    assert queue.coordinator.trim() == 1

    assert queue.raw.lrange(queue.keys.dead, 0, -1) == ids


def test_letters_without_an_entry_do_not_stop_a_trim(queue: Queue) -> None:
    ids = [job.id for job in queue.buried(number=2)]
    queue.raw.delete(queue.keys.dead)
    queue.raw.rpush(queue.keys.dead, "ghost-1", "ghost-2", "ghost-3")

    assert queue.coordinator.trim() == 3

    assert queue.raw.exists(queue.keys.dead, queue.keys.kept, queue.keys.trim) == 0
    assert set(queue.raw.hkeys(queue.keys.letters)) == set(ids)


def test_a_foreign_value_is_an_error_before_anything_is_written(queue: Queue) -> None:
    ids = [job.id for job in queue.buried(number=3)]
    queue.coordinator.purge(ids[:1], **WHY)
    queue.raw.set(queue.keys.kept, "foreign")
    before = queue.state()

    with pytest.raises(PriqueueError, match="WRONGTYPE"):
        queue.coordinator.trim()

    assert queue.state() == before


def test_what_is_requeued_and_dies_again_during_a_pass_keeps_its_place(queue: Queue) -> None:
    """Its hole is in the part that was read, its new entry in the part that was not: they are not mixed up."""
    ids = [job.id for job in queue.buried(number=6)][::-1]
    queue.coordinator.purge([ids[0]], **WHY)
    queue.coordinator.trim(2)
    queue.coordinator.requeue([ids[5]], **WHY)
    bury_ready(queue, 1)

    queue.coordinator.trim()

    assert order(queue) == [ids[5], *ids[1:5]]
    assert queue.coordinator.trim() == 1
    assert queue.raw.lrange(queue.keys.dead, 0, -1) == [ids[5], *ids[1:5]]
    assert leftovers(queue) == NOTHING_LEFT


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("bury"), st.integers(1, 5)),
        st.tuples(st.just("bury again"), st.integers(1, 3)),
        st.tuples(st.sampled_from(["requeue", "purge"]), st.lists(st.integers(0, 30), min_size=1, max_size=4)),
        st.tuples(st.just("trim"), st.integers(1, 6)),
    ),
    min_size=5,
    max_size=40,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_no_order_of_burials_requeues_purges_and_trims_changes_the_order_of_the_letters(
    make_queue: Callable[..., Queue], steps: list[tuple[str, Any]]
) -> None:
    queue = make_queue(AUDIT="off")
    model: list[str] = []
    for step, detail in steps:
        if step == "bury":
            queue.enqueue(number=detail, lane="high")
        if step.startswith("bury"):
            model = bury_ready(queue, detail) + model
        elif step == "trim":
            queue.coordinator.trim(detail)
        else:
            ids = list(dict.fromkeys(model[at % len(model)] for at in detail if model))
            getattr(queue.coordinator, step)(ids, **WHY)
            model = [job_id for job_id in model if job_id not in ids]
        assert order(queue) == model

    queue.coordinator.trim()
    queue.coordinator.trim()

    assert queue.raw.lrange(queue.keys.dead, 0, -1) == model
    assert leftovers(queue) == NOTHING_LEFT


def test_twenty_thousand_letters_are_trimmed_by_two_sweepers_while_letters_come_in(real_queue: Queue) -> None:
    queue, other = real_queue, Letters(real_queue.client, real_queue.settings)
    ids = seed(queue, 20_000)
    queue.coordinator.purge(ids[::2], **WHY)
    late: list[str] = []
    sweepers = [Sweeper(queue.coordinator, queue.inspector) for _ in range(2)]

    while leftovers(queue) != NOTHING_LEFT:
        for sweeper in sweepers:
            sweeper.run_once()
        if len(late) < 30:
            late = [job.id for job in queue.buried(number=3)][::-1] + late
        assert [letter.id for letter in other.scan(Filter())] == late + ids[1::2]

    assert queue.raw.lrange(queue.keys.dead, 0, -1) == late + ids[1::2]
