"""Exports: rows as lines of CSV, for a spreadsheet, and of JSON, for programs and archives."""

import csv
import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any

from priqueue.audit import chain

COLUMNS = ("id", "previous", "hash", *chain.PARTS[2:])
#: what makes a spreadsheet take a cell for a formula, alone or after it has dropped the control character
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

type_of = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson; charset=utf-8"}


def text(kind: str, batches: Iterable[Sequence[Sequence[Any]]]) -> Generator[str]:
    """Return an export, one piece for each batch of rows; of a row the values of ``COLUMNS``."""
    return _csv(batches) if kind == "csv" else _json(batches)


def json_line(values: Sequence[Any]) -> str:
    """Return a row as JSON, as it is: hashes as hex."""
    return json.dumps(dict(zip(COLUMNS, _plain(values), strict=True)), ensure_ascii=False, separators=(",", ":"))


def _json(batches: Iterable[Sequence[Sequence[Any]]]) -> Generator[str]:
    for batch in batches:
        yield "".join(json_line(values) + "\n" for values in batch)


def _csv(batches: Iterable[Sequence[Sequence[Any]]]) -> Generator[str]:
    yield _csv_lines([COLUMNS])
    for batch in batches:
        yield _csv_lines([[_cell(value) for value in _plain(values)] for values in batch])


def _csv_lines(rows: Iterable[Sequence[Any]]) -> str:
    lines = _Lines()
    csv.writer(lines).writerows(rows)
    return "".join(lines)


class _Lines(list[str]):
    """What ``csv`` takes for a file."""

    write = list.append


def _plain(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        yield value if isinstance(value, str | int) else bytes(value).hex()


def _cell(value: str | int) -> str | int:
    """Return what a spreadsheet shows as it is, and computes nothing of."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
