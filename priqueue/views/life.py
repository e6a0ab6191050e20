"""Life: what the audit log knows of a job, where its database answers."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import DatabaseError

from priqueue.audit import pages, privacy
from priqueue.audit.pages import Wanted
from priqueue.models import AuditEvent
from priqueue.views.visit import Visit

#: after these a job is in the queue no more, or no more a letter
_ENDS = {("ack", "done"), ("purge", "gone"), ("cancel", "gone"), ("requeue", "ready")}


@dataclass(frozen=True, slots=True)
class Life:
    """The rows of a job or a request, the oldest first; ``why_not`` says why they are unknown."""

    rows: Sequence[AuditEvent] = ()
    why_not: str = ""

    @property
    def end(self) -> AuditEvent | None:
        """The newest row after which the job was somewhere else."""
        return next((row for row in reversed(self.rows) if (row.action, row.outcome) in _ENDS), None)

    @property
    def jobs(self) -> list[str]:
        """The jobs that these rows are about, in their order."""
        return list(dict.fromkeys(row.job for row in self.rows if row.job))


def of_job(visit: Visit, job_id: str) -> Life:
    """Return the newest rows of a job, without what the visitor may not see of a payload."""
    return _read(visit, Wanted(job=job_id))


def of_request(visit: Visit, correlation_id: str) -> Life:
    """Return rows of a correlation id, without what the visitor may not see of a payload."""
    return _read(visit, Wanted(correlation_id=correlation_id))


def _read(visit: Visit, wanted: Wanted) -> Life:
    try:
        # The newest page: of a life that is longer than one, what came last says where it is.
        first = pages.page(wanted)
        rows = pages.page(wanted, before=2**63 - 1).rows if first.newer else first.rows
    except (DatabaseError, ValueError) as error:  # ValueError: a text that the database's driver takes for none
        return Life(why_not=f"Audit log unavailable: {type(error).__name__}")
    visit.people.expect(row.caller for row in rows)
    return Life(rows if visit.may("view_payload") else [privacy.hide(row) for row in rows])


def seen(visit: Visit, life: Life) -> Sequence[AuditEvent]:
    """Return the rows themselves to who may read the audit log. To others a life tells only how it ended."""
    return life.rows if visit.may("view_auditevent") else ()
