"""The audit log's export from the admin: whole, as it was, harmless in a spreadsheet, and never all of it in memory."""

import csv
import io
import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from priqueue.audit import pages
from priqueue.audit.exports import COLUMNS
from priqueue.audit.pages import Wanted
from tests.support.auditing import by_force, rows
from tests.support.databases import ALIAS
from tests.support.reviewing import LIST, client_of, keep, staff, with_admin

MARKER = "<script>alert(1)</script>\"'>{{7*7}}"
LANES = ("low", "low", "high", "low", "low")

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(db: None, audit_database: str) -> Iterator[Client]:
    """The browser of somebody who may read the log."""
    with with_admin():
        yield client_of(staff("reader", "view_auditevent", "view_payload"))


def text_of(response: Any) -> str:
    return b"".join(response.streaming_content).decode()


def test_an_export_holds_all_rows_of_the_filter_from_the_oldest(
    reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "BATCH", 2)
    keep(*({"lane": lane} for lane in LANES))

    table = list(csv.DictReader(io.StringIO(text_of(reader.get(f"{LIST}export/csv/?lane=low")))))
    lines = [json.loads(line) for line in text_of(reader.get(f"{LIST}export/jsonl/?lane=low")).splitlines()]

    wanted = [row for row in rows() if row.lane == "low"]
    said = [[value if isinstance(value := getattr(row, name), str | int) else bytes(value).hex() for name in COLUMNS]
            for row in wanted]  # fmt: skip
    assert [list(line.values()) for line in lines] == said
    assert [list(line.values()) for line in table] == [[str(value) for value in values] for values in said]


@pytest.mark.parametrize(("kind", "media_type"), [("csv", "text/csv"), ("jsonl", "application/x-ndjson")])
def test_an_export_is_a_file_and_no_page(kind: str, media_type: str, reader: Client) -> None:
    keep({"reason": MARKER})

    answer = reader.get(f"{LIST}export/{kind}/")

    assert answer.streaming
    assert answer["Content-Type"] == f"{media_type}; charset=utf-8"
    assert answer["Content-Disposition"] == f'attachment; filename="audit.{kind}"'
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert MARKER in text_of(answer).replace('""', '"').replace('\\"', '"')


def test_an_unknown_kind_of_export_is_not_found(reader: Client) -> None:
    assert reader.get(f"{LIST}export/xml/").status_code == 404


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_formula_is_a_text_in_the_spreadsheet_and_as_it_was_in_json(start: str, reader: Client) -> None:
    text = f"{start}cmd|'/C calc'!A0"
    keep({"reason": text, "caller": text, "input": "1=1"})

    (row,) = csv.DictReader(io.StringIO(text_of(reader.get(f"{LIST}export/csv/")), newline=""))
    line = json.loads(text_of(reader.get(f"{LIST}export/jsonl/")))

    assert (row["reason"], row["caller"], row["input"]) == (f"'{text}", f"'{text}", "1=1")
    assert (line["reason"], line["caller"]) == (text, text)


def test_an_export_reads_no_more_than_is_taken(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "BATCH", 3)
    keep(*[{}] * 30)

    with CaptureQueriesContext(connections[ALIAS]) as queries:
        pieces = list(islice(reader.get(f"{LIST}export/jsonl/").streaming_content, 2))

    assert [piece.count(b"\n") for piece in pieces] == [3, 3]
    assert len(queries) == 3  # the newest id, and two batches
    assert not any("COUNT" in query["sql"] for query in queries)


@pytest.mark.usefixtures("audit_database")
def test_an_export_ends_though_rows_go_on_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "BATCH", 2)
    keep(*[{}] * 4)
    export = pages.batches(Wanted(lane="high"))
    first = next(export)

    keep(*[{}] * 9)

    assert [values[0] for batch in (first, *export) for values in batch] == [1, 2, 3, 4]


@pytest.mark.usefixtures("audit_database")
def test_an_export_survives_that_its_rows_are_archived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "BATCH", 2)
    keep(*[{"at": "1000"}] * 5)
    export = pages.batches(Wanted(since_ms=0))
    first = next(export)

    by_force("DELETE FROM priqueue_auditevent WHERE id <= 3")

    assert [values[0] for batch in (first, *export) for values in batch] == [1, 2, 4, 5]
