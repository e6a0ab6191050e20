"""Rows E5 and E6: a deploy under way, where old and new code share a queue, loses nothing and holds up nobody."""

from collections.abc import Callable
from typing import Any

import pytest

from priqueue.coordinator import Coordinator
from priqueue.coordinator.transitions import _NEWER_ENVELOPE_S
from priqueue.exceptions import InvalidPayload, UnknownHandler
from priqueue.executor import Verdict, execute
from priqueue.handlers import Handler, Registry, registry
from priqueue.jobs import Claim, Job
from priqueue.settler import Settler
from priqueue.signing import sign
from tests.support.processes import Live
from tests.support.queues import HANDLER, Queue, test_settings

REMOVED = "shop.jobs.removed_last_week"


@pytest.fixture
def queue(real_queue: Queue) -> Queue:
    """A queue on the real server."""
    return real_queue


def settled(queue: Queue, claim: Claim) -> Any:
    outcome = execute(claim, queue.settings)
    settler = Settler(queue.coordinator, lambda _: None)
    settler.add([outcome])
    settler.settle_others()
    return outcome


def next_claims(queue: Queue) -> list[Claim]:
    queue.clock.advance(queue.settings.backoff_max_s)
    queue.coordinator.reclaim()
    queue.coordinator.promote()
    return queue.coordinator.pull("worker", 10)


@pytest.mark.chaos
@pytest.mark.parametrize("max_attempts", [0, 1, 5])
def test_e5_a_job_without_its_handler_waits_for_the_code_and_ends_in_the_dead_letters(
    queue: Queue, figure: Callable[..., None], max_attempts: int
) -> None:
    (job,) = queue.enqueue(name=REMOVED, max_attempts=max_attempts)
    queue.register()
    runs = 0
    while claims := next_claims(queue):
        runs += 1
        settled(queue, claims[0])

    assert queue.places() == {job.id: "dead"}
    bound = max(1, max_attempts)
    figure("E5", f"tries of a job without its code, max_attempts {max_attempts}", runs, f"= {bound}", runs == bound)
    assert {error for error, _, _ in queue.trail(job.id)} == {"priqueue.exceptions.UnknownHandler"}
    status = queue.inspector.job(job.id)
    assert status is not None
    assert f"no handler is registered under '{REMOVED}'" in status.trail[-1].message


@pytest.mark.chaos
def test_e5_a_letter_for_want_of_code_runs_once_the_code_is_there(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.enqueue(name=REMOVED, max_attempts=1)
    queue.register()
    while claims := next_claims(queue):
        settled(queue, claims[0])
    ran = []
    deployed = Registry()
    deployed.register(Handler(lambda n: ran.append(n), name=REMOVED))
    monkeypatch.setattr("priqueue.executor.registry", deployed)

    queue.coordinator.requeue(queue.raw.lrange(queue.keys.dead, 0, -1), caller="user:1", reason="deployed")
    (claim,) = next_claims(queue)

    assert (execute(claim, queue.settings).verdict, ran) == (Verdict.ACK, [0])


@pytest.mark.chaos
def test_e5_jobs_without_their_handler_hold_up_no_other(queue: Queue) -> None:
    queue.enqueue(name=REMOVED, number=50)
    (other,) = queue.enqueue()
    queue.register()

    claims = queue.coordinator.pull("worker", 51)
    for claim in claims[:50]:
        settled(queue, claim)

    assert claims[50].job.id == other.id
    assert sorted(queue.places().values()) == ["delayed"] * 50 + ["in flight"]


@pytest.mark.chaos
def test_e5_an_alias_takes_the_jobs_of_a_former_name(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed, ran = Registry(), []
    deployed.register(Handler(lambda n: ran.append(n), name="shop.jobs.renamed", aliases=[REMOVED]))
    monkeypatch.setattr("priqueue.executor.registry", deployed)
    (claim,) = queue.claimed(name=REMOVED)

    assert (execute(claim, queue.settings).verdict, ran) == (Verdict.ACK, [0])


@pytest.mark.chaos
def test_e5_a_signature_that_changed_is_said_in_the_failure(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed = Registry()
    deployed.register(Handler(lambda order_id: None, name=HANDLER))
    monkeypatch.setattr("priqueue.executor.registry", deployed)
    (claim,) = queue.claimed()

    found = execute(claim, queue.settings)

    assert found.failure is not None
    assert (found.verdict, found.failure.error) == (Verdict.RETRY, f"priqueue.exceptions.{InvalidPayload.__name__}")
    assert "order_id" in found.failure.message


@pytest.mark.chaos
def test_e5_an_unknown_name_is_refused_when_it_is_enqueued() -> None:
    with pytest.raises(UnknownHandler, match="no handler is registered"):
        registry.get(REMOVED)


def newer(queue: Queue, number: int = 1) -> list[Job]:
    """Put jobs into the store as a version of priqueue would that is still to be written."""
    jobs = queue.enqueue(number=number)
    for job in jobs:
        envelope = job.encode().replace('{"v":1,', '{"v":2,') + '["and what nobody knows yet"]'
        queue.raw.hset(queue.keys.jobs, job.id, sign(queue.settings.signing_keys, job.id, envelope))
    return jobs


@pytest.mark.chaos
def test_e6_a_newer_envelope_is_left_alone_with_a_wait_however_often_it_is_met(
    queue: Queue, figure: Callable[..., None]
) -> None:
    jobs = newer(queue, 3)
    before = queue.raw.hgetall(queue.keys.jobs)
    queue.register()
    claimed = 0
    rounds = 50
    for _ in range(rounds):
        assert queue.coordinator.pull("worker", 10) == []
        assert queue.places() == {job.id: "delayed" for job in jobs}
        assert queue.coordinator.pull("worker", 10) == []  # no spinning: nothing is ready before the wait is over
        queue.clock.advance(_NEWER_ENVELOPE_S)
        claimed += queue.coordinator.promote()

    assert claimed == 3 * rounds
    assert queue.raw.hgetall(queue.keys.jobs) == before
    assert queue.raw.hgetall(queue.keys.attempts) == {}
    figure("E6", "newer envelopes lost, met 50 times", 0, "= 0", len(queue.raw.hgetall(queue.keys.jobs)) == 3)


@pytest.mark.chaos
def test_e6_beside_newer_envelopes_the_others_are_claimed_at_once(queue: Queue) -> None:
    newer(queue, 20)
    (mine,) = queue.enqueue()
    queue.register()

    claims = queue.coordinator.pull("worker", 21)

    assert [claim.job.id for claim in claims] == [mine.id]


@pytest.mark.chaos
def test_e6_jobs_in_a_lane_that_left_the_configuration_are_kept_and_shown(make_queue: Callable[..., Queue]) -> None:
    before = make_queue(LANES={"high": 6, "bulk": 3, "default": 1})
    before.enqueue(lane="bulk", number=3)
    before.enqueue(lane="bulk", number=2, delay_ms=1_000)
    after = make_queue(NAMESPACE=before.settings.namespace)
    after.register()

    assert after.coordinator.pull("worker", 10) == []

    assert after.inspector.stats().left_behind == {"bulk": 5}
    assert len(after.raw.hkeys(after.keys.jobs)) == 5


@pytest.mark.chaos
@pytest.mark.parametrize("command", ["runworker", "runticker"])
def test_e6_a_process_warns_at_its_start_of_lanes_that_left_the_configuration(live: Live, command: str) -> None:
    lanes = {"LANES": {"bulk": 1}}
    Coordinator(live.client, test_settings(**live.options | lanes)).enqueue(Job(name=HANDLER, payload={}, lane="bulk"))

    process = live.start(command)

    live.until(lambda: "lane bulk left the configuration with 1 jobs in it" in live.log(process))
    assert process.poll() is None
