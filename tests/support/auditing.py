"""What the tests of the audit log share: events by the number, rows as they are, and an owner who cheats."""

from typing import Any

from django.db import connections

from priqueue.audit import Auditor
from priqueue.audit.rows import FIELDS
from priqueue.coordinator import Batch, Entry, Outbox
from priqueue.guards import statements
from priqueue.models import AuditEvent
from tests.support.databases import ALIAS
from tests.support.queues import Queue


def entry(number: int = 1, **fields: str) -> Entry:
    """Return an event as it stands in the stream."""
    usual = {"action": "ack", "caller": "worker:w", "job": f"job{number}", "lane": "high", "at": str(1000 + number)}
    return Entry(f"{1000 + number}-0", {**usual, **fields})


def batch(*numbers: int, epoch: str = "e") -> Batch:
    """Return events of these numbers."""
    return Batch(epoch, [entry(number) for number in numbers])


def auditor(queue: Queue) -> Auditor:
    """Return an auditor of a test's queue."""
    return Auditor(outbox(queue), ALIAS)


def outbox(queue: Queue) -> Outbox:
    """Return the outbox of a test's queue."""
    made = Outbox(queue.client, queue.settings)
    made.client = queue.coordinator.client
    return made


def store(queue: Queue) -> None:
    """Let the audit events so far be stored."""
    while auditor(queue).run_once() == 0:
        pass


def rows() -> list[AuditEvent]:
    """Return all rows in their order."""
    return list(AuditEvent.objects.using(ALIAS).order_by("id"))


def said(queue: Queue) -> list[dict[str, str]]:
    """Return what the stream says, as rows say it."""
    entries = queue.raw.xrange(queue.keys.audit)
    return [
        {"stream_id": entry_id, "at_ms": fields["at"]} | {name: fields[name] for name in FIELDS}
        for entry_id, fields in entries
    ]


def stored() -> list[dict[str, str]]:
    """Return what the rows say."""
    return [
        {"stream_id": row.stream_id, "at_ms": str(row.at_ms)} | {name: getattr(row, name) for name in FIELDS}
        for row in rows()
    ]


def by_force(*statements: str, params: Any = None) -> None:
    """Change the table as an owner who cheats: without its triggers."""
    with connections[ALIAS].cursor() as cursor:
        if connections[ALIAS].vendor == "postgresql":
            cursor.execute("ALTER TABLE priqueue_auditevent DISABLE TRIGGER USER")
        else:
            cursor.execute("DROP TRIGGER IF EXISTS priqueue_audit_no_update")
            cursor.execute("DROP TRIGGER IF EXISTS priqueue_audit_no_delete")
        for statement in statements:
            cursor.execute(statement, params)


def guard_again() -> None:
    """Put the triggers back, as an owner who leaves no trace."""
    with connections[ALIAS].cursor() as cursor:
        if connections[ALIAS].vendor == "postgresql":
            cursor.execute("ALTER TABLE priqueue_auditevent ENABLE TRIGGER USER")
        else:
            for statement in statements("sqlite"):
                cursor.execute(statement)
