"""runauditor: store the queue's audit events, alone in its process."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from priqueue.management import auditing
from priqueue.management.duties import add_probe_option, fit_coordinator, keep_running


class Command(BaseCommand):
    """Runs an auditor until it is stopped. Any number may run: one stores, the others stand by."""

    help = "Store audit events in the database. runsweeper does it too; this runs it alone, for heavy loads."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--once", action="store_true", help="store what is waiting and end")
        add_probe_option(parser)

    def handle(self, **options: Any) -> None:
        """Run it."""
        fit_coordinator(self.stderr)
        auditor = auditing.auditor()
        if auditor is None:
            raise CommandError("there is nothing to store: AUDIT is off, or AUDIT_DATABASE cannot keep it (see check)")
        auditing.database_of({})
        if options["once"]:
            auditor.drain()
            return
        keep_running(auditor, "auditor: running", self.stdout, options)
