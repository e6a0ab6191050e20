"""The worker's claim loop, in threads of this process."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest
from redis import Redis

import priqueue
from priqueue import events
from priqueue.clock import monotonic_s
from priqueue.coordinator.transitions import Turn
from priqueue.exceptions import QueueUnavailable
from priqueue.jobs import Job
from priqueue.worker import Worker
from tests.support.queues import Queue, test_settings
from tests.support.waiting import until

gate = threading.Event()
started: list[str] = []


@priqueue.job(name="tests.wait_for_gate")
def wait_for_gate(n: int = 0) -> None:
    """Run until the test opens the gate."""
    started.append(_id())
    gate.wait(20)


@priqueue.job(name="tests.record")
def record(n: int = 0) -> None:
    """Write down that it ran."""
    started.append(_id())


@priqueue.job(name="tests.leave")
def leave(how: str) -> None:
    """Raise what ends a thread, or a process."""
    raise {"exit": SystemExit, "interrupt": KeyboardInterrupt, "generator": GeneratorExit}[how]("bye")


def _id() -> str:
    run = priqueue.current_job()
    assert run is not None
    return run.id


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    gate.clear()
    started.clear()
    yield
    gate.set()


@pytest.fixture
def queue(client: Redis) -> Queue:
    """A queue on the real server, with the server's own clock."""
    made = Queue(client, test_settings(PULL_TIMEOUT_S=1, HEARTBEAT_S=0.5, SOCKET_TIMEOUT_S=0.4, SHUTDOWN_GRACE_S=5))
    return made.on_the_servers_clock()


@contextmanager
def running(worker: Worker) -> Iterator[threading.Thread]:
    """Run a worker in a thread and stop it at the end."""
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield thread
    finally:
        gate.set()
        worker.stop()
        thread.join(10)
        assert not thread.is_alive()


def test_a_burst_runs_everything_ready_and_ends(queue: Queue) -> None:
    jobs = queue.enqueue(name="tests.record", number=30)

    Worker(queue.coordinator, processes=0, concurrency=4, burst=True).run()

    assert sorted(started) == [job.id for job in jobs]
    assert queue.places() == {}
    assert queue.inspector.workers() == []


def test_a_burst_leaves_delayed_and_paused_jobs_alone(queue: Queue) -> None:
    queue.enqueue(name="tests.record", delay_ms=60_000)
    queue.enqueue(name="tests.record", lane="low")
    queue.coordinator.pause("low", caller="user:1", reason="test")

    Worker(queue.coordinator, processes=0, concurrency=2, burst=True).run()

    assert started == []
    assert sorted(queue.places().values()) == ["delayed", "ready"]


def test_a_worker_pulls_only_its_lanes(queue: Queue) -> None:
    (high,) = queue.enqueue(name="tests.record", lane="high")
    (low,) = queue.enqueue(name="tests.record", lane="low")

    Worker(queue.coordinator, processes=0, lanes=("high",), concurrency=2, burst=True).run()

    assert started == [high.id]
    assert queue.places() == {low.id: "ready"}


def test_a_worker_ends_after_its_last_job(queue: Queue) -> None:
    queue.enqueue(name="tests.record", number=10)

    Worker(queue.coordinator, processes=0, concurrency=4, max_jobs=3).run()

    assert len(started) == 3
    assert list(queue.places().values()) == ["ready"] * 7


def test_a_worker_never_runs_more_than_its_slots(queue: Queue) -> None:
    queue.enqueue(name="tests.wait_for_gate", number=5)
    worker = Worker(queue.coordinator, processes=0, concurrency=2)

    with running(worker):
        until(lambda: len(started) == 2)
        assert sorted(queue.places().values()) == ["in flight"] * 2 + ["ready"] * 3

    assert queue.state()["slots"] == {}


def test_a_sleeping_worker_takes_a_new_job_at_once(queue: Queue) -> None:
    with running(Worker(queue.coordinator, processes=0, concurrency=2)):
        until(queue.inspector.workers)
        queue.enqueue(name="tests.record")

        until(lambda: started, timeout_s=0.5)


def test_what_a_child_has_said_is_heard_before_anything_that_may_fail(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(queue.coordinator, processes=0, concurrency=2)
    heard: list[int] = []
    monkeypatch.setattr(worker._pool, "take", lambda expecting: heard.append(1) or [])
    monkeypatch.setattr(worker, "_register", Mock(side_effect=QueueUnavailable("away")))

    with pytest.raises(QueueUnavailable):
        worker.run_once()

    assert heard == [1]


def test_a_full_worker_puts_back_the_token_it_took(queue: Queue) -> None:
    with running(Worker(queue.coordinator, processes=0, concurrency=1)):
        queue.enqueue(name="tests.wait_for_gate")
        until(lambda: started)
        queue.enqueue(name="tests.record")

        until(lambda: queue.tokens() == {"default": 1})


def test_a_worker_whose_slots_are_taken_by_leases_it_does_not_know_asks_again_after_a_while_only(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, full_at_s = queue.coordinator.begin_turn, []

    def watched(*args: Any, **options: Any) -> Callable[[], Turn]:
        begun = begin(*args, **options)
        return lambda: note(begun())

    def note(turn: Turn) -> Turn:
        if turn.state == "full":
            full_at_s.append(monotonic_s())
        return turn

    queue.register("w", concurrency=1)
    queue.enqueue(number=20)
    queue.coordinator.pull("w")
    monkeypatch.setattr(queue.coordinator, "begin_turn", watched)

    with running(Worker(queue.coordinator, worker_id="w", processes=0, concurrency=1)):
        until(lambda: len(full_at_s) >= 3)

    assert full_at_s[2] - full_at_s[0] >= queue.settings.pull_timeout_s


def test_what_a_turn_gave_is_handed_over_while_the_next_is_under_way(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(queue.coordinator, worker_id="w", processes=0, concurrency=2)
    _give_beside_a_run(queue, worker)
    begin, submit, order = queue.coordinator.begin_turn, worker._pool.submit, []
    monkeypatch.setattr(
        queue.coordinator, "begin_turn", lambda *args, **more: order.append("begin") or begin(*args, **more)
    )
    monkeypatch.setattr(worker._pool, "submit", lambda claims: order.append("submit") or submit(claims))

    gate.set()
    until(lambda: not worker._pool._messages.empty())

    worker.run_once()

    assert order == ["begin", "submit"]
    until(lambda: worker.run_once() and queue.places() == {})


def test_what_a_turn_gave_before_the_order_to_stop_is_given_back_and_never_run(queue: Queue) -> None:
    worker = Worker(queue.coordinator, worker_id="w", processes=0, concurrency=2)
    given = _give_beside_a_run(queue, worker)

    worker.stop()
    gate.set()
    worker._drain()

    assert (queue.places(), len(started)) == ({given.id: "ready"}, 1)
    assert queue.state()["attempts"] == {}


def test_what_a_turn_gave_beside_runs_that_take_their_time_is_handed_over_at_once(queue: Queue) -> None:
    worker = Worker(queue.coordinator, worker_id="w", processes=0, concurrency=2)
    queue.enqueue(name="tests.wait_for_gate")
    until(lambda: worker.run_once() and started)
    queue.enqueue(name="tests.record")

    worker.run_once()

    until(lambda: len(started) == 2)
    gate.set()


def _give_beside_a_run(queue: Queue, worker: Worker) -> Job:
    """Let a worker run one job, and have been given another that it has not looked at yet; return that."""
    worker._pool._pace._share = 1  # nearly all were quick
    queue.enqueue(name="tests.wait_for_gate")
    until(lambda: worker.run_once() and started)
    (job,) = queue.enqueue(name="tests.record")
    worker.run_once()
    assert worker._given is not None
    return job


def test_whatever_a_handler_raises_is_a_failure_and_costs_no_slot(queue: Queue) -> None:
    for how in ("exit", "interrupt", "generator"):
        queue.enqueue(name="tests.leave", payload={"how": how}, max_attempts=1)
    records = queue.enqueue(name="tests.record", number=4)

    Worker(queue.coordinator, processes=0, concurrency=2, burst=True).run()

    assert sorted(started) == [job.id for job in records]
    assert sorted(queue.state()["causes"]) == [
        "GeneratorExit tests.leave",
        "KeyboardInterrupt tests.leave",
        "SystemExit tests.leave",
    ]


def test_an_unknown_handler_is_a_failure_with_its_reason(queue: Queue) -> None:
    (job,) = queue.enqueue(name="tests.gone", max_attempts=1)

    Worker(queue.coordinator, processes=0, concurrency=1, burst=True).run()

    assert queue.places() == {job.id: "dead"}
    status = queue.inspector.job(job.id)
    assert status is not None
    assert status.trail[0].error == "priqueue.exceptions.UnknownHandler"


def test_a_stopped_worker_lets_its_jobs_finish(queue: Queue) -> None:
    queue.enqueue(name="tests.wait_for_gate", number=2)
    queue.enqueue(name="tests.record", number=3)
    worker = Worker(queue.coordinator, processes=0, concurrency=2)

    with running(worker) as thread:
        until(lambda: len(started) == 2)
        worker.stop()
        gate.set()
        thread.join(10)

    assert len(started) == 2
    assert list(queue.places().values()) == ["ready"] * 3


def test_after_the_grace_a_job_goes_back_to_the_head_of_its_lane_once(queue: Queue) -> None:
    short = queue.with_settings(SHUTDOWN_GRACE_S=0.2)
    (job,) = short.enqueue(name="tests.wait_for_gate", lane="low")
    (other,) = short.enqueue(name="tests.record", lane="low")
    worker = Worker(short.coordinator, processes=0, concurrency=1)

    with running(worker) as thread:
        until(lambda: started)
        worker.stop()
        thread.join(10)

        assert short.raw.lrange(short.keys.lane("low"), 0, -1) == [job.id, other.id]
        assert short.state()["attempts"] == {}
        assert short.inspector.workers() == []


def test_a_second_stop_gives_everything_back_at_once(queue: Queue) -> None:
    (job,) = queue.enqueue(name="tests.wait_for_gate")
    worker = Worker(queue.coordinator, processes=0, concurrency=1)

    with running(worker) as thread:
        until(lambda: started)
        worker.stop()
        worker.stop()
        thread.join(2)

        assert queue.places() == {job.id: "ready"}


def test_a_worker_that_was_asked_to_drain_leaves(queue: Queue) -> None:
    worker = Worker(queue.coordinator, processes=0, concurrency=1)

    with running(worker) as thread:
        until(queue.inspector.workers)
        queue.coordinator.drain(worker.id, caller="user:1")
        thread.join(5)

        assert not thread.is_alive()


def test_a_worker_that_the_store_forgot_registers_again(queue: Queue) -> None:
    worker = Worker(queue.coordinator, processes=0, concurrency=1)

    with running(worker):
        until(queue.inspector.workers)
        queue.raw.delete(queue.keys.workers)
        queue.enqueue(name="tests.record")

        until(lambda: started)
        assert [found.id for found in queue.inspector.workers()] == [worker.id]


def test_a_run_whose_lease_was_lost_counts_for_nothing(queue: Queue) -> None:
    lost: list[Any] = []
    events.lease_lost.connect(lambda claim, **_: lost.append(claim.job.id), weak=False, dispatch_uid="test")
    (job,) = queue.enqueue(name="tests.wait_for_gate")

    with running(Worker(queue.coordinator, processes=0, concurrency=1)):
        until(lambda: started)
        _steal_the_lease(queue, job)
        gate.set()
        until(lambda: lost)

    events.lease_lost.disconnect(dispatch_uid="test")
    assert set(lost) == {job.id}
    assert queue.state()["in flight"][job.id]["worker"] == "other"


def _steal_the_lease(queue: Queue, job: Job) -> None:
    """Do what a sweeper and another worker do to a worker that was frozen for too long."""
    lease = queue.raw.hget(queue.keys.inflight, job.id)
    assert isinstance(lease, str)
    queue.raw.hset(queue.keys.inflight, job.id, " ".join(["other", "theirs", *lease.split(" ")[2:]]))


def test_what_finished_while_the_queue_was_away_is_settled_once_it_is_back(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = queue.enqueue(name="tests.wait_for_gate", number=2)
    begin, away = queue.coordinator.begin_turn, threading.Event()

    def begin_or_fail(*args: Any, **more: Any) -> Any:
        if away.is_set():
            raise QueueUnavailable("away")
        return begin(*args, **more)

    monkeypatch.setattr(queue.coordinator, "begin_turn", begin_or_fail)
    with running(Worker(queue.coordinator, processes=0, concurrency=2)):
        until(lambda: len(started) == 2)
        away.set()
        gate.set()
        assert set(queue.places().values()) == {"in flight"}
        away.clear()

        until(lambda: queue.raw.hlen(queue.keys.jobs) == 0)
    assert sorted(started) == [job.id for job in jobs]


def test_what_a_repeat_of_an_unanswered_turn_acks_is_acked_once(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    queue.enqueue(name="tests.record", number=20)
    begin, eaten = queue.coordinator.begin_turn, []

    def begin_and_eat_the_answer(*args: Any, **more: Any) -> Any:
        begun = begin(*args, **more)
        if len(eaten) >= 8 or more.get("repeat"):
            return begun
        eaten.append(args)
        return partial(eat, args[0], begun())

    def eat(worker_id: str, turn: Turn) -> Turn:
        claims = turn.read().claims
        queue.coordinator._unanswered[worker_id] = claims[0].token if claims else "none"
        raise QueueUnavailable("the reply was lost")

    monkeypatch.setattr(queue.coordinator, "begin_turn", begin_and_eat_the_answer)
    worker = Worker(queue.coordinator, processes=0, concurrency=3, max_jobs=20)
    with running(worker):
        until(lambda: queue.raw.hlen(queue.keys.jobs) == 0)

    assert len(eaten) == 8
    assert sorted(set(started)) == sorted(started)
    assert sum(action == "ack" for action, _, _ in queue.events()) == 20


def test_the_first_half_of_what_a_turn_gives_runs_while_the_second_is_read(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = queue.enqueue(name="tests.record", number=11)
    read, ran_before = queue.coordinator._read_claims, []

    def read_when_the_former_ran(*asked: Any) -> Any:
        until(lambda: len(started) == sum(ran_before))
        ran_before.append(len(asked[-1]))
        return read(*asked)

    monkeypatch.setattr(queue.coordinator, "_read_claims", read_when_the_former_ran)
    Worker(queue.coordinator, processes=0, concurrency=11, burst=True).run()

    assert ran_before == [6, 5]
    assert sorted(started) == [job.id for job in jobs]


def test_what_is_given_after_the_order_to_stop_goes_back_to_its_lane_in_its_order(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = queue.enqueue(name="tests.record", number=9)
    worker = Worker(queue.coordinator, processes=0, concurrency=9)
    begin = queue.coordinator.begin_turn

    def begin_and_stop_before_the_answer(*args: Any, **more: Any) -> Callable[[], Turn]:
        begun = begin(*args, **more)
        worker.stop()
        return begun

    monkeypatch.setattr(queue.coordinator, "begin_turn", begin_and_stop_before_the_answer)
    worker.run()

    assert queue.raw.lrange(queue.keys.lane("default"), 0, -1) == [job.id for job in jobs]
    assert started == []


def test_where_one_half_cannot_be_handed_over_the_other_is(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = queue.enqueue(name="tests.record", number=9)
    worker = Worker(queue.coordinator, processes=0, concurrency=9, burst=True)
    submit, asked = worker._pool.submit, []

    def submit_or_fail(claims: Any) -> None:
        submit(claims)
        asked.append(len(claims))
        if len(asked) == 1:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(worker._pool, "submit", submit_or_fail)
    worker.run()

    assert asked == [5, 4]
    assert sorted(started) == [job.id for job in jobs]
    assert queue.places() == {}


def test_a_turn_with_suspects_is_handed_over_whole(queue: Queue) -> None:
    jobs = queue.enqueue(number=9)
    queue.raw.hset(queue.keys.attempts, jobs[0].id, "0 1 s")
    queue.register("w", concurrency=9)

    (whole,) = queue.coordinator.begin_turn("w", 9)().halves()

    assert [claim.suspect for claim in whole.read().claims] == [True] + 8 * [False]


def test_what_comes_and_goes_together_is_told_together_and_once(queue: Queue) -> None:
    jobs = queue.enqueue(name="tests.record", number=3)
    told: list[tuple[str, list[str]]] = []
    for signal, name in ((events.jobs_claimed, "claimed"), (events.jobs_acked, "acked")):
        signal.connect(
            lambda claims, name=name, **_: told.append((name, [claim.job.id for claim in claims])),
            weak=False, dispatch_uid=f"test.{name}",
        )  # fmt: skip
    try:
        Worker(queue.coordinator, processes=0, concurrency=3, burst=True).run()
    finally:
        events.jobs_claimed.disconnect(dispatch_uid="test.claimed")
        events.jobs_acked.disconnect(dispatch_uid="test.acked")

    ids = [job.id for job in jobs]
    assert told[0] == ("claimed", ids)
    assert sorted(one for name, of in told for one in of if name == "acked") == ids


def test_a_burst_goes_on_behind_jobs_that_nobody_here_can_read(queue: Queue) -> None:
    foreign = queue.enqueue(name="tests.record", number=3)
    for job in foreign:
        queue.raw.hset(queue.keys.jobs, job.id, "no envelope")
    (job,) = queue.enqueue(name="tests.record")

    Worker(queue.coordinator, processes=0, concurrency=3, burst=True).run()

    assert started == [job.id]
    assert queue.places() == {job.id: "dead" for job in foreign}
