"""runsweeper: give back the jobs of lost workers and, in a thread beside it, store audit events."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand

from priqueue import wiring
from priqueue.management import auditing
from priqueue.management.beside import Together
from priqueue.management.duties import add_probe_option, fit_coordinator, keep_running
from priqueue.sweeper import Sweeper


class Command(BaseCommand):
    """Runs a sweeper until it is stopped. Any number may run at once."""

    help = "Give back the jobs of workers that missed two beats. Any number may run."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--once", action="store_true", help="sweep once, store no audit events, and end")
        parser.add_argument("--no-audit", action="store_true", help="store no audit events: runauditor does")
        add_probe_option(parser)

    def handle(self, **options: Any) -> None:
        """Run it."""
        sweeper = Sweeper(fit_coordinator(self.stderr), wiring.inspector())
        if options["once"]:
            while sweeper.run_once() == 0:
                pass
            return
        auditor = None if options["no_audit"] else auditing.auditor()
        line = "sweeper: running" + (", with an auditor" if auditor else "")
        keep_running(Together(sweeper, [auditor] if auditor else []), line, self.stdout, options)
