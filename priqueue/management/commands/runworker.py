"""runworker: claim jobs and run them."""

import argparse
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import autoreload

from priqueue import callers
from priqueue.exceptions import InvalidCaller
from priqueue.management import duties
from priqueue.worker import Worker


def whole(text: str) -> int:
    """Return a whole number of 1 or more."""
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= 1_000_000):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to 1000000")
    return int(text)


def count(text: str) -> int:
    """Return a whole number of 0 or more."""
    return 0 if text == "0" else whole(text)


class Command(BaseCommand):
    """Runs a worker until it is stopped. Exit code 0 after a drain, 1 when it could not start or go on."""

    help = "Claim jobs and run them, until SIGTERM or SIGINT: then let them finish, give back the rest, and leave."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--lanes", help="the lanes to pull, comma-separated; default: all")
        parser.add_argument("--concurrency", type=whole, help="jobs at a time; default: the setting CONCURRENCY")
        parser.add_argument(
            "--processes", type=count, help="children that run the jobs; 0: threads of this process; default: PROCESSES"
        )
        parser.add_argument("--worker-id", help="default: host:process:random")
        parser.add_argument("--burst", action="store_true", help="end when the lanes are empty")
        parser.add_argument("--max-jobs", type=whole, help="replace a child, or end, after so many jobs")
        parser.add_argument("--reload", action="store_true", help="start anew when code changes; for development")
        duties.add_probe_option(parser)

    def handle(self, **options: Any) -> None:
        """Run it."""
        if options["reload"]:
            autoreload.run_with_reloader(self.run, **options)
        elif code := self.run(**options):
            sys.exit(code)

    def run(self, **options: Any) -> int:
        """Run the worker and return what to exit with."""
        worker = self.make_worker(**options)
        where = f"{worker.processes} children" if worker.processes else "threads of this process"
        line = f"worker {worker.id}: {worker.concurrency} slots in {where}, lanes {', '.join(worker.lanes)}"
        duties.keep_running(worker, line, self.stdout, options)
        return worker.exit_code

    def make_worker(self, **options: Any) -> Worker:
        """Return the worker that the options ask for. Raises CommandError."""
        coordinator = duties.fit_coordinator(self.stderr)
        known = coordinator.settings.lane_names
        lanes = tuple(options["lanes"].split(",")) if options["lanes"] else known
        if set(lanes) - set(known):
            raise CommandError(f"--lanes: {options['lanes']!r}: choose from {', '.join(known)}")
        try:
            worker_id = callers.check_word("--worker-id", options["worker_id"]) if options["worker_id"] else ""
        except InvalidCaller as error:
            raise CommandError(str(error)) from error
        return Worker(
            coordinator, worker_id=worker_id, lanes=lanes, concurrency=options["concurrency"] or 0,
            processes=options["processes"], burst=options["burst"], max_jobs=options["max_jobs"],
        )  # fmt: skip
