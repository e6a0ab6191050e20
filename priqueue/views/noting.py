"""Noting: what a person was denied, is about to do, and what came of it, in the audit log beside the changes."""

import logging
from collections.abc import Mapping

from priqueue import callers
from priqueue.clock import wall_ms
from priqueue.coordinator import DENIED, Note
from priqueue.exceptions import PriqueueError
from priqueue.logs.lines import escaped
from priqueue.views.visit import Visit

_log = logging.getLogger(__name__)
#: parts of an address that are no column of the log
_OTHERS = ("worker", "run")
_MINUTE_MS = 60_000


def note(visit: Visit, outcome: str, *, about: str = "", reason: str = "") -> None:
    """Leave an audit event of what the visitor asks for. Raises QueueUnavailable."""
    acting, parts = callers.acting(), visit.parts
    made = Note(
        action=visit.action, caller=acting.caller, outcome=outcome, lane=parts.get("lane", ""),
        job=parts.get("job", ""), input=about or _other(parts), reason=reason, correlation_id=acting.correlation_id,
    )  # fmt: skip
    leave(visit, made)


def try_to_note(visit: Visit, outcome: str, *, about: str = "", reason: str = "") -> None:
    """Leave it if that is possible: what was done is done, and a no does not wait for a queue that is away."""
    try:
        note(visit, outcome, about=about, reason=reason)
    except PriqueueError as error:
        _tell_lost(visit, callers.acting().caller, outcome, error)


def leave(visit: Visit, made: Note) -> None:
    """Leave a note that says all by itself. Raises QueueUnavailable."""
    with visit.desk.breaker.trying():
        visit.desk.coordinator.note(made)


def try_to_leave(visit: Visit, made: Note) -> None:
    """Leave it if that is possible, also when nobody acts any more, as at the end of what was sent bit by bit."""
    try:
        leave(visit, made)
    except PriqueueError as error:
        _tell_lost(visit, made.caller, made.outcome, error)


def note_denial(visit: Visit, page: str, missing: str) -> None:
    """Note the first no of each minute to a caller at a kind of page; the others of that minute are in the log alone.

    Whoever may do nothing may still ask, and would fill the audit log for good.
    """
    mark = f"denied|{page}|{callers.acting().caller}|{wall_ms() // _MINUTE_MS}"
    try:
        with visit.desk.breaker.trying():
            is_first = visit.desk.forms.begin(mark) is None
    except PriqueueError as error:
        _tell_lost(visit, callers.acting().caller, DENIED, error)
        return
    if is_first:
        try_to_note(visit, DENIED, about=visit.request.path, reason=f"needs priqueue.{missing}")
    else:
        who, path = callers.acting().caller, escaped(visit.request.path)
        _log.warning("%s again within a minute: %s at %s: needs priqueue.%s", DENIED, who, path, escaped(missing))


def _tell_lost(visit: Visit, caller: str, outcome: str, error: PriqueueError) -> None:
    path, why = escaped(visit.request.path), escaped(str(error))
    _log.warning("could not note %r of %s at %s: %s", outcome, caller, path, why)


def _other(parts: Mapping[str, str]) -> str:
    return next((parts[name] for name in _OTHERS if name in parts), "")
