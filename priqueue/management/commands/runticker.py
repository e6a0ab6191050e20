"""runticker: move delayed jobs to their lanes when they are due."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand

from priqueue import wiring
from priqueue.management.duties import add_probe_option, fit_coordinator, keep_running
from priqueue.ticker import Ticker


class Command(BaseCommand):
    """Runs a ticker until it is stopped. Any number may run at once."""

    help = "Move delayed jobs to their lanes when they are due, and end timed pauses. Any number may run."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--once", action="store_true", help="move what is due now and end")
        add_probe_option(parser)

    def handle(self, **options: Any) -> None:
        """Run it."""
        ticker = Ticker(fit_coordinator(self.stderr), wiring.inspector())
        if options["once"]:
            while ticker.run_once() == 0:
                pass
            return
        keep_running(ticker, "ticker: running", self.stdout, options)
