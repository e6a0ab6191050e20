"""runworker: claim jobs and run them."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from priqueue import callers
from priqueue.exceptions import InvalidCaller
from priqueue.management.duties import fit_coordinator, run_until_stopped
from priqueue.worker import Worker


def whole(text: str) -> int:
    """Return a whole number of 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return int(text)


class Command(BaseCommand):
    """Runs a worker until it is stopped. Exit code 0 after a drain, 1 when it could not start."""

    help = "Claim jobs and run them, until SIGTERM or SIGINT: then let them finish, give back the rest, and leave."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--lanes", help="the lanes to pull, comma-separated; default: all")
        parser.add_argument("--concurrency", type=whole, help="jobs at a time; default: the setting CONCURRENCY")
        parser.add_argument("--processes", type=int, default=0, choices=[0], help="0: run jobs in threads")
        parser.add_argument("--worker-id", help="default: host:process:random")
        parser.add_argument("--burst", action="store_true", help="end when the lanes are empty")
        parser.add_argument("--max-jobs", type=whole, help="end after so many jobs")

    def handle(self, **options: Any) -> None:
        """Run it."""
        coordinator = fit_coordinator(self.stderr)
        known = coordinator.settings.lane_names
        lanes = tuple(options["lanes"].split(",")) if options["lanes"] else known
        if set(lanes) - set(known):
            raise CommandError(f"--lanes: {options['lanes']!r}: choose from {', '.join(known)}")
        try:
            worker_id = callers.check_word("--worker-id", options["worker_id"]) if options["worker_id"] else ""
        except InvalidCaller as error:
            raise CommandError(str(error)) from error
        worker = Worker(
            coordinator, worker_id=worker_id, lanes=lanes, concurrency=options["concurrency"] or 0,
            burst=options["burst"], max_jobs=options["max_jobs"],
        )  # fmt: skip
        if options["verbosity"]:
            self.stdout.write(f"worker {worker.id}: {worker.concurrency} slots, lanes {', '.join(lanes)}")
        run_until_stopped(worker)
