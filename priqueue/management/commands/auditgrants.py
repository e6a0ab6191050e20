"""auditgrants: make a role that can add to the audit log and read it, and nothing else."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connections, transaction

from priqueue.audit import rights
from priqueue.management.auditing import add_database_option, database_of
from priqueue.management.sessions import one_line, session


class Command(BaseCommand):
    """Prints the statements, or runs them as the table's owner."""

    help = "Print, or with --apply run, what makes a PostgreSQL role insert and read audit events only."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--role", required=True, help="the role of AUDIT_DATABASE at run time")
        parser.add_argument("--apply", action="store_true", help="run the statements; needs the owner's role")
        add_database_option(parser)

    def handle(self, **options: Any) -> None:
        """Print or apply."""
        with session():
            alias, role = database_of(options), options["role"]
        if connections[alias].vendor != "postgresql":
            raise CommandError(f"{connections[alias].display_name} has no roles; use PostgreSQL")
        refusal = rights.refusal(alias, role)
        if refusal:
            raise CommandError(refusal)
        statements = list(rights.grants(alias, role))
        self.stdout.write("".join(f"{statement};\n" for statement in statements), ending="")
        if options["apply"]:
            self._apply(alias, statements)

    def _apply(self, alias: str, statements: list[str]) -> None:
        try:
            with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
        except DatabaseError as error:
            raise CommandError(f"run it as the table's owner: {one_line(error)}") from error
