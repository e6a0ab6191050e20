"""A random walk over all transitions of the queue, every step of it taken by the coordinator and by the model.

A step asserts that both give the same answer; what must be true after each step is for a subclass to say.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from priqueue import LeaseLost, WorkerDraining, WorkerNotRegistered
from priqueue.jobs import Claim, Failure, Job, from_ms
from tests.support.model import Model
from tests.support.queues import Queue

WORKERS = {"a": 1, "b": 3, "c": 8}
LANES = ("high", "default", "low")
POOLS = (LANES, ("high",), ("default", "low"))
PERSON = "user:7"
OPTIONS = {"HEARTBEAT_S": 5.0, "SOCKET_TIMEOUT_S": 2.0, "MAX_CRASHES": 2}

indexes = st.integers(0, 999)
workers = st.sampled_from(sorted(WORKERS))
limits = st.sampled_from([1, 2, 3, 100])
lanes = st.sampled_from(LANES)
waits_ms = st.sampled_from([0, 1, 2_000, 9_000])
settlings = st.sampled_from(["ack", "turn", "retry", "retry", "bury", "bury", "release"])
pausings = st.sampled_from(["pause", "resume", "resume", "if over"])
comings = st.sampled_from(["register", "drain", "leave", "forget"])
errors = st.sampled_from(["ValueError", "KeyError"])


Step = TypeVar("Step", bound=Callable[..., None])
STEPS: list[tuple[str, st.SearchStrategy[dict[str, Any]]]] = []


def step(weight: int, **arguments: st.SearchStrategy[Any]) -> Callable[[Step], Step]:
    """Let a walk take this step ``weight`` times as often as one of weight 1.

    Rules of their own would be switched on and off in groups: few walks would have all it takes to die twice.
    """

    def register(method: Step) -> Step:
        STEPS.extend([(method.__name__, st.fixed_dictionaries(arguments))] * weight)
        return method

    return register


class Walk(RuleBasedStateMachine):
    """One queue, its model, and the steps that are taken in both."""

    def __init__(self, make_queue: Callable[..., Queue]) -> None:
        super().__init__()
        self.queue = make_queue(**OPTIONS)
        self.coordinator = self.queue.coordinator
        self.model = Model(self.queue.settings, self.queue.clock.now_ms)
        self.known: list[Job] = []
        self.taken: list[Claim] = []
        self.accepted = self.ended = 0

    def same(self, found: object, expected: object) -> None:
        assert found == expected

    def a_job(self, index: int) -> Job:
        return self.known[index % len(self.known)]

    def a_claim(self, index: int, stale: bool) -> Claim:
        """Return a claim whose lease is held, if there is one; or any that was ever given."""
        held = [claim for claim in self.taken if self.model.holds(claim)]
        pool = self.taken if stale or not held else held
        return pool[-1 - index % len(pool)]

    def some_letters(self, index: int) -> list[str]:
        """Return up to three dead jobs, or others that are not."""
        ids = [*self.model.letters] or [job.id for job in self.known]
        return [ids[(index + step) % len(ids)] for step in range(3)]

    @initialize()
    def a_queue_with_workers_and_jobs(self) -> None:
        for worker in WORKERS:
            self.register(worker, LANES)
        for lane in LANES:
            self.enqueue(lane, [0, 0, 0, 2_000], absolute=False)

    @rule(data=st.data())
    def take_a_step(self, data: st.DataObject) -> None:
        name, arguments = data.draw(st.sampled_from(STEPS))
        getattr(self, name)(**data.draw(arguments))

    # --- time ---

    @step(3, seconds=st.sampled_from([0.001, 2.0, 5.0, 9.999, 10.0, 10.001, 700.0, -3.0]))
    def time_passes(self, seconds: float) -> None:
        self.queue.clock.advance(seconds)
        self.model.now_ms = self.queue.clock.now_ms

    # --- a job's life ---

    @step(3, lane=lanes, delays_ms=st.lists(waits_ms, min_size=1, max_size=5), absolute=st.booleans())
    def enqueue(self, lane: str, delays_ms: list[int], absolute: bool) -> None:
        for delay_ms in delays_ms:
            due = {"delay_ms": None, "run_at": from_ms(self.model.now_ms + delay_ms)} if absolute else {}
            number, due = len(self.known), {"delay_ms": delay_ms} | due
            name, caller, payload = (
                f"shop.note{number % 2}",
                f"user:{number % 3}",
                {"n": number, "é": ['"', {}]},
            )
            self.known.append(Job(name=name, payload=payload, lane=lane, caller=caller, **due))
        self.hand_over(self.known[-len(delays_ms) :])

    @step(1, index=indexes)
    def enqueue_one_again(self, index: int) -> None:
        self.hand_over([self.a_job(index)])

    def hand_over(self, jobs: Sequence[Job]) -> None:
        self.coordinator.enqueue_many(jobs)
        self.accepted += sum([self.model.enqueue(job) for job in jobs])

    @step(2, limit=limits)
    def promote(self, limit: int) -> None:
        self.same(self.coordinator.promote(limit), self.model.promote(limit))

    @step(6, worker=workers, limit=limits, pool=st.sampled_from([None, *POOLS]))
    def pull(self, worker: str, limit: int, pool: tuple[str, ...] | None) -> None:
        if pool and self.model.claim_refusal(worker):
            self.register(worker, pool)
        try:
            claims: list[Claim] | str = self.coordinator.pull(worker, limit)
        except WorkerNotRegistered:
            claims = "unregistered"
        except WorkerDraining:
            claims = "draining"
        self.took(worker, claims, limit)

    def took(self, worker: str, claims: list[Claim] | str, limit: int) -> None:
        token = claims[0].token if isinstance(claims, list) and claims else ""
        expected = self.model.claim(worker, limit, token)
        if isinstance(claims, str):
            return self.same(claims, expected)
        self.same([claim.job.id for claim in claims], expected)
        for claim in claims:
            lease = self.model.in_flight[claim.job.id]
            told = claim.worker_id, claim.token, claim.deadline_ms, claim.lane, claim.attempt, claim.crashes
            self.same(told, tuple(vars(lease).values()))
            self.same(claim.job.payload_json, self.model.jobs[claim.job.id].payload_text())
        self.taken += claims
        return None

    @step(1, index=indexes, limit=limits)
    def pull_as_a_repeat(self, index: int, limit: int) -> None:
        if not self.model.claims:
            return
        worker = sorted(self.model.claims)[index % len(self.model.claims)]
        self.coordinator._unanswered[worker] = self.model.claims[worker][0]
        turn = self.coordinator.turn(worker, limit, repeat=True)
        self.same([claim.job.id for claim in turn.claims], self.model.claim_again(worker))

    @step(10, index=indexes, stale=st.sampled_from([False, False, False, True]), how=settlings, limit=limits,
          repeat=st.booleans(), wait_ms=waits_ms, error=errors)  # fmt: skip
    def somebody_settles(
        self, index: int, stale: bool, how: str, limit: int, repeat: bool, wait_ms: int, error: str
    ) -> None:
        """Settle, and be refused by name exactly where the model says so."""
        if not self.taken:
            return None
        claim, failure = self.a_claim(index, stale), Failure(error=error, traceback="here")
        options: dict[str, Any] = {"repeat": repeat}
        if how == "turn":
            return self.ack_and_pull(claim, limit, repeat)
        if how == "ack":
            allowed = self.model_ack(claim, repeat)
        elif how == "bury":
            allowed = self.model.bury(claim, failure, repeat)
            options["failure"] = failure
        elif how == "retry":
            allowed = self.model.retry(claim, wait_ms, repeat)
            options |= {"failure": failure, "delay_s": wait_ms / 1000}
        else:
            return self.release([claim, self.a_claim(index + 1, stale)][:limit], wait_ms, repeat)
        return self.settled(getattr(self.coordinator, how), claim, allowed=allowed, **options)

    def settled(self, ended: Callable[..., None], *claims: Claim, allowed: bool, **options: Any) -> None:
        if allowed:
            ended(*claims, **options)
        else:
            with pytest.raises(LeaseLost):
                ended(*claims, **options)

    def release(self, claims: list[Claim], wait_ms: int, repeat: bool) -> None:
        allowed = self.model.release(claims, wait_ms, repeat)
        options = {"delay_s": wait_ms / 1000, "repeat": repeat}
        self.settled(self.coordinator.release, *claims, allowed=allowed, **options)

    def ack_and_pull(self, claim: Claim, limit: int, repeat: bool) -> None:
        turn = self.coordinator.turn(claim.worker_id, limit, [claim], repeat=repeat)
        self.same(list(turn.lost), [] if self.model_ack(claim, repeat) else [claim])
        self.took(claim.worker_id, turn.claims if turn.state in {"ok", "full"} else turn.state, limit)

    def model_ack(self, claim: Claim, repeat: bool) -> bool:
        self.ended += self.model.holds(claim)
        return self.model.ack(claim, repeat)

    @step(1, index=indexes, stale=st.booleans(), worker=workers)
    def beat(self, index: int, stale: bool, worker: str) -> None:
        claims = [self.a_claim(index, stale), self.a_claim(index + 1, stale)] if self.taken else []
        expected = self.model.beat(worker, claims)
        if expected is None:
            with pytest.raises(WorkerNotRegistered):
                self.coordinator.beat(worker, claims)
        else:
            self.same(self.coordinator.beat(worker, claims), expected)

    def reclaim(self, limit: int) -> None:
        self.same(self.coordinator.reclaim(limit), self.model.reclaim(limit))

    @step(3, limit=limits, times=st.integers(1, 4))
    def the_sweeper_runs_each_lease(self, limit: int, times: int) -> None:
        self.reclaim(limit)  # may find that the sweepers were away, and give one lease more
        for _ in range(times - 1):
            self.time_passes(10.0)
            self.reclaim(limit)

    # --- people ---

    @step(4, index=indexes, requeue=st.booleans(), until_ms=st.sampled_from([None, 0, -5000]))
    def somebody_looks_after_the_dead(self, index: int, requeue: bool, until_ms: int | None) -> None:
        until_ms = None if until_ms is None else self.model.now_ms + until_ms
        (self.requeue if requeue else self.purge)(self.some_letters(index), until_ms)

    @step(2, limit=limits)
    def the_sweeper_trims(self, limit: int) -> None:
        self.coordinator.trim(limit)

    def requeue(self, ids: list[str], until_ms: int | None) -> None:
        done = self.coordinator.requeue(ids, caller=PERSON, reason="fixed", until_ms=until_ms)
        self.same(done, self.model.requeue(ids, PERSON, until_ms))

    def purge(self, ids: list[str], until_ms: int | None) -> None:
        done = self.coordinator.purge(ids, caller=PERSON, reason="old", until_ms=until_ms)
        self.same(done, self.model.purge(ids, PERSON, until_ms))
        self.ended += len(done)

    @step(2, index=indexes, lane=lanes, repeat=st.booleans())
    def somebody_edits_a_dead_job(self, index: int, lane: str, repeat: bool) -> None:
        job_id = self.some_letters(index)[0]
        copy = Job(name="shop.note0", payload={"n": -1}, lane=lane, caller=PERSON, replaces=job_id)
        for _ in range(1 + repeat):
            found = self.coordinator.replace(job_id, copy, caller=PERSON, reason="a typo")
            self.same(found, self.model.replace(job_id, copy, PERSON))
        if found == copy.id:
            self.known.append(copy)
            self.accepted += 1

    @step(1, index=indexes)
    def cancel(self, index: int) -> None:
        job = self.a_job(index)
        done = self.coordinator.cancel(job.id, lane=job.lane, caller=PERSON, reason="")
        self.same(done, self.model.cancel(job.id, job.lane, PERSON))
        self.ended += done

    @step(2, lane=lanes, lasts_s=st.sampled_from([None, 1.0, 5.0]), how=pausings)
    def a_lane_is_paused_or_resumed(self, lane: str, lasts_s: float | None, how: str) -> None:
        if how == "pause":
            self.pause(lane, lasts_s)
        else:
            self.resume(min(self.model.paused, default=lane), how == "if over")

    def pause(self, lane: str, lasts_s: float | None) -> None:
        self.coordinator.pause(lane, caller=PERSON, reason="", lasts_s=lasts_s)
        self.model.pause(lane, PERSON, None if lasts_s is None else round(lasts_s * 1000))

    def resume(self, lane: str, if_over: bool) -> None:
        done = self.coordinator.resume(lane, caller=PERSON, if_over=if_over)
        self.same(done, self.model.resume(lane, PERSON, if_over))

    # --- workers ---

    @step(1, worker=workers, pool=st.sampled_from(POOLS), how=comings)
    def a_worker_comes_or_goes(self, worker: str, pool: tuple[str, ...], how: str) -> None:
        if how == "register":
            self.register(worker, pool)
        else:
            getattr(self, how)(worker)

    def register(self, worker: str, pool: tuple[str, ...]) -> None:
        self.coordinator.register(worker, lanes=reversed(pool), concurrency=WORKERS[worker])
        self.model.register(worker, pool, WORKERS[worker])

    def drain(self, worker: str) -> None:
        self.same(self.coordinator.drain(worker, caller=PERSON), self.model.drain(worker, PERSON))

    def leave(self, worker: str) -> None:
        self.same(self.coordinator.leave(worker), self.model.leave(worker))

    def forget(self, worker: str) -> None:
        self.same(self.coordinator.forget([worker, "nobody"]), self.model.forget([worker, "nobody"]))

    @step(2, lane=st.sampled_from([*LANES, "ticker"]))
    def somebody_is_woken(self, lane: str) -> None:
        token = self.queue.raw.lpop(self.queue.keys.wake(lane))
        self.same(token is not None, lane in self.model.tokens)
        self.model.tokens.discard(lane)
