"""Every transition, in any order, against the plain model: after each step the whole state is the same.

A fixed set of random walks runs each time. ``PRIQUEUE_TEST_WALKS=1000 pytest --timeout=0 …`` walks that many others.
"""

import os
from collections import Counter
from collections.abc import Callable

import hypothesis
import pytest
from hypothesis.stateful import invariant, run_state_machine_as_test

from tests.support.places import Event
from tests.support.queues import Queue
from tests.support.walk import WORKERS, Walk

WALKS = os.environ.get("PRIQUEUE_TEST_WALKS")
STEPS = 50


class CheckedWalk(Walk):
    """A walk that looks at everything after each step."""

    def __init__(self, make_queue: Callable[..., Queue]) -> None:
        super().__init__(make_queue)
        self.envelopes: dict[str, str] = {}
        self.seen_events = "-"

    @invariant()
    def the_whole_state_is_the_model_s(self) -> None:
        found_state = self.queue.state()
        del found_state["dead"]  # holds stale entries too; its own rule is below
        self.same(found_state, self.model.state())
        raw, keys, model = self.queue.raw, self.queue.keys, self.model
        self.same(dict.fromkeys(model.tokens, 1), self.queue.tokens())
        self.same(self.queue.counters(), model.counters)
        hashes = {"heartbeats": model.heartbeats, "picker": model.written_credits()}
        for name, expected in hashes.items():
            found = raw.hgetall(getattr(keys, name))
            self.same({field: int(value) for field, value in found.items()}, expected)
        self.same(set(self.queue.inspector.paused()), set(model.paused))
        self.same(
            {worker.id: (tuple(worker.lanes), worker.draining) for worker in self.queue.inspector.workers()},
            {worker_id: (worker.lanes, worker.draining) for worker_id, worker in model.workers.items()},
        )

    @invariant()
    def every_job_is_in_one_place_and_none_is_lost(self) -> None:
        places = self.queue.places()
        assert len(places) == self.accepted - self.ended

    @invariant()
    def the_dead_list_holds_each_letter_the_newest_first_and_knows_its_stale_entries(self) -> None:
        raw, keys = self.queue.raw, self.queue.keys
        entries = [*raw.lrange(keys.dead, 0, -1), *raw.lrange(keys.kept, 0, -1)]
        standing = [job_id for job_id in dict.fromkeys(entries) if job_id in self.model.letters]
        self.same(standing, [*reversed(self.model.letters)])
        assert len(entries) - len(standing) == sum(int(number) for number in raw.hvals(keys.holes))

    @invariant()
    def no_worker_holds_more_than_it_may(self) -> None:
        held = Counter(lease.worker for lease in self.model.in_flight.values())
        assert all(number <= WORKERS[worker] for worker, number in held.items())

    @invariant()
    def an_envelope_never_changes(self) -> None:
        stored = self.queue.raw.hgetall(self.queue.keys.jobs)
        self.envelopes = stored | self.envelopes
        assert all(self.envelopes[job_id] == envelope for job_id, envelope in stored.items())

    @invariant()
    def no_job_exceeds_its_crashes_and_every_attempt_is_on_record(self) -> None:
        assert all(lease.crashes < self.queue.settings.max_crashes for lease in self.model.in_flight.values())
        for job_id in self.model.jobs:
            lines = self.queue.raw.lrange(self.queue.keys.trail(job_id), 0, -1)
            found = [(line.split(" ")[0], line.split(" ")[1] == "-") for line in lines]
            self.same(found, self.model.trails.get(job_id, []))

    @invariant()
    def every_change_leaves_exactly_one_audit_event(self) -> None:
        entries = self.queue.raw.xrange(self.queue.keys.audit, self.seen_events)
        if entries:
            self.seen_events = f"({entries[-1][0]}"
        expected, self.model.events = self.model.events, []
        found: list[Event] = [(entry["action"], entry["caller"], entry["job"]) for _, entry in entries]
        self.same(found, expected)


@pytest.mark.timeout(400)
def test_every_transition_keeps_the_invariants(make_queue: Callable[..., Queue]) -> None:
    usual = hypothesis.settings(
        max_examples=int(WALKS or 60), stateful_step_count=STEPS, deadline=None, database=None,
        derandomize=WALKS is None, suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip

    run_state_machine_as_test(lambda: CheckedWalk(make_queue), settings=usual)
