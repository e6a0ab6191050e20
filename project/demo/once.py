"""``demo --once``: wait for the workers, enqueue 300 jobs, wait for the end of each, print the accounts."""

from collections.abc import Callable

import priqueue
from priqueue import clock
from project.demo import load, services
from project.demo.accounting import Accounts
from project.demo.interruption import Interruption
from project.demo.supervisor import Supervisor
from project.demo.table import Screen
from project.shop.models import Run

WITHIN_S = 60.0
LOOK_EVERY_S = 0.1
STARTED_WITHIN_S = 10.0


class NotAccounted(Exception):
    """A job has not met its end, or another one than planned."""


def run(supervisor: Supervisor, interruption: Interruption, screen: Screen) -> None:
    """Run the jobs of the file to their ends. Raises NotAccounted if one is missing, late or wrong."""
    deadline_s = clock.monotonic_s() + WITHIN_S

    def wait(until: Callable[[], bool]) -> bool:
        while not (reached := until()) and clock.monotonic_s() < deadline_s:
            for message in supervisor.tend():
                screen.message(message)
            if interruption.wait(LOOK_EVERY_S):
                raise NotAccounted("stopped before the end")
        return reached

    if not wait(_workers_are_there):
        raise NotAccounted("the workers did not register; see their logs")
    before, started_s = priqueue.stats(), clock.monotonic_s()
    accounts = Accounts(load.enqueue(load.read_lines()), before)
    wait(lambda: accounts.update(priqueue.get) == 0)
    took_s = clock.monotonic_s() - started_s
    _tell(accounts, screen, took_s)


def _workers_are_there() -> bool:
    """Return whether both have registered; one that was lost minutes ago is listed, and does not count."""
    beats_s_ago = [worker.beat_s_ago for worker in priqueue.stats().workers]
    return sum(beat_s_ago < STARTED_WITHIN_S for beat_s_ago in beats_s_ago) >= len(services.WORKERS)


def _tell(accounts: Accounts, screen: Screen, took_s: float) -> None:
    runs = list(Run.objects.filter(job_id__in=accounts.ids))
    for text in accounts.report(priqueue.stats(), runs):
        screen.say(text)
    if faults := accounts.faults(runs):
        raise NotAccounted(f"after {took_s:.1f} s not every job is accounted for: {'; '.join(faults)}")
    screen.say(f"every job is accounted for, after {took_s:.1f} s")
