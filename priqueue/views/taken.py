"""Taken: who took letters away, and when, as the audit log has it. Where it does not answer, nobody is named."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TypeVar

from django.db import DatabaseError

from priqueue.audit import pages, privacy
from priqueue.jobs import now
from priqueue.models import AuditEvent
from priqueue.views.visit import Visit
from priqueue.words import amount, duration

_Found = TypeVar("_Found")
#: a letter leaves the list only by these, and then its row has this outcome
_TAKES = {"requeue": "ready", "purge": "gone"}
_REPLACE, _REPLACED = "replace", "replaced by "


def last(visit: Visit) -> AuditEvent | None:
    """Return how the last letter left the list; None where the audit log is off, away, or has nothing of it."""
    settings = visit.desk.settings
    if settings.audit == "off":
        return None
    found = _asked(lambda: [pages.newest(settings.namespace, *take) for take in _TAKES.items()])
    rows = [row for row in found or () if row]
    visit.people.expect(row.caller for row in rows)
    newest = max(rows, key=lambda row: row.at_ms, default=None)
    return newest if newest is None or visit.may("view_payload") else privacy.hide(newest)


def replacement(rows: Iterable[AuditEvent]) -> AuditEvent | None:
    """Return the one of a job's rows that tells of the edited copy in its place."""
    return next((row for row in rows if row.action == _REPLACE and row.outcome.startswith(_REPLACED)), None)


def told(visit: Visit, job_ids: Sequence[str]) -> tuple[str, int]:
    """Return by whom letters were taken or replaced, in sentences, and of how many of them that is known."""
    found = _asked(lambda: pages.of_jobs(job_ids, [*_TAKES, _REPLACE])) if job_ids else None
    # One that was requeued and died again was taken more than once: the newest row says where it is.
    newest = {row.job: row for row in found or () if _is_end(row)}
    visit.people.expect(row.caller for row in newest.values())
    rows = sorted(newest.values(), key=_by)
    groups = [list(some) for _, some in groupby(rows, key=_by)]
    subject = "It was" if len(job_ids) == 1 else ""
    return " ".join(_sentence(visit, some, subject) for some in groups), len(rows)


def _is_end(row: AuditEvent) -> bool:
    """Return whether a row is the change itself, and not what somebody intended or was told."""
    return row.outcome == _TAKES.get(row.action) or replacement([row]) is not None


def _by(row: AuditEvent) -> tuple[str, str]:
    return row.action, row.caller


def _sentence(visit: Visit, rows: Sequence[AuditEvent], subject: str) -> str:
    action, caller = _by(rows[0])
    ago = duration((now() - max(row.at for row in rows)).total_seconds())
    return f"{subject or amount(len(rows), 'was', 'were')} {action}d by {visit.people.told(caller)} {ago} ago."


def _asked(question: Callable[[], _Found]) -> _Found | None:
    try:
        return question()
    except (DatabaseError, ValueError):  # ValueError: a text that the database's driver takes for none
        return None
