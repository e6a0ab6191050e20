"""Privacy: what of an audit row may quote a payload, and what is left of it for those who may not see payloads.

Hashes go as well, of every row: with its own and that of the row before, a small payload is found by trying.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from priqueue.audit.exports import COLUMNS
from priqueue.models import AuditEvent

HIDDEN = "(hidden)"
#: rows whose input is a payload, or holds the hash of a row; and rows whose reason is an error with its message
_WITH_PAYLOAD, _WITH_HASH, _WITH_MESSAGE = "enqueue", "archive", ("retry", "bury", "crash")


def hide(row: AuditEvent) -> AuditEvent:
    """Take out of a row, which is for showing only, what may quote a payload. An error's type stays."""
    for name, value in _instead(vars(row)).items():
        setattr(row, name, value)
    return row


def hidden(batches: Iterable[Sequence[Sequence[Any]]]) -> Iterator[list[list[Any]]]:
    """Take the same out of batches of rows for an export; of a row the values of ``exports.COLUMNS``."""
    for batch in batches:
        yield [_without(dict(zip(COLUMNS, values, strict=True))) for values in batch]


def _without(said: dict[str, Any]) -> list[Any]:
    return list((said | _instead(said)).values())


def _instead(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what stands in a row instead of what is hidden."""
    given, reason = said["input"], said["reason"]
    if given and said["action"] in (_WITH_PAYLOAD, _WITH_HASH):
        given = HIDDEN
    if "extra" in said["mark"].split(","):  # fields of a later version: nobody knows what they quote
        reason = HIDDEN
    elif said["action"] in _WITH_MESSAGE:
        reason = reason.partition(":")[0]
    return {"previous": b"", "hash": b"", "input": given, "reason": reason}
