"""Operations: pause, resume and drain, with who did it and why."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.dispatch import Signal

from priqueue import InvalidDelay, InvalidLane, callers, events, operations, wiring
from priqueue.coordinator import Refusal
from priqueue.coordinator.stats import Pause
from priqueue.exceptions import WorkerDraining
from priqueue.jobs import from_ms
from tests.support.queues import START_MS, Queue, test_settings


@pytest.fixture(autouse=True)
def configured(queue: Queue) -> Iterator[None]:
    with wiring.override(queue.coordinator), callers.acting_as("user:7"):
        yield


@pytest.fixture
def sent() -> Iterator[list[dict[str, Any]]]:
    """What was told about lanes."""
    told: list[dict[str, Any]] = []

    def heard(signal: Signal, sender: object, **what: Any) -> None:
        told.append(what)

    signals = (events.lane_paused, events.lane_resumed)
    for signal in signals:
        signal.connect(heard)
    yield told
    for signal in signals:
        signal.disconnect(heard)


def test_a_pause_says_who_and_why_and_until_when(queue: Queue, sent: list[dict[str, Any]]) -> None:
    operations.pause("high", " the bank is down ", lasts_s=60)

    assert queue.inspector.paused() == {
        "high": Pause(
            caller="user:7", reason="the bank is down", since=from_ms(START_MS), until=from_ms(START_MS + 60_000)
        )
    }
    assert queue.events() == [("pause", "user:7", "")]
    assert sent == [{"lane": "high", "caller": "user:7", "reason": "the bank is down"}]


def test_a_resume_ends_a_pause(queue: Queue, sent: list[dict[str, Any]]) -> None:
    operations.pause("high", "why")
    sent.clear()

    assert operations.resume("high", "it is up again") is True

    assert queue.inspector.paused() == {}
    assert queue.events()[-1] == ("resume", "user:7", "")
    assert sent == [{"lane": "high", "caller": "user:7", "reason": "it is up again"}]


def test_a_resume_of_a_lane_that_is_not_paused_does_nothing(queue: Queue, sent: list[dict[str, Any]]) -> None:
    assert operations.resume("high", "why") is False

    assert (queue.events(), sent) == ([], [])


def test_a_lane_that_left_the_configuration_can_be_resumed(queue: Queue) -> None:
    before = Queue(queue.client, test_settings(NAMESPACE=queue.settings.namespace, LANES={"old": 1}))
    with wiring.override(before.coordinator):
        operations.pause("old", "why")

    assert operations.resume("old", "gone") is True

    assert queue.inspector.paused() == {}


@pytest.mark.parametrize("lane", ["High", "high ", "", "high,low", "nobody"])
def test_lanes_are_known_by_their_exact_names(queue: Queue, lane: str) -> None:
    with pytest.raises(InvalidLane, match="choose from high, default, low"):
        operations.pause(lane, "why")
    with pytest.raises(InvalidLane, match="choose from high, default, low"):
        operations.resume(lane, "why")

    assert queue.events() == []


@pytest.mark.parametrize("lasts_s", [-1, float("nan"), float("inf"), True, "60"])
def test_a_pause_lasts_a_time_that_exists(queue: Queue, lasts_s: Any) -> None:
    with pytest.raises(InvalidDelay, match="lasts_s"):
        operations.pause("high", "why", lasts_s=lasts_s)

    assert queue.inspector.paused() == {}


def test_nothing_is_done_without_a_reason(queue: Queue) -> None:
    for act in (operations.pause, operations.resume, operations.drain):
        with pytest.raises(ValueError, match="reason"):
            act("high", " ")

    assert queue.events() == []


def test_a_worker_that_is_asked_to_drain_hears_of_it(queue: Queue) -> None:
    queue.register("worker")

    assert operations.drain("worker", "deploy") is True

    assert queue.events()[-1] == ("drain", "user:7", "")
    with pytest.raises(WorkerDraining):
        queue.coordinator.pull("worker")


def test_a_worker_that_is_not_there_cannot_be_drained(queue: Queue) -> None:
    assert operations.drain("nobody", "deploy") is False


def test_a_cancelled_job_is_gone_with_who_and_why(queue: Queue) -> None:
    (job,) = queue.enqueue(lane="low", delay_ms=5_000)

    assert operations.cancel(job.id, " changed my mind ") is None

    assert queue.places() == {}
    assert (queue.event()["caller"], queue.event()["reason"]) == ("user:7", "changed my mind")


def test_a_cancel_that_came_too_late_says_who_holds_the_job(queue: Queue) -> None:
    (claim,) = queue.claimed()

    assert operations.cancel(claim.job.id, "why") == Refusal(state="in flight", worker="worker")
    assert operations.cancel("nobody", "why") == Refusal(state="gone")

    assert queue.places() == {claim.job.id: "in flight"}


def test_a_cancel_without_a_reason_is_refused(queue: Queue) -> None:
    (job,) = queue.enqueue()

    with pytest.raises(ValueError, match="reason"):
        operations.cancel(job.id, " ")

    assert queue.places() == {job.id: "ready"}
