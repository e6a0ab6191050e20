"""Pool: a worker's slots. It places runs in children, watches over their time, and finds out who kills a child.

A run keeps its slot until its outcome is settled. Five things can end it:

- its outcome comes back;
- it is over its time: it is asked to stop and, a second later, its child is ended. Only runs over their time are
  blamed; their neighbours are given back without a mark;
- it is over its time, and its child was so held up that it did not even hear of that: whoever holds it up may be
  another, so that all are suspects;
- its child dies, and it was alone there: the crash is its own;
- its child dies, and it had neighbours: all are suspects. They keep their leases and run again, each alone in a child,
  so that the guilty is found exactly and nobody else is ever marked.

All of this happens in the thread of the claim loop, in ``take``; other threads only leave messages.
"""

import queue
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Any

from priqueue.children import Place
from priqueue.clock import monotonic_s
from priqueue.conf import Settings
from priqueue.crew import ALONE_WITHIN_S, Crew
from priqueue.ears import Ears
from priqueue.exceptions import Timeout
from priqueue.executor import Outcome, Verdict, failed
from priqueue.jobs import Claim, Failure
from priqueue.pace import Pace
from priqueue.runner import Key, key_of

_STOP_GRACE_S = 1.0  # between asking a run to stop and ending its child


@dataclass(slots=True, eq=False)
class Run:
    """A claim in a slot."""

    claim: Claim
    place: Place | None = None
    #: when it is asked to stop, or its child ended if it was asked already
    deadline_s: float = inf
    asked: bool = False
    #: whether that reached it
    interrupted: bool = False
    #: deaths of a child that it shared with others: its own only if it turns out guilty
    suspected: int = 0
    waiting_since_s: float = 0
    lost: bool = False
    over: bool = False


class Pool:
    """Runs claims in children, or in this process, and hands back their outcomes."""

    def __init__(self, size: int, processes: int, settings: Settings, ears: Ears, max_jobs: int | None = None) -> None:
        self._size = size
        self._processes = processes
        self._settings = settings
        self._ears = ears
        self._messages: queue.SimpleQueue[tuple[Place, str, Any]] = queue.SimpleQueue()
        self._runs: dict[Key, Run] = {}
        self._suspects: list[Run] = []
        self._outcomes: list[Outcome] = []
        self._ended: set[Place] = set()  # by us, because of a run over its time
        self._looked_at_s = self._submitted_at_s = 0.0
        self._pace = Pace()
        self._closing = False
        self._hung = ""
        threads = ceil(size / (processes or 1))
        self._crew = Crew(processes, threads, settings, lambda *said: self._messages.put(said), ears, max_jobs)

    @property
    def occupied(self) -> int:
        """How many slots hold a claim."""
        return len(self._runs)

    @property
    def gathers(self) -> bool:
        """Whether runs are quick and some are under way: the next round trip will soon be worth it."""
        return self._pace.is_quick and not all(run.over for run in self._runs.values())

    def free(self, vacated: int = 0) -> int:
        """Return how many more claims could begin to run now, in the children there are, once slots are vacated."""
        return max(0, min(self._size - len(self._runs) + vacated, self._crew.room))

    @property
    def fault(self) -> str:
        """Why this worker cannot go on, if so."""
        return self._hung or self._crew.fault

    def leased(self) -> list[Claim]:
        """Return the claims whose leases this worker holds, as far as it knows. For any thread."""
        return [run.claim for run in list(self._runs.values()) if not run.lost]

    def lose(self, claim: Claim) -> bool:
        """Note that the lease of a claim is lost; return False when its run is over anyway. For any thread.

        The slot stays occupied while it runs. What is over may have been settled while the beat was under way.
        """
        run = self._runs.get(key_of(claim))
        if run is None or run.over:
            return False
        run.lost = True
        if run.place is not None:
            run.place.lose(key_of(claim))
        return True

    def submit(self, claims: Sequence[Claim]) -> None:
        """Run claims, each in a free slot. One that is suspected of a crash runs alone."""
        for claim in claims:
            run = self._runs[key_of(claim)] = Run(claim)
            place = None if claim.suspect and self._processes else self._crew.roomiest()
            if place is None:
                self._suspect(run)
            else:
                self._place(run, place)
        self._place_suspects()
        self._crew.send()
        self._submitted_at_s = monotonic_s()

    def take(self, *, expecting: bool = False) -> list[Outcome]:
        """Return the outcomes that came in since the last call. Their slots stay occupied until ``vacate``.

        Of quick runs it waits for some more; ``expecting`` to submit claims, leaves some, and the room, as they are.
        """
        self._hear()
        while not expecting and (rest_s := self._rest_s()) > 0:
            self._ears.wait(rest_s)
            self._hear()
        self._watch_the_time()
        if not expecting:
            self._place_suspects()
        self._crew.send()
        if not self._closing:
            self._crew.keep_up([run.waiting_since_s for run in self._suspects], dismissing=not expecting)
        if self._rest_s() > 0:
            return []
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def vacate(self, claim: Claim) -> None:
        """Free the slot of a claim that is settled, or lost for good."""
        self._runs.pop(key_of(claim), None)

    def next_look_s(self) -> float:
        """Return in how many seconds ``take`` has something to do even if nothing comes in."""
        now_s = monotonic_s()
        times_s = [self._crew.next_start_s, *(run.deadline_s for run in self._runs.values())]
        times_s += [run.waiting_since_s + ALONE_WITHIN_S for run in self._suspects]
        times_s += [since_s + ALONE_WITHIN_S for since_s in self._crew.alone.values()]
        # Not "later than now": what became due since ``take`` looked is still to be done.
        next_s = min((max(0, time_s - now_s) for time_s in times_s if time_s > self._looked_at_s), default=inf)
        return 0 if self._outcomes else next_s

    def close(self) -> list[Outcome]:
        """End all children and return the last outcomes; what did not finish is to be released."""
        self._closing = True
        for child in list(self._crew.members):
            child.end()
        return [*self.take(), *(_released(run) for run in self._runs.values() if not run.over)]

    def _hear(self) -> None:
        self._looked_at_s = monotonic_s()
        self._ears.listen()
        while not self._messages.empty():
            self._heed(*self._messages.get_nowait())

    def _rest_s(self) -> float:
        return self._pace.rest_s(len(self._outcomes), self._submitted_at_s, self._looked_at_s) if self.gathers else 0

    def _heed(self, place: Place, what: str, value: Any) -> None:
        if what == "ready":
            self._crew.welcome(place)
        elif what == "gone":
            self._bury_child(place)
        elif what == "interrupted":
            if value in self._runs:
                self._runs[value].interrupted = True
        else:
            self._crew.alone.pop(place, None)
            key = key_of(value.claim)
            place.runs.pop(key, None)
            if key in self._runs:  # one that was given up and settled may come to an end all the same
                self._end(self._runs[key], value)

    def _end(self, run: Run, outcome: Outcome) -> None:
        if not run.over:  # a run that was given up may still come to an end by itself
            run.over, run.deadline_s = True, inf
            self._outcomes.append(outcome)
            self._pace.note(outcome.run_s)

    def _place(self, run: Run, place: Place) -> None:
        run.place, run.asked, run.interrupted = place, False, False
        run.deadline_s = monotonic_s() + run.claim.job.timeout
        place.submit(run.claim)

    def _suspect(self, run: Run) -> None:
        run.place, run.deadline_s = None, inf
        run.waiting_since_s = -inf if run.claim.suspect else monotonic_s()  # for what kills, one more starts at once
        self._suspects.append(run)

    def _place_suspects(self) -> None:
        for run in self._suspects[:]:
            place = self._crew.empty(spare=run.claim.suspect and len(self._runs) > len(self._suspects))
            if place is None:
                continue
            self._suspects.remove(run)
            if run.lost:  # it waited for too long: what it did now would count for nothing
                self._end(run, _released(run))
            else:
                self._crew.alone[place] = run.waiting_since_s
                self._place(run, place)

    def _watch_the_time(self) -> None:
        now_s = monotonic_s()
        for key, run in list(self._runs.items()):
            if run.deadline_s > now_s or run.place is None:
                continue
            if not run.asked:
                run.asked, run.deadline_s = True, now_s + _STOP_GRACE_S
                run.place.interrupt(key)
            else:
                run.deadline_s = inf
                self._end_by_force(run, run.place)

    def _end_by_force(self, run: Run, place: Place) -> None:
        if self._processes:
            self._ended.add(place)
            place.kill()
        else:
            self._hung = f"job {run.claim.job.id} ({run.claim.job.name}) does not stop after its timeout"
            self._end(run, _timed_out(run, self._settings))

    def _bury_child(self, child: Place) -> None:
        self._crew.remove(child)
        ended_by_us = child in self._ended
        self._ended.discard(child)
        # When all end, ``close`` releases what did not finish.
        runs = [] if self._closing else [self._runs[key] for key in child.runs]
        alone, deaf = len(runs) == 1, any(run.asked and not run.interrupted for run in runs)
        for run in runs:
            if ended_by_us and run.asked and (run.interrupted or alone):
                # All that are over their time: one by one they would run again and again.
                self._end(run, _timed_out(run, self._settings))
            elif ended_by_us and not deaf:
                self._end(run, _released(run))
            elif alone and not ended_by_us:
                self._end(run, _crashed(run, child.cause_of_death()))
            else:
                run.suspected += not ended_by_us
                self._suspect(run)


def _timed_out(run: Run, settings: Settings) -> Outcome:
    timeout = Timeout(f"the run took longer than {run.claim.job.timeout} s and did not stop when it was asked to")
    return failed(run.claim, timeout, settings, run.claim.job.timeout)


def _crashed(run: Run, cause: str) -> Outcome:
    failure = Failure(error="WorkerLost", message=f"the process that ran it died: {cause}")
    return Outcome(claim=run.claim, verdict=Verdict.CRASH, run_s=0, failure=failure, crashes=1 + run.suspected)


def _released(run: Run) -> Outcome:
    return Outcome(claim=run.claim, verdict=Verdict.RELEASE, run_s=0)
