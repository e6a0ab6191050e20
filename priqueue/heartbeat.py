"""Heartbeat: renews a worker's presence and every lease it holds, and learns which of them are lost.

It beats for leases by their tokens, not for the worker as a whole: a claim whose reply was lost is not kept alive
by a worker that does not know of it.
"""

from collections.abc import Callable, Sequence

from priqueue import events
from priqueue.coordinator import Coordinator
from priqueue.exceptions import WorkerNotRegistered
from priqueue.jobs import Claim
from priqueue.loops import Loop


class Heartbeat:
    """Beats for one worker, in a thread of its own."""

    def __init__(
        self,
        coordinator: Coordinator,
        worker_id: str,
        *,
        held: Callable[[], Sequence[Claim]],
        register: Callable[[], None],
        lost: Callable[[Claim], bool],
    ) -> None:
        self._coordinator = coordinator
        self._worker_id = worker_id
        self._held = held
        self._register = register
        self._lost = lost
        # After an outage the sweeper waits for the length of one lease: this has to beat before that.
        self.loop = Loop("heartbeat", self.run_once, longest_backoff_s=coordinator.settings.heartbeat_s)

    def run_once(self) -> float:
        """Beat once; return the seconds until the next beat."""
        claims = self._held()
        for job_id in self._beat(claims):
            claim = next(claim for claim in claims if claim.job.id == job_id)
            if self._lost(claim):
                events.send(events.lease_lost, claim=claim)
        return self._coordinator.settings.heartbeat_s

    def _beat(self, claims: Sequence[Claim]) -> list[str]:
        try:
            return self._coordinator.beat(self._worker_id, claims)
        except WorkerNotRegistered:  # the store was emptied, or this process slept for ten minutes
            if self.loop.stopped:  # or the worker has left while the beat was under way: it must not come back
                return []
            self._register()
            return self._coordinator.beat(self._worker_id, claims)
