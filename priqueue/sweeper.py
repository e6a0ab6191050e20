"""Sweeper: finds leases that lapsed, because two beats were missed, and gives their jobs back.

1. reclaim: one script makes each job ready again or, at its last crash, buries it
2. forget workers that have been silent for ten minutes
3. sample the gauges for the charts
4. trim the holes that requeue and purge leave in the dead list
5. report what the rate limits refused in minutes that are over

Any number may run. The grace after an outage is in the script, so that a frozen server cannot be fooled.
"""

import random

from priqueue import events
from priqueue.coordinator import Coordinator, Inspector
from priqueue.loops import Loop

BATCH = 100


class Sweeper:
    """Reclaims lapsed leases."""

    def __init__(self, coordinator: Coordinator, inspector: Inspector) -> None:
        self._coordinator = coordinator
        self._inspector = inspector
        self.loop = Loop("sweeper", self.run_once)

    def run(self) -> None:
        """Run until stopped."""
        self.loop.run()

    def stop(self) -> None:
        """End the loop. Safe in a signal handler."""
        self.loop.stop()

    def run_once(self) -> float:
        """Sweep one batch; return the seconds until the next."""
        reclaimed = self._coordinator.reclaim(BATCH)
        if reclaimed:
            events.send(events.jobs_reclaimed, number=reclaimed)
        if reclaimed == BATCH:
            return 0
        silent = self._inspector.silent_workers()
        if silent:
            self._coordinator.forget(silent)
        self._coordinator.sample(self._inspector.gauges())
        self._coordinator.trim()
        self._coordinator.report()
        return self._coordinator.settings.sweep_s * random.uniform(0.9, 1)  # noqa: S311 (spreads the sweepers)
