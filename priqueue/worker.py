"""Worker: one claim loop.

1. take the outcomes of all runs that ended meanwhile and settle them
2. in the same round trip, claim for every free slot; never more, so nothing is fetched that cannot run now
3. hand the claims to the pool; where runs are quick and many, while the next round trip is under way
4. with nothing to do, wait for a token, an outcome or the order to stop

Asked to stop, it claims no more, lets runs end for the grace, and gives back what is left. A job is settled by the
holder of its lease or not at all: what ends after its lease was lost or given back counts for nothing.
"""

import os
import secrets
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from math import inf
from typing import Any

from priqueue import events
from priqueue.clock import monotonic_s
from priqueue.coordinator import Coordinator, Turn
from priqueue.ears import Ears
from priqueue.exceptions import PriqueueError
from priqueue.executor import Outcome, Verdict
from priqueue.heartbeat import Heartbeat
from priqueue.loops import Loop, backoff_s
from priqueue.pool import Pool
from priqueue.settler import Settler

_LEAVE_WITHIN_S = 0.9


def new_worker_id() -> str:
    """Return a worker id: host, process and a random part, so that a restarted worker is a new one."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def _version() -> str:
    try:
        return version("priqueue")
    except PackageNotFoundError:  # run from a copied folder
        return "unknown"


def _about() -> dict[str, Any]:
    """Return what people may know of this process."""
    return {"host": socket.gethostname(), "pid": os.getpid(), "version": _version()}


class Worker:
    """Claims jobs for its slots, runs and settles them, until it is stopped."""

    def __init__(
        self,
        coordinator: Coordinator,
        *,
        worker_id: str = "",
        lanes: Sequence[str] = (),
        concurrency: int = 0,
        processes: int | None = None,
        burst: bool = False,
        max_jobs: int | None = None,
    ) -> None:
        self._coordinator = coordinator
        self._settings = coordinator.settings
        self.id = worker_id or new_worker_id()
        self.lanes = lanes or self._settings.lane_names
        self.concurrency = concurrency or self._settings.concurrency
        self.processes = min(self.concurrency, self._settings.processes if processes is None else processes)
        self._burst = burst
        # Children are replaced after so many jobs; threads of this process cannot be, so the worker itself ends.
        self._jobs_left = inf if self.processes or max_jobs is None else max_jobs
        #: what the process is to exit with: 1 when it could not go on
        self.exit_code = 0
        self._threads: list[threading.Thread] = []
        self._registered = self._listening = self._token_taken = False
        # The queue counts leases that no slot knows of: one that could not be settled stands until it is swept.
        self._full = False
        self._asked_to_stop = self._forced = self._claim_in_doubt = False
        self._stopped_at_s = 0.0
        self._given: Turn | None = None  # what the last round trip gave, and nobody has read
        ears = Ears()
        self.loop = Loop("worker", self.run_once, bell=ears)
        self._pool = Pool(self.concurrency, self.processes, self._settings, ears, max_jobs)
        self._settler = Settler(coordinator, self._pool.vacate)
        self._heartbeat = Heartbeat(
            coordinator, self.id, held=self._pool.leased, register=self._register, lost=self._pool.lose
        )
        self._listener = Loop("listener", self._listen_once)

    def run(self) -> None:
        """Run until stopped, or until there is nothing left for a burst; then drain and leave."""
        # Before the heartbeat, which registers a worker that is not known: the later of two records would hide an order
        # to drain that came between them. If it fails, the loop says so and tries again.
        with suppress(PriqueueError):
            self._register()
        self._threads = [self._heartbeat.loop.start(), self._listener.start()]
        self.loop.run()
        self._drain()

    def stop(self) -> None:
        """Drain and leave; called again: give everything back at once. Safe in a signal handler."""
        self._forced, self._asked_to_stop = self._asked_to_stop, True
        self._stopped_at_s = self._stopped_at_s or monotonic_s()
        self.loop.stop()

    def run_once(self) -> float:
        """Settle, claim and hand over once; return the seconds to wait for something to do."""
        self._watch()
        # Before anything that may fail: what a child has said, and nobody heard, would end every wait at once.
        self._settler.add(self._pool.take(expecting=self._given is not None))
        if not self._settler.only_acks:
            self._hand_over()
        if not self._registered:
            self._register()
        self._settler.settle_others()
        token_taken, self._token_taken = self._token_taken, False
        limit = self._limit(self._settler.number_done)
        is_empty = bool(self._settler.number_done or limit or self._claim_in_doubt) and self._turn(limit)
        if token_taken and not limit:  # the slots filled up meanwhile: the token is for somebody else
            self._coordinator.wake(self.lanes)
        self._listen(self._limit(0) > 0 and not self._full)
        if not self._pool.occupied and (self._jobs_left == 0 or (self._burst and is_empty)):
            self.loop.stop()
        if self._settler.number_done or self._given:
            return 0
        return min(self._pool.next_look_s(), self._coordinator.tokens_reliable_s)

    def _watch(self) -> None:
        """End this process, in order, when it is not whole any more: somebody will start a new one."""
        dead = [thread.name for thread in self._threads if not thread.is_alive()]
        fault = f"the thread {dead[0]} is dead" if dead else self._pool.fault
        if fault and not self.exit_code:
            self.exit_code = 1
            events.send(events.worker_failed, worker_id=self.id, fault=fault)
            self.loop.stop()

    def _limit(self, vacated: int) -> int:
        """Return for how many jobs there is room, once the slots of what is acked in the same round trip are free."""
        room = 0 if self.loop.stopped else min(self._pool.free(vacated), self._jobs_left)
        return max(0, int(room) - (self._given.number if self._given else 0))

    def _turn(self, limit: int) -> bool:
        """Make the one round trip; return whether there was room and nothing to claim."""
        repeat, acks = self._settler.in_doubt, self._settler.next_acks()
        self._claim_in_doubt = True  # until it is answered: it may have given leases that nobody knows of
        begun = self._coordinator.begin_turn(self.id, limit, acks, repeat=repeat)
        try:
            self._hand_over()
        finally:
            turn = begun()
            self._claim_in_doubt, self._full = False, turn.state == "full"
            self._settler.acked(turn.lost)
            if turn.state == "unregistered":
                self._registered = False
                self.loop.wake()
            elif turn.state == "draining":
                self.loop.stop()
            self._given = turn if turn.number else None
        if not self._pool.gathers:  # else they are handed over under the next round trip, which follows at once
            self._hand_over()
        return turn.found_nothing

    def _hand_over(self) -> None:
        """Run what the last round trip gave."""
        if self._given is None:
            return
        turn, self._given = self._given, None  # first: what cannot be read lapses, and must not be met again and again
        first, *second = [turn] if self.loop.stopped else turn.halves()
        try:
            self._begin(first)
        finally:  # whatever became of the first: nobody else knows of it
            for half in second:
                self._begin(half)

    def _begin(self, turn: Turn) -> None:
        for claim, failure in turn.read().buried:
            events.send(events.job_buried, claim=claim, failure=failure)
        if self.loop.stopped:  # the answer to a claim from before the order to stop
            self._settler.add(Outcome(claim=claim, verdict=Verdict.RELEASE, run_s=0) for claim in turn.claims)
            self.loop.wake()
        elif turn.claims:
            self._jobs_left -= len(turn.claims)
            events.send(events.jobs_claimed, claims=turn.claims)
            self._pool.submit(turn.claims)

    def _register(self) -> None:
        self._coordinator.register(self.id, lanes=self.lanes, concurrency=self.concurrency, **_about())
        self._registered = True
        events.send(events.worker_registered, worker_id=self.id, lanes=self.lanes, concurrency=self.concurrency)

    def _listen(self, listening: bool) -> None:
        begins, self._listening = listening and not self._listening, listening
        if begins:  # not before: it would look, see that it is not to listen yet, and wait for seconds
            self._listener.wake()

    def _listen_once(self) -> float:
        """Wait for a token while a slot is free. One taken in vain is put back: another worker may have room."""
        if not self._listening:
            return self._settings.pull_timeout_s
        if self._coordinator.wait(self.lanes, self._settings.pull_timeout_s):
            if self._listening:
                self._token_taken = True
                self.loop.wake()
            else:
                self._coordinator.wake(self.lanes)
        return 0

    def _drain(self) -> None:
        """Let runs end for the grace and settle them; then give back what is left, to the head of its lane."""
        events.send(events.worker_draining, worker_id=self.id, in_flight=self._pool.occupied)
        give_up_at_s = (self._stopped_at_s or monotonic_s()) + self._settings.shutdown_grace_s
        failures = 0
        while self._pool.occupied and not self._forced and (left_s := give_up_at_s - monotonic_s()) > 0:
            try:
                wait_s, failures = self.run_once(), 0
            except Exception as error:  # as in a loop: no fault is a reason to leave without giving back what is held
                failures += 1
                wait_s = backoff_s(failures)
                events.send(events.loop_failed, loop=self.loop.name, error=error, wait_s=wait_s)
            self.loop.turned()
            if self._pool.occupied and not self._forced:  # what ended the last run wakes nobody any more
                self.loop.wait(min(left_s, wait_s))
        self._leave()

    def _leave(self) -> None:
        """End the children first and give back what they held after: a released job must not still run here."""
        self._settler.add(self._pool.close())
        self._listener.stop()
        self._heartbeat.loop.stop()
        # Beside this thread: a server that does not answer must not hold up the end of the process.
        giving_back = threading.Thread(target=self._give_back, name="giving-back", daemon=True)
        giving_back.start()
        giving_back.join(_LEAVE_WITHIN_S)
        events.send(events.worker_left, worker_id=self.id)

    def _give_back(self) -> None:
        try:
            self._hand_over()
            self._settler.settle_others()
            if self._settler.number_done or self._claim_in_doubt:
                self._turn(0)
                self._hand_over()
                self._settler.settle_others()
            self._coordinator.wake(self.lanes)
            self._coordinator.leave(self.id)
        except PriqueueError as error:  # what could not be given back lapses, and the sweeper takes it over
            events.send(events.loop_failed, loop=self.loop.name, error=error, wait_s=0)
