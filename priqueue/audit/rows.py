"""Rows: an event of the outbox becomes a row. What a database cannot hold is made storable and marked.

Marks: "cleaned" (written as escapes are NUL and lone surrogates, and in a row that the database's encoding cannot hold
all that is not ASCII; or a time was no number), "cut" (longer than the column), "extra" (fields that this version does
not know stand in the reason), "conflict" (see ``store``).
"""

import json
from collections.abc import Mapping

from priqueue.coordinator import Entry
from priqueue.models import AuditEvent

#: what an event says, and a row repeats
FIELDS = ("action", "caller", "job", "handler", "lane", "input", "outcome", "reason", "correlation_id")
_KNOWN = frozenset({*FIELDS, "at"})
_LENGTHS = {field.name: field.max_length for field in AuditEvent._meta.fields if field.name in FIELDS}
_LARGEST = 2**63


def row_of(namespace: str, epoch: str, entry: Entry) -> AuditEvent:
    """Return the row of an event: without id, hashes and the time it was stored."""
    marks: set[str] = set()
    said = {name: entry.fields.get(name, "") for name in FIELDS}
    if not entry.fields.keys() <= _KNOWN:
        said["reason"] += _extra(entry.fields)
        marks.add("extra")
    texts = {name: _fitting(text, _LENGTHS[name], marks) for name, text in said.items()}
    at_ms = _at_ms(entry, marks)
    return AuditEvent(
        namespace=namespace, epoch=epoch, stream_id=entry.id, at_ms=at_ms, mark=",".join(sorted(marks)), **texts
    )


def harmless(row: AuditEvent) -> AuditEvent:
    """Make a row storable that a database refused for its content: nothing but printable ASCII stays as it is."""
    for name, text in zip(FIELDS, escaped(row), strict=True):
        setattr(row, name, text)
    row.mark = ",".join(sorted({*filter(None, row.mark.split(",")), "cleaned"}))
    return row


def escaped(row: AuditEvent) -> list[str]:
    """Return what a row says, in the order of ``FIELDS``, as ``harmless`` makes it say it."""
    return [getattr(row, name).encode("unicode_escape").decode("ascii")[: _LENGTHS[name]] for name in FIELDS]


def _extra(fields: Mapping[str, str]) -> str:
    return " " + json.dumps({name: text for name, text in fields.items() if name not in _KNOWN})


def _fitting(text: str, length: int | None, marks: set[str]) -> str:
    if not text.isascii() or "\0" in text:
        cleaned = text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
        if cleaned != text:
            marks.add("cleaned")
        text = cleaned
    if length is not None and len(text) > length:
        marks.add("cut")
        return text[:length]
    return text


def _at_ms(entry: Entry, marks: set[str]) -> int:
    """Return the event's time; where it says none, that of its id, which the server gave."""
    at = entry.fields.get("at", "")
    if at.isascii() and at.isdecimal() and int(at) < _LARGEST:
        return int(at)
    marks.add("cleaned")
    return int(entry.id.partition("-")[0])
