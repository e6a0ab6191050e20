"""Auditor: moves audit events from the queue to the database.

1. read the oldest events
2. store them in one transaction, under a lock: one auditor at a time, any number may stand by
3. let go of them in the queue, after the commit and never before

A database that is slow, down or restarted holds up nothing but this: events wait in the queue meanwhile. Whatever a
turn leaves half done is done again by the next, of this auditor or another, and has its effect once.
"""

import random

from django.db import connections

from priqueue import events
from priqueue.audit.store import Held, store
from priqueue.coordinator import Batch, Outbox
from priqueue.loops import Loop
from priqueue.models import AuditEvent

BATCH = 1000
_IDLE_S, _STAND_BY_S = 0.5, 0.3


class Auditor:
    """Stores audit events."""

    def __init__(self, outbox: Outbox, database: str) -> None:
        self._outbox = outbox
        self._database = database
        self.loop = Loop("auditor", self.run_once)

    def run(self) -> None:
        """Run until stopped."""
        try:
            self.loop.run()
        finally:
            connections[self._database].close()

    def stop(self) -> None:
        """End the loop. Safe in a signal handler."""
        self.loop.stop()

    def drain(self) -> None:
        """Store what is waiting now; faults are raised. What another auditor is storing is left to it."""
        for _ in range(self._outbox.backlog() // BATCH + 1):
            self.run_once()

    def run_once(self) -> float:
        """Store one batch; return the seconds until the next."""
        batch = self._outbox.read(BATCH)
        if not batch.entries:
            self._outbox.say_seen()
            return _IDLE_S
        try:
            rows = self._stored(batch)
        except Held:
            return _STAND_BY_S * random.uniform(0.5, 1)  # noqa: S311 (spreads the auditors)
        self._outbox.let_go(batch)
        self._outbox.say_seen()
        marked = [row for row in rows if row.mark]
        events.send(events.audit_stored, number=len(rows))
        if marked:
            events.send(events.audit_marked, rows=marked)
        return 0 if len(batch.entries) == BATCH else _IDLE_S

    def _stored(self, batch: Batch) -> list[AuditEvent]:
        connection = connections[self._database]
        connection.health_check_enabled = True  # type: ignore[attr-defined]
        connection.close_if_unusable_or_obsolete()
        try:
            return store(self._database, self._outbox.namespace, batch)
        except Held:
            raise
        except Exception:
            # Whatever state it is in: the next turn begins with a new one.
            if not connection.in_atomic_block:
                connection.close()
            raise
