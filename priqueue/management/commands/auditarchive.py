"""auditarchive: take out what is old, verified and exported; the chain goes on."""

import argparse
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from priqueue import callers, wiring
from priqueue.audit import archive
from priqueue.management.auditing import add_database_option, database_of
from priqueue.management.options import moment
from priqueue.management.progress import Progress
from priqueue.management.sessions import one_line, session


class Command(BaseCommand):
    """Verifies, exports and deletes old rows, as the table's owner."""

    help = "Verify the audit log's old rows, write them to a file as lines of JSON, and delete them; as the owner."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--before", type=moment, required=True, help="rows stored earlier: 2026-11-29, or 90d for ago"
        )
        parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="a new file for the rows")
        parser.add_argument("--reason", required=True, help="why; it is kept with the change")
        parser.add_argument("--yes", action="store_true", help="do not ask")
        add_database_option(parser)

    def handle(self, **options: Any) -> None:
        """Archive."""
        if not options["yes"] and not sys.stdin.isatty():
            raise CommandError("nobody is here to be asked: use --yes")
        with session():
            self._archive(database_of(options), options)

    def _archive(self, alias: str, options: dict[str, Any]) -> None:
        wanted = archive.old_rows(alias, options["before"])
        if wanted is None:
            self.stdout.write("no row is so old")
            return
        if not options["yes"] and not self._agreed(f"archive {wanted.number:,} rows of {alias}?"):
            raise CommandError("nothing was changed")
        try:
            with Progress(self.stderr, wanted.number) as progress:
                archive.export(alias, wanted, options["to"], progress)
            archive.delete(alias, wanted, wiring.settings().namespace, callers.acting().caller, options["reason"])
        except OSError as error:
            raise CommandError(f"nothing was deleted: {error}") from error
        except DatabaseError as error:
            raise CommandError(f"nothing was deleted, run it as the table's owner: {one_line(error)}") from error
        self.stdout.write(f"archived {wanted.number:,} rows, up to {wanted.last_id}, in {options['to']}")

    def _agreed(self, question: str) -> bool:
        self.stderr.write(f"{question} [y/N] ", style_func=str, ending="")
        self.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")
