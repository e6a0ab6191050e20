"""Pool: a worker's slots. Each runs one claim at a time, in a thread, and keeps it until it is settled.

The threads are daemons: a handler that never returns must not keep a drained worker from leaving.
"""

import queue
import threading
from collections.abc import Callable

from priqueue.executor import Outcome
from priqueue.jobs import Claim


class Pool:
    """Runs claims in threads and hands back their outcomes."""

    def __init__(self, size: int, execute: Callable[[Claim], Outcome], finished: Callable[[], None]) -> None:
        self._execute = execute
        self._finished = finished
        self._claims: queue.SimpleQueue[Claim] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        # By token too: a job whose lease was lost may come back to this worker while its first run goes on.
        self._occupied: dict[tuple[str, str], Claim] = {}
        self._lost: set[tuple[str, str]] = set()
        self.threads = [
            threading.Thread(target=self._work, name=f"slot-{number}", daemon=True) for number in range(1, size + 1)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self.threads:
            thread.start()

    @property
    def occupied(self) -> int:
        """How many slots hold a claim."""
        return len(self._occupied)

    @property
    def free(self) -> int:
        """How many slots hold none."""
        return len(self.threads) - len(self._occupied)

    def submit(self, claim: Claim) -> None:
        """Run a claim in a free slot."""
        self._occupied[claim.job.id, claim.token] = claim
        self._claims.put(claim)

    def take(self) -> list[Outcome]:
        """Return the outcomes that came in since the last call. Their slots stay occupied until ``vacate``."""
        return [self._outcomes.get_nowait() for _ in range(self._outcomes.qsize())]

    def vacate(self, claim: Claim) -> None:
        """Free the slot of a claim that is settled, or lost for good."""
        self._occupied.pop((claim.job.id, claim.token), None)
        self._lost.discard((claim.job.id, claim.token))

    def lose(self, claim: Claim) -> None:
        """Note that the lease of a claim is lost; its slot stays occupied while it runs."""
        self._lost.add((claim.job.id, claim.token))

    def is_lost(self, claim: Claim) -> bool:
        """Return whether the lease of a claim is lost."""
        return (claim.job.id, claim.token) in self._lost

    def leased(self) -> list[Claim]:
        """Return the claims whose leases this worker holds, as far as it knows."""
        return [claim for key, claim in list(self._occupied.items()) if key not in self._lost]

    def _work(self) -> None:
        while True:
            self._outcomes.put(self._execute(self._claims.get()))
            self._finished()
