"""Vanished: jobs that were enqueued, of whose end nobody knows, and which are in the queue no more.

That happens when the queue's server loses data: it came back empty, or older than it was. The audit log knows what was
enqueued and what has ended; the queue knows what is still there; what is in neither is gone. An end that is not stored
yet is looked for among the events that wait.
"""

from collections.abc import Iterator

from django.db.models import Max

from priqueue.coordinator import Inspector, Outbox
from priqueue.models import AuditEvent

ENDS = ("ack", "purge", "cancel")
_BATCH = 1000


def vanished(
    alias: str, inspector: Inspector, outbox: Outbox, *, since_ms: int = 0, limit: int = 10_000
) -> list[AuditEvent]:
    """Return the first events of jobs that have vanished, oldest first, ``limit`` at most.

    ``since_ms`` leaves out what was enqueued before. Raises QueueUnavailable, and whatever the database raises.
    """
    suspects: dict[str, AuditEvent] = {}
    for rows in _enqueued(alias, inspector.settings.namespace, since_ms):
        without_end = _without_end(alias, rows)
        there = inspector.known(list(without_end))
        suspects |= {job_id: row for job_id, row in without_end.items() if job_id not in there}
        if len(suspects) >= limit:
            break
    # What has ended since it was looked for is in the stream or, if an auditor was faster, in the table by now.
    for entry in outbox.waiting():
        if entry.fields.get("action") in ENDS:
            suspects.pop(entry.fields.get("job", ""), None)
    gone = list(suspects.values())[:limit]
    return [
        row
        for start in range(0, len(gone), _BATCH)
        for row in _without_end(alias, gone[start : start + _BATCH]).values()
    ]


def _enqueued(alias: str, namespace: str, since_ms: int) -> Iterator[list[AuditEvent]]:
    """Give the events of enqueuing in bounded batches, read off the index of the actions."""
    last = 0
    while True:
        found = AuditEvent.objects.using(alias).filter(action="enqueue", id__gt=last).order_by("action", "id")
        rows = list(found.only("job", "handler", "lane", "caller", "at_ms", "namespace", "input")[:_BATCH])
        if not rows:
            return
        last = rows[-1].id
        yield [row for row in rows if row.namespace == namespace and row.at_ms >= since_ms]


def _without_end(alias: str, rows: list[AuditEvent]) -> dict[str, AuditEvent]:
    """Return, by job, the rows after which no end of their job is stored."""
    by_job = {row.job: row for row in rows}
    ends = AuditEvent.objects.using(alias).filter(job__in=by_job, action__in=ENDS)
    last = dict(ends.values_list("job").annotate(Max("id")))
    return {job_id: row for job_id, row in by_job.items() if last.get(job_id, 0) < row.id}
