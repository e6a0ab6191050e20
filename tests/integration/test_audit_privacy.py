"""What the audit log shows those who may not see payloads: none, nothing that quotes one, nothing to find it by."""

import csv
import io
import json
from collections.abc import Iterator

import pytest
from django.test import Client

from priqueue.audit.exports import COLUMNS
from tests.support.auditing import rows
from tests.support.reviewing import LIST, client_of, keep, staff, with_admin

ARCHIVED = "ab" * 32
TOLD = [
    {"action": "enqueue", "input": '{"card": "ana-lovelace"}'},
    {"action": "bury", "reason": "shop.CardDeclined: card ana-lovelace", "outcome": "dead"},
    {"action": "retry", "reason": "ValueError: ana-lovelace", "outcome": "delayed"},
    {"action": "purge", "input": "3 letters: lane=low", "reason": "old", "outcome": "intended", "job": ""},
    {"action": "ack", "reason": "done", "payload": "ana-lovelace"},  # as a later version might say it
    {"action": "archive", "input": f"7 {ARCHIVED}", "reason": "old", "job": ""},
]
INSTEAD = [
    {"input": "(hidden)"}, {"reason": "shop.CardDeclined"}, {"reason": "ValueError"}, {}, {"reason": "(hidden)"},
    {"input": "(hidden)"},
]  # fmt: skip

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _admin(db: None, audit_database: str) -> Iterator[None]:
    with with_admin():
        keep(*TOLD)
        yield


@pytest.fixture
def reader() -> Client:
    """The browser of somebody who may read the log, and payloads."""
    return client_of(staff("reader", "view_auditevent", "view_payload"))


@pytest.fixture
def other() -> Client:
    """The browser of somebody who may read the log alone."""
    return client_of(staff("other", "view_auditevent"))


def said(client: Client, path: str) -> str:
    page = client.get(LIST + path)
    return (b"".join(page) if page.streaming else page.content).decode()


EVENTS = [f"{number}/change/" for number in (1, 2, 3, 5)]


@pytest.mark.parametrize("path", ["", *EVENTS, "export/csv/", "export/jsonl/"])
def test_without_the_right_to_see_payloads_nothing_that_quotes_one_is_shown(
    path: str, reader: Client, other: Client
) -> None:
    assert "ana-lovelace" in said(reader, path)
    assert "ana-lovelace" not in said(other, path)


@pytest.mark.parametrize("path", ["", *EVENTS, "4/change/", "6/change/", "export/csv/", "export/jsonl/"])
def test_without_it_no_hash_is_shown_by_which_a_payload_could_be_found(
    path: str, reader: Client, other: Client
) -> None:
    hashes = [ARCHIVED, *(bytes(value).hex() for row in rows() for value in (row.previous, row.hash))]

    assert any(text in said(reader, path) for text in hashes)
    assert not any(text in said(other, path) for text in hashes)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_export_without_it_is_the_same_but_for_what_is_hidden(kind: str, reader: Client, other: Client) -> None:
    def lines(client: Client) -> list[dict[str, str]]:
        text = said(client, f"export/{kind}/")
        if kind == "csv":
            return list(csv.DictReader(io.StringIO(text)))
        return [json.loads(line) for line in text.splitlines()]

    assert [list(line) for line in lines(other)] == [list(COLUMNS)] * len(TOLD)
    assert lines(other) == [
        {**line, "previous": "", "hash": "", **more} for line, more in zip(lines(reader), INSTEAD, strict=True)
    ]
