"""Settler: what of a worker's outcomes is not settled yet, and in which order it goes to the coordinator.

Acks travel with the next claim, in one round trip; everything else goes by itself. What was sent and got no answer is
sent again, as a repeat, before anything else: it may have been done, and is to have its effect once.
"""

from collections.abc import Callable, Iterable, Sequence

from priqueue import events
from priqueue.coordinator import Coordinator
from priqueue.exceptions import LeaseLost, PriqueueError, QueueUnavailable
from priqueue.executor import Outcome, Verdict
from priqueue.jobs import Claim

GIVEN_BACK = "the worker shut down, or ended the process it ran in, before it was done"


class Settler:
    """Settles outcomes, each exactly once; ``settled`` is called with each claim that needs its slot no more."""

    def __init__(self, coordinator: Coordinator, settled: Callable[[Claim], None]) -> None:
        self._coordinator = coordinator
        self._settled = settled
        self._done: list[Outcome] = []
        self._others: list[Outcome] = []
        self._acks_in_doubt = 0
        self._other_in_doubt = False

    @property
    def number_done(self) -> int:
        """How many acks wait to be sent."""
        return len(self._done)

    @property
    def only_acks(self) -> bool:
        """Whether there is something to settle, and all of it travels with the next claim."""
        return bool(self._done) and not self._others

    @property
    def in_doubt(self) -> bool:
        """Whether the last acks were sent and got no answer."""
        return self._acks_in_doubt > 0

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Take outcomes in."""
        # The last first: what is given back goes to the head of its lane one by one, and has to keep its order.
        for outcome in reversed([*outcomes]):
            (self._done if outcome.verdict is Verdict.ACK else self._others).append(outcome)

    def next_acks(self) -> list[Claim]:
        """Return the claims that the next round trip is to ack; while in doubt, the same as the last."""
        if not self._acks_in_doubt:
            self._acks_in_doubt = len(self._done)
        return [_timed(outcome) for outcome in self._done[: self._acks_in_doubt]]

    def acked(self, lost: Sequence[Claim]) -> None:
        """Note the answer to the last acks: all done, but for those whose lease was lost."""
        asked, self._done = self._done[: self._acks_in_doubt], self._done[self._acks_in_doubt :]
        self._acks_in_doubt = 0
        for outcome in asked:
            self._settled(outcome.claim)
        for claim in lost:
            events.send(events.lease_lost, claim=claim)
        if done := [outcome.claim for outcome in asked if outcome.claim not in lost]:
            events.send(events.jobs_acked, claims=done)

    def settle_others(self) -> None:
        """Settle everything but acks. Raises QueueUnavailable; then call it again."""
        while self._others:
            outcome, repeat = self._others[0], self._other_in_doubt
            self._other_in_doubt = True
            try:
                self._send(outcome, repeat)
            except LeaseLost:
                self._over(outcome, lost=True)
            except QueueUnavailable:
                raise
            except PriqueueError as error:  # refused for good: the lease lapses, and the sweeper takes the job over
                events.send(events.loop_failed, loop="settler", error=error, wait_s=0)
                self._settled(outcome.claim)
            else:
                self._over(outcome)
            self._other_in_doubt = False
            del self._others[0]

    def _send(self, outcome: Outcome, repeat: bool) -> None:
        coordinator, claim, failure = self._coordinator, _timed(outcome), outcome.failure
        if failure is None:
            coordinator.release(claim, reason=GIVEN_BACK, repeat=repeat)
        elif outcome.verdict is Verdict.RETRY:
            coordinator.retry(claim, failure, delay_s=outcome.delay_s, repeat=repeat)
        elif outcome.verdict is Verdict.CRASH:
            coordinator.crash(claim, failure, deaths=outcome.crashes, repeat=repeat)
        else:
            coordinator.bury(claim, failure, repeat=repeat)

    def _over(self, outcome: Outcome, lost: bool = False) -> None:
        self._settled(outcome.claim)
        if lost:
            events.send(events.lease_lost, claim=outcome.claim)
        else:
            _tell(outcome)


def _timed(outcome: Outcome) -> Claim:
    outcome.claim.run_ms = round(outcome.run_s * 1000)
    return outcome.claim


def _tell(outcome: Outcome) -> None:
    claim, failure = _timed(outcome), outcome.failure
    if outcome.verdict is Verdict.BURY:
        events.send(events.job_buried, claim=claim, failure=failure)
    elif outcome.verdict is Verdict.CRASH:
        events.send(events.job_crashed, claim=claim, failure=failure, deaths=outcome.crashes)
    elif outcome.verdict is Verdict.RELEASE:
        events.send(events.job_released, claim=claim, reason=GIVEN_BACK)
    else:
        delay_s, note = outcome.delay_s, outcome.note
        events.send(events.job_retried, claim=claim, failure=failure, delay_s=delay_s, note=note)
