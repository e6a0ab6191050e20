"""runsweeper: give back the jobs of lost workers."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand

from priqueue import wiring
from priqueue.management.duties import fit_coordinator, run_until_stopped
from priqueue.sweeper import Sweeper


class Command(BaseCommand):
    """Runs a sweeper until it is stopped. Any number may run at once."""

    help = "Give back the jobs of workers that missed two beats. Any number may run."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--once", action="store_true", help="sweep once and end")

    def handle(self, **options: Any) -> None:
        """Run it."""
        sweeper = Sweeper(fit_coordinator(self.stderr), wiring.inspector())
        if options["once"]:
            while sweeper.run_once() == 0:
                pass
            return
        if options["verbosity"]:
            self.stdout.write("sweeper: running")
        run_until_stopped(sweeper)
