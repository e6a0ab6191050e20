"""runcoordinator: ticker, sweeper and auditor in one process, for small installations."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand

from priqueue import wiring
from priqueue.management import auditing
from priqueue.management.beside import Together
from priqueue.management.duties import add_probe_option, fit_coordinator, keep_running
from priqueue.sweeper import Sweeper
from priqueue.ticker import Ticker


class Command(BaseCommand):
    """Runs ticker, sweeper and auditor until it is stopped. Any number may run at once."""

    help = "Run ticker, sweeper and auditor in one process. Any number may run."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--no-audit", action="store_true", help="store no audit events: runauditor does")
        add_probe_option(parser)

    def handle(self, **options: Any) -> None:
        """Run them."""
        coordinator, inspector = fit_coordinator(self.stderr), wiring.inspector()
        auditor = None if options["no_audit"] else auditing.auditor()
        together = Together(
            Ticker(coordinator, inspector), [Sweeper(coordinator, inspector), *([auditor] if auditor else [])]
        )
        line = f"coordinator: ticker{', sweeper and auditor' if auditor else ' and sweeper'} running"
        keep_running(together, line, self.stdout, options)
