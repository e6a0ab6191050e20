"""vanishedjobs: name the jobs that were enqueued and are gone, though nothing is known of their end."""

import argparse
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from priqueue import wiring
from priqueue.audit.vanished import vanished
from priqueue.jobs import to_ms
from priqueue.management.auditing import add_database_option, database_of
from priqueue.management.options import moment
from priqueue.management.sessions import session
from priqueue.management.text import utc, visible
from priqueue.models import AuditEvent

_HELP = (
    "List jobs that the audit log says were enqueued, whose end it does not hold, and which are in the queue no more:"
    " the queue's server has lost data. Exit code 1 when there are any."
)


class Command(BaseCommand):
    """Lists vanished jobs."""

    help = _HELP

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--since", type=moment, help="enqueued then or later: 2026-11-29T03:00, or 7d for ago")
        parser.add_argument("--limit", type=int, default=10_000, help="name so many at most; default: 10000")
        parser.add_argument("--json", action="store_true", help="print one JSON object a line")
        add_database_option(parser)

    def handle(self, **options: Any) -> None:
        """List them."""
        with session():
            alias = database_of(options)
            if wiring.settings().audit != "all":
                raise CommandError("AUDIT is not 'all': the audit log does not know which jobs have ended")
            since_ms = to_ms(options["since"]) if options["since"] else 0
            found = vanished(
                alias, wiring.inspector(), wiring.outbox(), since_ms=since_ms, limit=max(1, options["limit"])
            )
        for row in found:
            self.stdout.write(json.dumps(_document(row)) if options["json"] else _line(row))
        if found:
            raise CommandError(f"{len(found)} jobs have vanished")
        if not options["json"]:
            self.stdout.write("no job has vanished")


def _document(row: AuditEvent) -> dict[str, Any]:
    return {
        "id": row.job, "handler": row.handler, "lane": row.lane, "caller": row.caller,
        "enqueued_at": row.at.isoformat(), "input": row.input,
    }  # fmt: skip


def _line(row: AuditEvent) -> str:
    return visible(f"{row.job} {row.handler} on {row.lane}, enqueued by {row.caller} at {utc(row.at)}")
