"""vanishedjobs: what was enqueued, has not ended as far as anybody knows, and is gone from the queue."""

import json
from collections.abc import Callable, Iterator
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from priqueue import wiring
from priqueue.audit import vanished
from priqueue.jobs import Job
from tests.support import auditing
from tests.support.queues import FAILURE, HANDLER, Queue

NONE = ["no job has vanished"]


@pytest.fixture
def queue(real_queue: Queue, audit_database: str) -> Iterator[Queue]:
    """A queue whose events an auditor stores when the test says so."""
    with wiring.override(real_queue.coordinator):
        yield real_queue


def store(queue: Queue) -> None:
    auditor = auditing.auditor(queue)
    auditor.drain()


def lost(queue: Queue, *jobs: Job) -> None:
    """Let the server lose jobs, as one that comes back with older data does."""
    for job in jobs:
        for lane in queue.settings.lane_names:
            queue.raw.lrem(queue.keys.lane(lane), 0, job.id)
        queue.raw.hdel(queue.keys.jobs, job.id)


def told(*options: str) -> list[str]:
    """Return what the command prints; it fails exactly when it names a job."""
    out, said = StringIO(), ""
    try:
        call_command("vanishedjobs", "--database", "audit", *options, stdout=out)
    except CommandError as error:
        said = str(error)
    lines = out.getvalue().splitlines()
    assert said == ("" if lines == NONE else f"{len(lines)} jobs have vanished")
    return lines


def test_jobs_in_the_queue_and_jobs_that_ended_have_not_vanished(queue: Queue) -> None:
    acked, retried, buried, purged = queue.claimed(number=4)
    (cancelled,) = queue.enqueue()
    queue.enqueue(delay_ms=60_000)
    queue.coordinator.ack(acked)
    queue.coordinator.retry(retried, FAILURE, delay_s=60)
    queue.coordinator.bury(buried, FAILURE)
    queue.coordinator.bury(purged, FAILURE)
    queue.coordinator.purge([purged.job.id], caller="user:1", reason="old")
    queue.coordinator.cancel(cancelled.id, lane="default", caller="user:1")
    store(queue)

    assert told() == NONE


def test_a_job_that_the_server_lost_is_named_with_what_is_known_of_it(queue: Queue) -> None:
    gone, _ = queue.enqueue(number=2, lane="low", caller="key:billing")
    store(queue)
    lost(queue, gone)

    assert told() == [
        f"{gone.id} {HANDLER} on low, enqueued by key:billing at 2027-01-15 08:00:00 UTC",
    ]  # fmt: skip
    (document,) = map(json.loads, told("--json"))
    assert document == {
        "id": gone.id, "handler": HANDLER, "lane": "low", "caller": "key:billing", "input": '{"n":0}',
        "enqueued_at": "2027-01-15T08:00:00+00:00",
    }  # fmt: skip


def test_a_server_that_came_back_empty_has_lost_all_of_them(queue: Queue) -> None:
    jobs = queue.enqueue(number=2_300)
    store(queue)
    lost(queue, *jobs)

    assert len(told()) == 2_300
    assert len(told("--limit", "1500")) == 1_500


def test_an_end_that_is_not_stored_yet_is_known(queue: Queue) -> None:
    (claim,) = queue.claimed()
    store(queue)
    queue.coordinator.ack(claim)

    assert told() == NONE


def test_an_end_that_is_stored_while_it_is_looked_for_is_known(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    (claim,) = queue.claimed()
    store(queue)
    queue.coordinator.ack(claim)
    waiting = type(wiring.outbox()).waiting

    def stored_just_before(outbox: object) -> Iterator[object]:
        store(queue)
        return waiting(outbox)  # type: ignore[arg-type]

    monkeypatch.setattr("priqueue.coordinator.outbox.Outbox.waiting", stored_just_before)

    assert told() == NONE


def test_a_job_that_was_enqueued_again_after_its_end_and_is_gone_has_vanished(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.ack(claim)
    queue.coordinator.enqueue(claim.job)
    store(queue)
    lost(queue, claim.job)

    assert len(told()) == 1


def test_the_jobs_of_another_queue_in_the_same_log_are_not_missed(queue: Queue) -> None:
    other = queue.with_settings()
    other.enqueue()
    auditing.auditor(other).drain()

    assert told() == NONE


def test_what_was_enqueued_before_the_time_asked_for_is_left_out(queue: Queue) -> None:
    (gone,) = queue.enqueue()
    store(queue)
    lost(queue, gone)

    assert told("--since", "2027-01-15T07:59:59+00:00") != NONE
    assert told("--since", "2027-01-15T08:00:01+00:00") == NONE


def test_a_log_that_does_not_hold_every_end_is_no_proof(queue: Queue) -> None:
    with (
        override_settings(PRIQUEUE={"URL": "redis://127.0.0.1:1/0", "AUDIT": "callers"}),
        pytest.raises(CommandError, match="AUDIT is not 'all'"),
    ):
        call_command("vanishedjobs", "--database", "audit")


def test_what_ends_a_job_is_what_takes_it_out_of_the_store(make_queue: Callable[..., Queue]) -> None:
    ends = set()
    for action in ("ack", "bury", "retry", "release", "cancel", "purge"):
        queue = make_queue()
        (claim,) = queue.claimed()
        (ready,) = queue.enqueue()
        c, by = queue.coordinator, {"caller": "user:1", "reason": "test"}
        acts = {
            "ack": lambda c=c, claim=claim: c.ack(claim),
            "bury": lambda c=c, claim=claim: c.bury(claim, FAILURE),
            "retry": lambda c=c, claim=claim: c.retry(claim, FAILURE, delay_s=1),
            "release": lambda c=c, claim=claim: c.release(claim),
            "cancel": lambda c=c, ready=ready, by=by: c.cancel(ready.id, lane="default", **by),
            "purge": lambda c=c, claim=claim, by=by: (c.bury(claim, FAILURE), c.purge([claim.job.id], **by)),
        }
        acts[action]()
        if len(queue.state()["jobs"]) < 2:
            ends.add(action)

    assert ends == set(vanished.ENDS)
