"""enqueuejobs: enqueue the jobs of a file."""

import argparse
from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from priqueue import events
from priqueue.coordinator import Coordinator
from priqueue.exceptions import PriqueueError
from priqueue.jobs import Job
from priqueue.management.duties import fit_coordinator
from priqueue.management.jobfiles import Run, batches, opened, verdicts
from priqueue.management.options import whole
from priqueue.management.progress import Progress
from priqueue.management.sessions import one_line, session
from priqueue.management.text import described


class Interrupted(Exception):
    """The work ended at a line, whose batch may be in the queue or not; the lines before it are."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line = line


class Command(BaseCommand):
    """Enqueues what a file describes: everything, or with a fault in any line nothing."""

    help = (
        'Enqueue the jobs of a file, one JSON object a line: {"job": "shop.jobs.note", "payload": {"n": 1},'
        ' "lane": "low", "delay": 30}. payload, lane and delay (seconds) may be missing, lines may be blank.'
        " All lines are checked first, and with a fault in any of them nothing is enqueued. When the queue"
        " fails midway, the line that was reached is named; go on there with --from and --run. With --run,"
        " what did come through is not enqueued twice, unless it has run to its end meanwhile; with --from"
        " alone, up to 100 jobs may be."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("file", help='the file\'s name; "-" is the standard input')
        parser.add_argument("--from", dest="first", type=whole, default=1, help="begin at this line")
        parser.add_argument("--run", type=Run, default=None, help="go on with the run that named this id")

    def handle(self, **options: Any) -> None:
        """Check everything, then enqueue everything."""
        run, name, first = options["run"] or Run(), options["file"], options["first"]
        try:
            with session(), opened(name) as file:
                coordinator = fit_coordinator(self.stderr)
                total = self._checked(verdicts(file, run, first))
                if options["verbosity"]:
                    self.stdout.write(f"enqueuing {total:,} jobs into {described(coordinator.settings)}, run {run.id}")
                lanes = self._enqueue(coordinator, batches(file, run, first), total)
        except OSError as error:
            raise CommandError(f"{name}: {error.strerror or error}") from error
        except Interrupted as stop:
            raise CommandError(f"{stop}; go on with: --from {stop.line} --run {run.id}") from stop
        numbers = ", ".join(f"{lane} {number:,}" for lane, number in lanes.items())
        self.stdout.write(f"enqueued: {numbers or 'nothing'}")

    def _checked(self, found: Iterable[tuple[int, PriqueueError | None]]) -> int:
        """Return the number of jobs; print every fault. Raises CommandError when there is one."""
        total = wrong = 0
        for line, fault in found:
            total += 1
            if fault:
                wrong += 1
                self.stderr.write(f"line {line}: {one_line(fault)}")
        if wrong:
            raise CommandError(f"{wrong:,} of {total:,} lines are wrong; nothing was enqueued")
        return total

    def _enqueue(self, coordinator: Coordinator, found: Iterable[tuple[int, list[Job]]], total: int) -> Counter[str]:
        """Enqueue it all and return the numbers by lane. Raises Interrupted."""
        lanes, line = Counter[str](), 0
        with Progress(self.stderr, total) as progress:
            try:
                for line, jobs in found:  # noqa: B007 (said when it ends here)
                    coordinator.enqueue_many(jobs)
                    lanes.update(job.lane for job in jobs)
                    for job in jobs:
                        events.send(events.job_enqueued, job=job)
                    progress(lanes.total())
            except PriqueueError as error:
                raise Interrupted(line, one_line(error)) from error
            except KeyboardInterrupt as error:
                raise Interrupted(line, "interrupted") from error
        return lanes
