"""Noting: what a person was denied, is about to do, and what came of it, in the audit log beside the changes."""

import logging
from collections.abc import Mapping

from priqueue import callers
from priqueue.coordinator import Note
from priqueue.exceptions import PriqueueError
from priqueue.logs.lines import escaped
from priqueue.views.visit import Visit

_log = logging.getLogger(__name__)
#: parts of an address that are no column of the log
_OTHERS = ("worker", "run")


def note(visit: Visit, outcome: str, *, about: str = "", reason: str = "") -> None:
    """Leave an audit event of what the visitor asks for. Raises QueueUnavailable."""
    acting, parts = callers.acting(), visit.parts
    made = Note(
        action=visit.action, caller=acting.caller, outcome=outcome, lane=parts.get("lane", ""),
        job=parts.get("job", ""), input=about or _other(parts), reason=reason, correlation_id=acting.correlation_id,
    )  # fmt: skip
    with visit.desk.breaker.trying():
        visit.desk.coordinator.note(made)


def try_to_note(visit: Visit, outcome: str, *, about: str = "", reason: str = "") -> None:
    """Leave it if that is possible: what was done is done, and a no does not wait for a queue that is away."""
    try:
        note(visit, outcome, about=about, reason=reason)
    except PriqueueError as error:
        who, where, why = callers.acting().caller, escaped(visit.request.path), escaped(str(error))
        _log.warning("could not note %r of %s at %s: %s", outcome, who, where, why)


def _other(parts: Mapping[str, str]) -> str:
    return next((parts[name] for name in _OTHERS if name in parts), "")
