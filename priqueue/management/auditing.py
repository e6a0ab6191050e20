"""Auditing: what the commands of the audit log share: which database, and an auditor to run."""

import argparse
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError, connections

from priqueue import wiring
from priqueue.audit import Auditor, rights
from priqueue.guards import VENDORS


def add_database_option(parser: argparse.ArgumentParser) -> None:
    """Declare the option for an alias with another role."""
    parser.add_argument("--database", metavar="ALIAS", help="the alias to use, AUDIT_DATABASE if not given")


def database_of(options: dict[str, Any]) -> str:
    """Return the alias that is meant, its table found. Raises CommandError."""
    alias = options.get("database") or wiring.settings().audit_database
    if alias not in connections.settings:
        raise CommandError(f"DATABASES has no {alias!r}; choose from {', '.join(connections.settings)}")
    if connections[alias].vendor not in VENDORS:
        raise CommandError(f"{connections[alias].display_name} keeps no audit log; use PostgreSQL or SQLite")
    try:
        found = rights.has_table(alias)
    except DatabaseError as error:
        raise CommandError(f"{alias}: {' '.join(str(error).split())}") from error
    if not found:
        raise CommandError(f"the audit log's table is missing: run manage.py migrate --database {alias}")
    return alias


def auditor() -> Auditor | None:
    """Return an auditor of this process's queue; None where the audit log is switched off, or cannot be kept."""
    settings = wiring.settings()
    alias = settings.audit_database
    if settings.audit == "off" or alias not in connections.settings or connections[alias].vendor not in VENDORS:
        return None
    return Auditor(wiring.outbox(), alias)
