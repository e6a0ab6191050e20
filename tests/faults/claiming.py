"""Many workers, one after another, in one process: each is told to stop, or dies, a few ms after its start.

Run by tests as a script: ``python -m tests.faults.claiming NUMBER SHARE_THAT_DIES SEED``. It prints how many claims
died with their worker. What dies, dies where it hurts most: when the claims are made, and before it knows of them.
"""

import random
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import django

from priqueue import wiring
from priqueue.coordinator import Coordinator
from priqueue.coordinator.transitions import Turn
from priqueue.worker import Worker

LONGEST_S = 0.01


class Crash(BaseException):
    """The end of a process, as far as one thread can have it."""


class Doomed(Coordinator):
    """A coordinator whose caller dies with the first claims it is given."""

    died_with = 0

    def begin_turn(self, *args: Any, **options: Any) -> Callable[[], Turn]:
        begun = super().begin_turn(*args, **options)
        return lambda: self._die_with(begun())

    def _die_with(self, turn: Turn) -> Turn:
        if turn.number:
            self.died_with = turn.number
            raise Crash
        return turn


def run_one(dies: bool, after_s: float) -> int:
    """Start a worker and stop it; return how many claims died with it."""
    usual = wiring.coordinator()
    coordinator = (Doomed if dies else Coordinator)(usual.client, usual.settings)
    worker = Worker(coordinator, concurrency=2, processes=0)
    thread = threading.Thread(target=run, args=(worker,))
    thread.start()
    threading.Event().wait(after_s)
    worker.stop()
    thread.join()
    for loop in (worker._heartbeat.loop, worker._listener):
        loop.stop()
    return getattr(coordinator, "died_with", 0)


def run(worker: Worker) -> None:
    with suppress(Crash):
        worker.run()


def main(number: int, share_that_dies: float, seed: int) -> None:
    """Run them all."""
    django.setup()
    chance = random.Random(seed)
    died_with = [run_one(chance.random() < share_that_dies, chance.uniform(0, LONGEST_S)) for _ in range(number)]
    sys.stdout.write(str(sum(died_with)))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
