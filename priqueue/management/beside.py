"""Beside: duties that run in threads of one process beside a main one."""

from collections.abc import Sequence

from priqueue.management.duties import LoopedDuty

_LAST_TURN_S = 5


class Together:
    """A duty in this thread, others beside it. The process ends should a thread of theirs die."""

    def __init__(self, main: LoopedDuty, others: Sequence[LoopedDuty]) -> None:
        self._main = main
        self._others = others
        self.loop = main.loop

    def run(self) -> None:
        """Run all until stopped. One that hangs in its last turn, as on a frozen database, is left behind."""
        threads = [other.loop.start() for other in self._others]
        for thread in threads:
            self.loop.needs(thread)
        self._main.run()
        for thread in threads:
            thread.join(_LAST_TURN_S)

    def stop(self) -> None:
        """End all. Safe in a signal handler."""
        for duty in (self._main, *self._others):
            duty.stop()
