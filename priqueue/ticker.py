"""Ticker: moves delayed jobs that are due to their lanes, and ends pauses whose time is over.

Any number may run: a move is one script. It waits by this machine's clock until the next due time, and a listener
beside it hears of earlier ones, since the server's own time-outs are up to a tenth of a second late.
"""

from priqueue import events
from priqueue.clock import monotonic_s
from priqueue.coordinator import Coordinator, Inspector
from priqueue.loops import Loop

BATCH = 200  # a few milliseconds of the server's time, in which all others wait
_A_MILLISECOND_S = 0.001


class Ticker:
    """Promotes what is due."""

    def __init__(self, coordinator: Coordinator, inspector: Inspector) -> None:
        self._coordinator = coordinator
        self._inspector = inspector
        self._settings = coordinator.settings
        self.loop = Loop("ticker", self.run_once)
        self._listener = Loop("ticker-listener", self._listen_once)

    def run(self) -> None:
        """Run until stopped."""
        self.loop.needs(self._listener.start())
        try:
            self.loop.run()
        finally:
            self._listener.stop()

    def stop(self) -> None:
        """End the loop. Safe in a signal handler."""
        self.loop.stop()

    def run_once(self) -> float:
        """Promote one batch; return the seconds until there may be more to do."""
        promoted = self._coordinator.promote(BATCH)
        if promoted:
            events.send(events.jobs_promoted, number=promoted)
        if promoted == BATCH:
            return 0
        asked_at_s = monotonic_s()
        due_s, over = self._inspector.agenda()
        for lane in over:
            self._resume(lane)
        if due_s is None:
            return self._settings.tick_s
        if due_s <= 0:  # and not promoted: in a lane that cannot be read, or due since
            return _A_MILLISECOND_S
        # From when it was asked: the order to promote will be on its way to the server's clock for as long as this was.
        left_s = due_s - (monotonic_s() - asked_at_s)
        return min(max(left_s, 0), self._settings.tick_s)

    def _resume(self, lane: str) -> None:
        if self._coordinator.resume(lane, caller="ticker", reason="its time is over", if_over=True):
            events.send(events.lane_resumed, lane=lane, caller="ticker", reason="its time is over")

    def _listen_once(self) -> float:
        if self._coordinator.wait_for_due(self._settings.pull_timeout_s):
            self.loop.wake()
        return 0
