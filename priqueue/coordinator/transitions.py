"""Coordinator: the only code that changes the queue. One method is one transition is one script.

                                  ┌──────────── retry ────────────┐
    enqueue ──► DELAYED ──promote──► READY ──claim──► IN FLIGHT ──┴─ ack ──► gone
                                     │  ▲               │   └─ bury ──► DEAD ── purge ──► gone
                           cancel ◄──┘  └ release, reclaim ┘             │
                                        └──────────── requeue ───────────┘

Every method may raise QueueUnavailable: no answer before the deadline, so what was asked may have been done. All of
them can simply be called again; those that settle a lease take ``repeat=True`` then.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from redis import Redis
from uuid_utils import uuid4

from priqueue.callers import check_word
from priqueue.clock import monotonic_s
from priqueue.conf import Settings
from priqueue.coordinator import calls
from priqueue.coordinator.connection import derive
from priqueue.coordinator.intake import Intake
from priqueue.coordinator.keys import FORGET_AFTER_MS, Keys
from priqueue.coordinator.operations import Operations
from priqueue.coordinator.owed import Owed
from priqueue.coordinator.scripts import Call, Joined, Scripts
from priqueue.coordinator.waiting import Waiting
from priqueue.exceptions import (
    InvalidCaller,
    InvalidLane,
    LeaseLost,
    PriqueueError,
    WorkerDraining,
    WorkerNotRegistered,
)
from priqueue.jobs import Claim, Failure, NewerEnvelope
from priqueue.signing import BadSignature

_NEWER_ENVELOPE_S = 30
_FEW = 4  # claims that are not worth handing over in two pieces


@dataclass(slots=True)
class Turn:
    """What one round trip of a worker gave."""

    #: claims that were to be acked, and whose lease is lost
    lost: Sequence[Claim]
    #: how many were claimed
    number: int
    #: "ok", or why there were no claims: "full", "draining" (asked to leave), "unregistered" (has to register)
    state: str
    _rows: Sequence[Any]
    _read: Callable[[Sequence[Any]], tuple[list[Claim], list[tuple[Claim, Failure]]]]
    #: what was claimed, once it is read
    claims: list[Claim] = field(default_factory=list)
    #: what was claimed and buried at once: it could not be trusted, or read
    buried: list[tuple[Claim, Failure]] = field(default_factory=list)

    @property
    def found_nothing(self) -> bool:
        """Whether there was room and nothing ready; what is set aside, as unreadable, was ready."""
        return self.state == "ok" and not self.number

    def read(self) -> Self:
        """Decode what was claimed, once. What cannot be trusted or read is set aside."""
        self.claims, self.buried = self._read(self._rows)
        return self

    def halves(self) -> list["Turn"]:
        """Return it as two turns, so that what the first gave may run while the second is read.

        It stays one where it gave few, or suspects: to find a place for these one has to know of all.
        """
        has_suspects = any(row[-1] for row in self._rows)
        size = self.number if has_suspects else max(_FEW, -(-self.number // 2))
        parts = [self._rows[at : at + size] for at in range(0, self.number, size)]
        return [Turn((), len(rows), self.state, rows, self._read) for rows in parts]


class Coordinator(Intake, Operations):
    """The queue in one Redis: every change of state goes through here. How jobs come in stands in ``intake``.

    ``clock`` returns ms and stands in for the server's own time; production never passes one.
    """

    def __init__(self, client: "Redis", settings: Settings, clock: Callable[[], int] | None = None) -> None:
        self.settings = settings
        self.keys = Keys(settings.namespace)
        self.clock = clock
        # Clients of our own: one that is handed to us may repeat calls behind our back, or give up on long waits.
        self.client = derive(client, socket_timeout_s=settings.socket_timeout_s)
        self._waiting = Waiting(client, settings)
        self._scripts = Scripts(
            self.client, self.keys, audit=settings.audit, deadline_s=2 * settings.socket_timeout_s, now_ms=clock
        )
        self._unanswered: dict[str, str] = {}
        self._owed = Owed(self.count)
        self._pools: dict[str, Sequence[str]] = {}

    def close(self) -> None:
        """Close the connections."""
        self.client.close()
        self._waiting.close()

    # --- a job's life ---

    def promote(self, limit: int = 100, *, caller: str = "ticker") -> int:
        """Move delayed jobs that are due to their lanes, ``limit`` at most; return how many."""
        return int(self._one(Call("promote", (limit, caller), self.settings.lane_names)))

    def pull(self, worker_id: str, limit: int = 1, timeout_s: float = 0) -> list[Claim]:
        """Take up to ``limit`` ready jobs under leases; when there are none, wait up to ``timeout_s`` for some.

        The jobs come in the picker's order. A worker without a free slot gets none, at once.
        Raises WorkerNotRegistered and WorkerDraining.
        """
        give_up_at_s = monotonic_s() + timeout_s
        while True:
            turn = self.turn(worker_id, limit)
            if turn.state == "unregistered":
                raise WorkerNotRegistered(f"worker {worker_id} has to register")
            if turn.state == "draining":
                raise WorkerDraining(f"worker {worker_id} was asked to drain")
            left_s = give_up_at_s - monotonic_s()
            if turn.claims or turn.state == "full" or left_s <= 0:
                return turn.claims
            self.wait(self._pool_of(worker_id), left_s)

    def _pool_of(self, worker_id: str) -> Sequence[str]:
        """Return the lanes that a worker pulls, also where another process registered it."""
        if worker_id not in self._pools:
            record = self.client.hget(self.keys.workers, worker_id)
            self._pools[worker_id] = json.loads(record)["lanes"] if record else self.settings.lane_names
        return self._pools[worker_id]

    def turn(self, worker_id: str, limit: int, done: Sequence[Claim] = (), *, repeat: bool = False) -> Turn:
        """Ack what is done and claim up to ``limit`` jobs, in one round trip.

        A claim that got no answer is asked for again under its own id, so that its leases are not left without owner.
        """
        return self.begin_turn(worker_id, limit, done, repeat=repeat)().read()

    def begin_turn(
        self, worker_id: str, limit: int, done: Sequence[Claim] = (), *, repeat: bool = False
    ) -> Callable[[], Turn]:
        """Send a turn; what is returned waits for its answer, and is to be called once. Its claims are still to read.

        Meanwhile the caller can do what it has to do anyway.
        """
        claim_id = self._unanswered.setdefault(worker_id, str(uuid4()))
        asked = calls.claim(worker_id, claim_id, limit, self.settings)
        begun = self._scripts.begin(Joined((calls.ack(done), asked)) if done else asked, repeat=repeat)
        return lambda: self._end_turn(worker_id, claim_id, done, *begun())

    def _end_turn(self, worker_id: str, claim_id: str, done: Sequence[Claim], answer: Sequence[Any]) -> Turn:
        self._unanswered.pop(worker_id, None)
        codes, (state, *rows) = answer if done else ((), answer)
        return Turn(
            lost=[claim for claim, code in zip(done, codes, strict=True) if code < 0],
            number=len(rows),
            state=state,
            _rows=rows,
            _read=partial(self._read_claims, worker_id, claim_id),
        )

    def _read_claims(
        self, worker_id: str, token: str, rows: Iterable[Sequence[Any]]
    ) -> tuple[list[Claim], list[tuple[Claim, Failure]]]:
        """Return the claims that may run. What cannot be trusted or read is set aside and never decoded further."""
        claims, buried = [], []
        for row in rows:
            try:
                claims.append(calls.read_claim(row, worker_id, token, self.settings))
            except (BadSignature, ValueError, LookupError, TypeError, InvalidCaller) as error:
                # If this fails, the lease lapses and the job comes by again: no reason to lose the good claims.
                with suppress(PriqueueError):
                    buried += self._set_aside(calls.unreadable(row, worker_id, token), error)
        return claims, buried

    def _set_aside(self, claim: Claim, error: Exception) -> list[tuple[Claim, Failure]]:
        if isinstance(error, NewerEnvelope):
            self.release(claim, reason=str(error), delay_s=_NEWER_ENVELOPE_S)
            return []
        name = "BadSignature" if isinstance(error, BadSignature) else "BadEnvelope"
        failure = Failure(error=name, message=str(error))
        self.bury(claim, failure)
        return [(claim, failure)]

    def wait(self, lanes: Iterable[str], timeout_s: float) -> bool:
        """Wait until one of the lanes may hold work, ``timeout_s`` at most; return whether a token was taken.

        Who takes a token and does not claim has to ``wake`` the lanes again.
        """
        return self._waiting.pop([self.keys.wake(lane) for lane in lanes], timeout_s)

    def wait_for_due(self, timeout_s: float) -> bool:
        """Wait until an earlier due time than the earliest may have come in, ``timeout_s`` at most."""
        return self._waiting.pop([self.keys.wake_ticker], timeout_s)

    @property
    def tokens_reliable_s(self) -> float:
        """How long one may wait for a token without asking for work: PULL_TIMEOUT_S; 1 s for a while after trouble."""
        return self._waiting.reliable_s(self._scripts.troubled_at_s)

    def wake(self, lanes: Iterable[str]) -> None:
        """Put back the tokens of those lanes that hold work."""
        self._one(Call("wake", (), tuple(lanes)))

    def ack(self, claim: Claim, *, repeat: bool = False) -> None:
        """Settle: it worked, the job is gone. Raises LeaseLost."""
        self._settle([claim], self._one(calls.ack([claim]), repeat))

    def retry(self, claim: Claim, failure: Failure, *, delay_s: float, repeat: bool = False) -> None:
        """Settle: it failed and shall run once more, ``delay_s`` from now. Raises LeaseLost."""
        self._settle([claim], [self._one(calls.retry(claim, failure, round(delay_s * 1000)), repeat)])

    def bury(self, claim: Claim, failure: Failure, *, repeat: bool = False) -> None:
        """Settle: it failed for good, to the dead letters. Raises LeaseLost."""
        self._settle([claim], [self._one(calls.bury(claim, failure), repeat)])

    def crash(self, claim: Claim, failure: Failure, *, deaths: int = 1, repeat: bool = False) -> None:
        """Settle: the process that ran it alone died: ready again or, at ``max_crashes``, dead. Raises LeaseLost."""
        call = calls.crash(claim, failure, deaths, self.settings.max_crashes)
        self._settle([claim], [self._one(call, repeat)])

    def release(self, *claims: Claim, reason: str = "", delay_s: float = 0, repeat: bool = False) -> None:
        """Settle: given back unrun, to the head of its lane; no attempt is counted. Raises LeaseLost."""
        self._settle(claims, self._one(calls.release(claims, reason, round(delay_s * 1000)), repeat))

    def _settle(self, claims: Sequence[Claim], codes: Sequence[int]) -> None:
        lost = [claim.job.id for claim, code in zip(claims, codes, strict=True) if code < 0]
        if lost:
            raise LeaseLost(f"the lease of job {', '.join(lost)} is no longer held")

    # --- workers ---

    def register(self, worker_id: str, *, lanes: Iterable[str], concurrency: int, **about: Any) -> None:
        """Make a worker known, with the lanes it pulls and how many leases it may hold. Raises InvalidLane."""
        wanted = set(lanes)
        unknown = wanted - set(self.settings.lane_names)
        if unknown or not wanted:
            raise InvalidLane(f"lanes {sorted(unknown)}: choose from {', '.join(self.settings.lane_names)}")
        check_word("worker_id", worker_id)
        ordered = [name for name in self.settings.lane_names if name in wanted]
        self._pools[worker_id] = ordered
        record = json.dumps({"lanes": ordered, "concurrency": concurrency, **about})
        self._once("register", worker_id, record)

    def beat(self, worker_id: str, claims: Iterable[Claim]) -> list[str]:
        """Say that the worker lives and renew its leases; return the ids of jobs whose lease is lost.

        Raises WorkerNotRegistered.
        """
        lease_ms = round(self.settings.lease_s * 1000)
        answer = self._one(Call("beat", (worker_id, lease_ms, *calls.leases(claims))))
        if answer[0] == "unregistered":
            raise WorkerNotRegistered(f"worker {worker_id} has to register")
        return list(answer[1:])

    def leave(self, worker_id: str) -> bool:
        """Forget a worker that says good-bye; return False while it still holds leases."""
        return bool(self._one(Call("leave", (worker_id,))))

    def forget(self, worker_ids: Sequence[str], *, caller: str = "sweeper") -> int:
        """Forget those of the workers that have been silent for ten minutes and hold nothing; return how many."""
        return int(self._one(Call("forget", (FORGET_AFTER_MS, caller, *worker_ids))))

    def reclaim(self, limit: int = 100, *, caller: str = "sweeper") -> int:
        """Take over lapsed leases, ``limit`` at most: each job is ready again, or dead at ``max_crashes``.

        Return how many. None, for the length of a lease, after the queue or all sweepers were away for longer than one.
        """
        lease_ms = round(self.settings.lease_s * 1000)
        return int(self._one(Call("reclaim", (limit, lease_ms, self.settings.max_crashes, caller)))[0])

    def trim(self, limit: int = 1000) -> int:
        """Take what stands for no letter out of the dead list, looking at ``limit`` entries; return how many."""
        return int(self._one(Call("trim", (limit,))))

    def owe(self, event: str, lane: str, *, at_once: bool = False) -> None:
        """Count what came of the queue being away, or full: it is written after the next jobs are taken in."""
        self._owed.add(event, lane)
        if at_once:
            self._owed.pay()

    def count(self, numbers: Mapping[tuple[str, str], int]) -> None:
        """Add to the totals: (event, lane) → number."""
        self._once("count", *(word for (event, lane), number in numbers.items() for word in (event, lane, number)))

    def sample(self, gauges: Mapping[str, int]) -> None:
        """Put this moment's gauges into the series."""
        self._one(Call("sample", [word for pair in gauges.items() for word in pair]))
