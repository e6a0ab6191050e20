"""Rows E11 and E12: names and ids that are made to mislead reach no key; an id guards its job while there is one."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis

import priqueue
from priqueue import wiring
from priqueue.exceptions import InvalidCaller, InvalidLane, PriqueueError, UnknownHandler
from priqueue.jobs import Job
from tests.shop.jobs import note
from tests.support.queues import FAILURE, Queue, test_settings

LANES = [
    "high:*", "{", "}", "high}", "{priqueue}", "High", " high", "high ", "high\n", "h\u0456gh", "", "*", "low,high",
    "x" * 10**6,    "hi\x00gh", None, 1, True, ["high"], b"high", "lane:high", "../high", "high\r\nFLUSHALL",
]  # fmt: skip
NAMES = [
    "../x", "os.system", "__import__", "builtins.eval", "tests.shop.jobs", "tests.shop.jobs.os",
    "tests.shop.jobs.note ",
    "tests.shop.jobs.note\x00", "a\r\nFLUSHALL", "<script>", '"', "", None, 1, b"tests.shop.jobs.note", "x" * 10**6,
    "tests.shop.jobs.note.__globals__", "tests.shop.jobs.\uff4eote",
]  # fmt: skip


@pytest.fixture
def queue(client: Redis) -> Iterator[Queue]:
    """A queue on a real server that ``priqueue.enqueue`` uses here, with one job in it."""
    queue = Queue(client, test_settings())
    queue.enqueue()
    with wiring.override(queue.coordinator):
        yield queue


def refuses(queue: Queue, kinds: tuple[type[BaseException], ...], act: Callable[[], Any]) -> None:
    before = queue.everything()
    with pytest.raises(kinds):
        act()
    assert queue.everything() == before


@pytest.mark.chaos
@pytest.mark.parametrize("lane", LANES, ids=lambda lane: f"{lane!r:.30}")
def test_e12_a_lane_is_one_of_those_configured_or_refused(queue: Queue, lane: Any) -> None:
    refuses(queue, (InvalidLane,), lambda: priqueue.enqueue(note, {}, lane=lane or "", on_commit=False))
    refuses(queue, (InvalidLane,), lambda: priqueue.enqueue_many([(note, {})], lane=lane or ""))
    if lane not in (None, ""):
        refuses(queue, (PriqueueError, ValueError, TypeError), lambda: note.using(lane=lane).enqueue())


@pytest.mark.chaos
@pytest.mark.parametrize("name", NAMES, ids=lambda name: f"{name!r:.30}")
def test_e12_a_name_is_only_ever_looked_up(queue: Queue, name: Any) -> None:
    refuses(queue, (UnknownHandler, TypeError), lambda: priqueue.enqueue(name, {}, on_commit=False))


@pytest.mark.chaos
def test_e12_the_table_of_outcomes(queue: Queue, figure: Callable[..., None]) -> None:
    before = queue.everything().keys()
    for lane in LANES:
        with pytest.raises(InvalidLane):
            priqueue.enqueue(note, {}, lane=lane or "", on_commit=False)
    for name in NAMES:
        with pytest.raises((UnknownHandler, TypeError)):
            priqueue.enqueue(name, {}, on_commit=False)

    new = queue.everything().keys() - before
    figure("E12", f"new keys from {len(LANES)} lanes and {len(NAMES)} names", len(new), "= 0", not new)


@pytest.mark.chaos
@pytest.mark.parametrize("caller", ["", "a b", "user:\n", 'user:"', "user:\x00", "x" * 10**6, "user:\ud800", 1])
def test_e12_a_caller_is_one_word_or_refused(queue: Queue, caller: Any) -> None:
    refuses(
        queue, (InvalidCaller, TypeError), lambda: priqueue.enqueue(note, {}, caller=caller or " ", on_commit=False)
    )


@pytest.mark.chaos
def test_e12_a_job_whose_name_was_forged_imports_nothing_and_ends_in_the_dead_letters(queue: Queue) -> None:
    (claim,) = queue.claimed(name="os.system", payload={"command": "false"}, lane="high")

    from_the_registry = priqueue.executor.execute(claim, queue.settings)

    assert from_the_registry.failure is not None
    assert from_the_registry.failure.error == "priqueue.exceptions.UnknownHandler"


@pytest.mark.chaos
def test_e11_an_id_guards_its_job_as_long_as_there_is_one_and_no_longer(
    queue: Queue, figure: Callable[..., None]
) -> None:
    job = Job(name=note.name, payload={}, lane="high")
    coordinator = queue.coordinator
    queue.register()
    taken = [coordinator.enqueue(job), coordinator.enqueue(job)]

    (claim,) = coordinator.pull("worker")
    taken.append(coordinator.enqueue(job))
    coordinator.bury(claim, FAILURE)
    taken.append(coordinator.enqueue(job))
    coordinator.purge([job.id], caller="user:1", reason="")
    taken += [coordinator.enqueue(job), coordinator.enqueue(job)]
    (claim,) = coordinator.pull("worker")
    coordinator.ack(claim)
    taken.append(coordinator.enqueue(job))
    coordinator.cancel(job.id, lane="high", caller="user:1")
    taken.append(coordinator.enqueue(job))

    wanted = [True, False, False, False, True, False, True, True]
    wrong = sum(one != other for one, other in zip(taken, wanted, strict=True))
    figure("E11", f"ids taken or refused wrongly, of {len(wanted)}", wrong, "= 0", wrong == 0)


@pytest.mark.chaos
def test_e11_a_holder_that_crashes_leaves_nothing_that_refuses_its_id(queue: Queue) -> None:
    job = Job(name=note.name, payload={}, lane="high")
    queue.register()
    queue.coordinator.enqueue(job)

    for _ in range(queue.settings.max_crashes):
        queue.coordinator.pull("worker")
        queue.lapse()
    queue.coordinator.purge([job.id], caller="user:1", reason="")

    assert queue.coordinator.enqueue(job)
    assert job.id not in queue.raw.hgetall(queue.keys.attempts)
