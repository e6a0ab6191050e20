"""verifyaudit: walk the chain of the audit log and name the first break."""

import argparse
import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from priqueue.audit import anchors
from priqueue.audit.verify import Report, number_of_rows, verify
from priqueue.management.auditing import add_database_option, database_of
from priqueue.management.options import moment
from priqueue.management.progress import Progress
from priqueue.management.sessions import session


class Command(BaseCommand):
    """Checks every row against its hash and against the row before; exit code 1 when one does not fit."""

    help = "Check that no row of the audit log was edited, taken out, swapped or put in since it was stored."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--since", type=moment, help="rows stored then or later: 2026-11-29T03:00, or 7d for ago")
        parser.add_argument(
            "--anchor", type=Path, metavar="FILE", help="check against the heads in this file, then add the present one"
        )
        parser.add_argument("--json", action="store_true", help="print one line of JSON")
        add_database_option(parser)

    def handle(self, **options: Any) -> None:
        """Check."""
        with session():
            alias = database_of(options)
            report = self._report(alias, options)
        self.stdout.write(json.dumps(report.as_dict()) if options["json"] else _told(report))
        if report.broken:
            raise CommandError(f"the chain is broken at row {report.broken.id}: {report.broken.kind}")
        if options["anchor"]:
            anchors.write(options["anchor"], report)

    def _report(self, alias: str, options: dict[str, Any]) -> Report:
        kept = anchors.read(options["anchor"]) if options["anchor"] else []
        with Progress(self.stderr, number_of_rows(alias)) as progress:
            report = verify(alias, since=options["since"], progress=progress)
        return report if report.broken else anchors.checked(alias, kept, report)


def _told(report: Report) -> str:
    if report.broken:
        return f"row {report.broken.id}: {report.broken.kind}: {report.broken.about}"
    return f"{report.checked:,} rows are whole, up to {report.last_id}, hash {report.head.hex()}"
