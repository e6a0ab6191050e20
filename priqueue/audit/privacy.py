"""Privacy: what of an audit row may quote a payload, and what is left of it for those who may not see payloads."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from priqueue.audit.exports import COLUMNS
from priqueue.models import AuditEvent

#: rows whose input is a payload, and rows whose reason is an error with its message
_WITH_PAYLOAD, _WITH_MESSAGE = ("enqueue",), ("retry", "bury", "crash")
_HIDDEN = "(hidden)"
_ACTION, _INPUT, _REASON = (COLUMNS.index(name) for name in ("action", "input", "reason"))


def hide(row: AuditEvent) -> AuditEvent:
    """Take out of a row, which is for showing only, what may quote a payload. An error's type stays."""
    row.input, row.reason = _shown(row.action, row.input, row.reason)
    return row


def hidden(batches: Iterable[Sequence[Sequence[Any]]]) -> Iterator[list[list[Any]]]:
    """Take the same out of batches of rows for an export. Their hashes are of the rows as they are."""
    for batch in batches:
        yield [_without(values) for values in batch]


def _without(values: Sequence[Any]) -> list[Any]:
    left = list(values)
    left[_INPUT], left[_REASON] = _shown(left[_ACTION], left[_INPUT], left[_REASON])
    return left


def _shown(action: str, given: str, reason: str) -> tuple[str, str]:
    if action in _WITH_PAYLOAD and given:
        given = _HIDDEN
    return given, reason.partition(":")[0] if action in _WITH_MESSAGE else reason
