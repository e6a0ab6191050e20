"""The heartbeat: keeps what is held and learns what is lost."""

from priqueue.heartbeat import Heartbeat
from priqueue.jobs import Claim
from tests.support.queues import Queue


def heartbeat(queue: Queue, claims: list[Claim], lost: list[Claim] | None = None) -> Heartbeat:
    return Heartbeat(
        queue.coordinator,
        "worker",
        held=lambda: claims,
        register=lambda: queue.coordinator.register("worker", lanes=("high",), concurrency=1),
        lost=(lost if lost is not None else []).append,
    )


def test_beats_keep_a_lease_for_ever(queue: Queue) -> None:
    claims = queue.claimed()
    beating = heartbeat(queue, claims)

    for _ in range(5):
        queue.clock.advance(beating.run_once())
        queue.coordinator.reclaim()

    assert queue.places() == {claims[0].job.id: "in flight"}


def test_a_lost_lease_is_told(queue: Queue) -> None:
    claims, lost = queue.claimed(number=2), []
    queue.coordinator.ack(claims[0])

    heartbeat(queue, claims, lost).run_once()

    assert lost == [claims[0]]


def test_a_worker_that_is_not_known_registers_and_beats_again(queue: Queue) -> None:
    claims = queue.claimed()
    queue.raw.delete(queue.keys.workers)
    queue.clock.advance(1)

    heartbeat(queue, claims).run_once()

    (lease,) = queue.state()["in flight"].values()
    assert lease["deadline_ms"] == queue.clock.now_ms + queue.settings.lease_s * 1000
    assert [worker.id for worker in queue.inspector.workers()] == ["worker"]


def test_a_beat_that_comes_after_the_worker_left_does_not_bring_it_back(queue: Queue) -> None:
    came_back: list[str] = []
    heartbeat = Heartbeat(
        queue.coordinator, "worker", held=list, register=lambda: came_back.append("worker"), lost=lambda _: False
    )

    heartbeat.loop.stop()
    heartbeat.run_once()

    assert came_back == []
