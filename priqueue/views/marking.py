"""Marking: what the audit log tells of the last hour, for the marks in the charts; read aside, so that no page waits.

The charts do without it, and the log may be kept in a database that is slow, frozen or away while Redis answers: so a
thread of its own reads it, at most every ten seconds and only while somebody looks, and a page takes what is there.
"""

import logging
from collections.abc import Iterator, Sequence
from threading import Lock, Thread

from django.db import DatabaseError, connections

from priqueue.audit import pages, privacy
from priqueue.audit.pages import Wanted
from priqueue.clock import monotonic_s
from priqueue.conf import Settings
from priqueue.models import AuditEvent
from priqueue.views.marks import Mark

_log = logging.getLogger(__name__)
#: for so long a page waits for the reading that it began: longer than a database needs that is well
PATIENCE_S = 0.3
_REST_S = 10.0
#: action and outcome, as scripts write them → kind of mark; notes of what somebody intended or was denied differ
_KINDS = {
    ("pause", "paused"): "pause", ("resume", "resumed"): "resume", ("register", ""): "start",
    ("drain", "draining"): "drain", ("leave", "gone"): "leave",
}  # fmt: skip
_NOT_KEPT = {"off": "no audit log is kept", "callers": "the audit log is kept of callers only"}


class Log:
    """The audit log of one queue, as it was read last."""

    def __init__(self, settings: Settings) -> None:
        self._namespace = settings.namespace
        self._is_kept = settings.audit != "off"
        self._lacks = _NOT_KEPT.get(settings.audit, "")
        self._lock = Lock()
        self._thread: Thread | None = None
        self._again_at_s = 0.0
        self._found: tuple[Sequence[Mark], str] = ((), "the audit log is still being read")

    def marks(self) -> tuple[Sequence[Mark], str]:
        """Return the newest marks of each kind, and why some may be missing: "" when none is."""
        if not self._is_kept:
            return (), self._lacks
        if begun := self._begin():
            begun.join(PATIENCE_S)
        return self._found

    def close(self) -> None:
        """Wait for a reading that is under way, but not for a database that hangs."""
        if self._thread:
            self._thread.join(PATIENCE_S)

    def _begin(self) -> Thread | None:
        """Begin to read, if it is time to and nobody does."""
        with self._lock:
            if monotonic_s() < self._again_at_s or (self._thread and self._thread.is_alive()):
                return None
            begun = Thread(target=self._read, name="priqueue-marks", daemon=True)
            try:
                begun.start()
            except RuntimeError:  # a process that has no room for a thread has room for its pages
                return None
            self._thread = begun
            return begun

    def _read(self) -> None:
        try:
            self._found = list(_marks(self._namespace)), self._lacks
        except DatabaseError as error:
            self._found = self._found[0], f"the audit log does not answer ({type(error).__name__})"
        except Exception:
            _log.exception("the marks of the charts could not be read")
            self._found = self._found[0], "the audit log could not be read"
        finally:
            self._again_at_s = monotonic_s() + _REST_S
            connections.close_all()  # those of this thread


def _marks(namespace: str) -> Iterator[Mark]:
    """Give the marks among the newest rows of each action: five pages, each off its index, however long the log is."""
    for action, _ in _KINDS:
        for row in pages.page(Wanted(action=action)).rows:
            if row.namespace == namespace and (row.action, row.outcome) in _KINDS:
                yield _mark(privacy.hide(row))


def _mark(row: AuditEvent) -> Mark:
    kind = _KINDS[row.action, row.outcome]
    if kind in ("start", "leave"):
        return Mark(row.at_ms, kind, row.caller.removeprefix("worker:"))
    return Mark(row.at_ms, kind, row.lane or row.input, row.caller, row.reason)
