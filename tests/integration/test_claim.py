"""claim: ready → in flight, up to the worker's free slots."""

import json

import pytest

from priqueue import PriqueueError, QueueUnavailable, WorkerDraining, WorkerNotRegistered
from priqueue.coordinator import Coordinator
from priqueue.coordinator.calls import born_ms
from priqueue.jobs import Claim, Job
from tests.support.queues import FAILURE, HANDLER, START_MS, Queue


def test_a_claimed_job_is_in_flight_under_a_lease_of_two_beats(queue: Queue) -> None:
    first, second = queue.enqueue(number=2)
    queue.register("w")

    (claim,) = queue.coordinator.pull("w")

    assert claim.job == first
    assert (claim.worker_id, claim.lane, claim.attempt, claim.crashes) == ("w", "default", 1, 0)
    assert claim.deadline_ms == START_MS + 10_000
    assert queue.state() == queue.expected(claim, ready={"default": [second.id]})


def test_it_takes_at_most_what_is_asked_for(queue: Queue) -> None:
    jobs = queue.enqueue(number=5)
    queue.register("w")

    claims = queue.coordinator.pull("w", 3)

    assert [claim.job for claim in claims] == jobs[:3]
    assert queue.state() == queue.expected(*claims, ready={"default": [job.id for job in jobs[3:]]})


def test_a_worker_never_holds_more_leases_than_its_concurrency_whatever_it_asks_for(queue: Queue) -> None:
    queue.enqueue(number=10)
    queue.register("w", concurrency=4)

    claims = [claim for limit in (3, 3, 1_000_000) for claim in queue.coordinator.pull("w", limit)]

    assert len(claims) == 4
    assert queue.state()["slots"] == {"w": 4}


def test_a_full_worker_gets_nothing_and_takes_nothing(queue: Queue) -> None:
    queue.enqueue(number=2)
    queue.register("w", concurrency=1)
    queue.coordinator.pull("w")
    before = queue.everything()

    turn = queue.coordinator.turn("w", 1)

    assert (turn.state, turn.claims) == ("full", [])
    assert queue.everything() == before


@pytest.mark.parametrize("limit", [0, -1])
def test_a_claim_for_nothing_takes_nothing(queue: Queue, limit: int) -> None:
    queue.enqueue()
    queue.register("w")
    before = queue.everything()

    assert queue.coordinator.pull("w", limit) == []

    assert queue.everything() == before


def test_the_slots_of_one_worker_are_not_anothers(queue: Queue) -> None:
    queue.enqueue(number=4)
    for worker_id in ("a", "b"):
        queue.register(worker_id, concurrency=2)

    claims = [*queue.coordinator.pull("a", 9), *queue.coordinator.pull("b", 9)]

    assert queue.state() == queue.expected(*claims)
    assert queue.state()["slots"] == {"a": 2, "b": 2}


def test_nobody_gets_what_another_worker_holds(queue: Queue) -> None:
    queue.claimed(worker_id="a")
    queue.register("b")

    assert queue.coordinator.pull("b", 9) == []


def test_a_worker_takes_only_from_its_own_lanes(queue: Queue) -> None:
    (high,) = queue.enqueue(lane="high")
    (low,) = queue.enqueue(lane="low")
    queue.register("w", ["low"])

    claims = queue.coordinator.pull("w", 9)

    assert [claim.job for claim in claims] == [low]
    assert queue.state() == queue.expected(*claims, ready={"high": [high.id]})


def test_an_unknown_worker_has_to_register_and_nothing_changes(queue: Queue) -> None:
    queue.enqueue()
    before = queue.everything()

    with pytest.raises(WorkerNotRegistered, match="ghost"):
        queue.coordinator.pull("ghost")

    assert queue.everything() == before


def test_a_draining_worker_gets_nothing_more_and_nothing_changes(queue: Queue) -> None:
    queue.enqueue()
    queue.register("w")
    queue.coordinator.drain("w", caller="user:1")
    before = queue.everything()

    with pytest.raises(WorkerDraining, match="drain"):
        queue.coordinator.pull("w")

    assert queue.everything() == before


def test_each_claimed_job_leaves_an_event_and_is_counted_as_a_pick(queue: Queue) -> None:
    (job,) = queue.enqueue(lane="low", correlation_id="request-7")
    queue.register("w")

    queue.coordinator.pull("w")

    assert queue.event() == {
        "action": "claim", "caller": "worker:w", "job": job.id, "handler": HANDLER, "lane": "low",
        "outcome": "in flight", "correlation_id": "request-7", "at": str(START_MS),
    }  # fmt: skip
    assert queue.counters() == {"enqueued:low": 1, "picks:low": 1}


def test_a_pick_while_every_lane_of_the_pool_holds_work_is_counted_as_such(queue: Queue) -> None:
    for lane in ("high", "default", "low"):
        queue.enqueue(lane=lane)
    queue.register("w")

    queue.coordinator.pull("w", 3)

    counted = {name: number for name, number in queue.counters().items() if name.startswith("picks")}
    assert counted == {"picks:high": 1, "picks:default": 1, "picks:low": 1, "picks_full:high": 1}


def test_a_claim_renews_the_workers_presence(queue: Queue) -> None:
    queue.register("w")
    queue.clock.advance(3)

    queue.coordinator.pull("w")

    assert queue.raw.hget(queue.keys.heartbeats, "w") == str(START_MS + 3_000)


def test_a_fresh_job_is_ready_since_it_was_made(queue: Queue) -> None:
    (claim,) = queue.claimed()

    assert claim.ready_since_ms == born_ms(claim.job.id)


def test_a_job_that_was_delayed_is_ready_since_it_was_promoted_and_the_note_is_used_up(queue: Queue) -> None:
    queue.enqueue(delay_ms=1_000)
    queue.register("w")
    queue.clock.advance(5)
    queue.coordinator.promote()
    queue.clock.advance(5)

    (claim,) = queue.coordinator.pull("w")

    assert claim.ready_since_ms == START_MS + 5_000
    assert queue.state() == queue.expected(claim)


def test_a_claim_says_the_failures_and_crashes_so_far(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.retry(claim, FAILURE, delay_s=0)
    queue.coordinator.promote()
    queue.coordinator.pull("worker")
    queue.lapse()

    (claim,) = queue.coordinator.pull("worker")

    assert (claim.attempt, claim.crashes) == (2, 1)


def test_a_lost_reply_is_answered_with_the_same_leases(queue: Queue) -> None:
    queue.enqueue(number=5)
    queue.register("w")
    queue.eat_replies()

    claims = queue.coordinator.pull("w", 2)

    assert len(claims) == 2
    state = queue.state()
    assert state["slots"] == {"w": 2}
    assert set(state["in flight"]) == {claim.job.id for claim in claims}
    assert queue.counters()["picks:default"] == 2


def test_leases_whose_reply_never_came_are_handed_out_by_the_next_claim(queue: Queue) -> None:
    jobs = queue.enqueue(number=5)
    queue.register("w")
    queue.give_up_at_once()
    queue.eat_replies()
    with pytest.raises(QueueUnavailable):
        queue.coordinator.pull("w", 2)

    claims = queue.coordinator.pull("w", 5)

    assert [claim.job for claim in claims] == jobs[:2]
    assert queue.state() == queue.expected(*claims, ready={"default": [job.id for job in jobs[2:]]})


def test_once_answered_the_next_claim_takes_new_jobs(queue: Queue) -> None:
    jobs = queue.enqueue(number=2)
    queue.register("w")

    claims = [*queue.coordinator.pull("w"), *queue.coordinator.pull("w")]

    assert [claim.job for claim in claims] == jobs
    assert claims[0].token != claims[1].token


def test_a_repeat_leaves_out_what_was_meanwhile_settled(queue: Queue) -> None:
    queue.enqueue(number=2)
    queue.register("w")
    claims = queue.coordinator.pull("w", 2)
    queue.coordinator._unanswered["w"] = claims[0].token
    queue.coordinator.ack(claims[0])

    (again,) = queue.coordinator.pull("w", 2)

    assert (again.job, again.token) == (claims[1].job, claims[1].token)


def test_a_worker_that_restarts_under_its_old_id_does_not_revive_its_leases(queue: Queue) -> None:
    jobs = queue.enqueue(number=2)
    queue.register("w")
    queue.coordinator.pull("w")
    restarted = Coordinator(queue.client, queue.settings, queue.clock)
    restarted.register("w", lanes=["default"], concurrency=100)

    claims = restarted.pull("w", 9)

    assert [claim.job for claim in claims] == jobs[1:]


def test_the_acks_of_a_turn_free_their_slots_for_its_own_claim(queue: Queue) -> None:
    jobs = queue.enqueue(number=3)
    queue.register("w", concurrency=2)
    done = queue.coordinator.pull("w", 2)

    turn = queue.coordinator.turn("w", 2, done)

    assert (turn.state, turn.lost, [claim.job for claim in turn.claims]) == ("ok", [], jobs[2:])
    assert queue.state() == queue.expected(*turn.claims)


def test_a_turn_whose_reply_was_lost_acks_and_claims_once(queue: Queue) -> None:
    queue.enqueue(number=3)
    queue.register("w", concurrency=2)
    done = queue.coordinator.pull("w", 2)
    queue.eat_replies()

    turn = queue.coordinator.turn("w", 2, done)

    assert turn.lost == []
    assert queue.state() == queue.expected(*turn.claims)
    assert queue.counters()["acked:default"] == 2


def test_a_turn_whose_claim_fails_has_acked_all_the_same_and_a_repeat_acks_nothing_twice(queue: Queue) -> None:
    queue.enqueue(number=3)
    queue.register("w", concurrency=2)
    done = queue.coordinator.pull("w", 2)
    queue.raw.rename(queue.keys.picker, "aside")
    queue.raw.set(queue.keys.picker, "no hash")

    with pytest.raises(PriqueueError, match="WRONGTYPE"):
        queue.coordinator.turn("w", 2, done)

    assert (list(queue.places().values()), queue.counters()["acked:default"]) == (["ready"], 2)
    queue.raw.rename("aside", queue.keys.picker)
    turn = queue.coordinator.turn("w", 2, done, repeat=True)
    assert (turn.lost, turn.state, len(turn.claims)) == ([], "ok", 1)
    assert queue.state() == queue.expected(*turn.claims)
    assert queue.counters()["acked:default"] == 2


def test_the_answer_to_a_turn_may_wait_while_its_caller_asks_for_other_things(queue: Queue) -> None:
    (job,) = queue.enqueue()
    queue.register("w")

    begun = queue.coordinator.begin_turn("w", 1)
    (later,) = queue.enqueue()
    turn = begun().read()

    assert [claim.job for claim in turn.claims] == [job]
    assert queue.places() == {job.id: "in flight", later.id: "ready"}


def test_a_turn_names_the_leases_that_were_lost_and_settles_the_others(queue: Queue) -> None:
    lost, kept = queue.claimed(number=2)
    queue.coordinator.release(lost)

    turn = queue.coordinator.turn("worker", 0, [lost, kept])

    assert list(turn.lost) == [lost]
    assert queue.places() == {lost.job.id: "ready"}


def test_a_claim_that_leaves_work_behind_wakes_the_next_worker(queue: Queue) -> None:
    queue.enqueue(number=2)
    queue.register("w")
    queue.raw.delete(queue.keys.wake("default"))

    queue.coordinator.pull("w")

    assert queue.tokens() == {"default": 1}


def test_a_claim_that_empties_a_lane_wakes_nobody(queue: Queue) -> None:
    queue.enqueue(number=2)
    queue.register("w")
    queue.raw.delete(queue.keys.wake("default"))

    queue.coordinator.pull("w", 2)

    assert queue.tokens() == {}


def test_work_left_in_a_paused_lane_wakes_nobody(queue: Queue) -> None:
    queue.enqueue(lane="high")
    queue.enqueue(lane="low")
    queue.register("w")
    queue.coordinator.pause("low", caller="user:1", reason="quiet")
    for lane in ("high", "low"):
        queue.raw.delete(queue.keys.wake(lane))

    queue.coordinator.pull("w", 9)

    assert queue.tokens() == {}


def test_a_full_worker_that_took_the_token_passes_it_on(queue: Queue) -> None:
    queue.enqueue(number=2)
    queue.register("w", concurrency=1)
    queue.coordinator.pull("w")
    queue.raw.delete(queue.keys.wake("default"))

    queue.coordinator.pull("w")

    assert queue.tokens() == {"default": 1}


_ODD = '{"n" : 1e2,"text":"\\u00fc\\ud83d\\ude00 \\"","empty":[],"big":12345678901234567890,"zero":-0.0}'


def test_the_payload_is_byte_for_byte_what_was_accepted_on_every_path(queue: Queue) -> None:
    job = Job(name=HANDLER, payload=json.loads(_ODD), payload_json=_ODD, delay_ms=1_000)
    queue.register("w")
    queue.coordinator.enqueue(job)
    seen = []

    def claimed() -> Claim:
        queue.clock.advance(1)
        queue.coordinator.promote()
        (claim,) = queue.coordinator.pull("w")
        seen.append(claim.job.payload_text())
        return claim

    queue.coordinator.retry(claimed(), FAILURE, delay_s=1)
    queue.coordinator.release(claimed())
    claimed()
    queue.lapse()
    queue.coordinator.bury(claimed(), FAILURE)
    queue.coordinator.requeue([job.id], caller="user:1", reason="fixed")
    claimed()

    assert seen == [_ODD] * 5


@pytest.mark.parametrize("stored", ["garbage", "", '{"v":1}', "x" * 64 + '{"v":1,"payload":{}}'])
def test_an_envelope_that_cannot_be_trusted_is_buried_and_the_good_jobs_run(queue: Queue, stored: str) -> None:
    bad, good = queue.enqueue(number=2)
    queue.register("w")
    queue.raw.hset(queue.keys.jobs, bad.id, stored)

    claims = queue.coordinator.pull("w", 2)

    assert [claim.job for claim in claims] == [good]
    assert queue.places() == {bad.id: "dead", good.id: "in flight"}
    assert queue.state()["letters"][bad.id]["cause"].startswith("BadSignature")


def test_a_turn_tells_what_was_buried_unread_so_that_it_can_be_said(queue: Queue) -> None:
    forged, good = queue.enqueue(number=2)
    queue.raw.hset(queue.keys.jobs, forged.id, good.encode())
    queue.register("w")

    turn = queue.coordinator.turn("w", 2)

    ((claim, failure),) = turn.buried
    assert (claim.job.id, claim.job.name, failure.error) == (forged.id, "unreadable", "BadSignature")
    assert [claim.job for claim in turn.claims] == [good]
