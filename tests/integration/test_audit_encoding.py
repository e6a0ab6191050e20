"""Storing in a database whose encoding cannot hold every text: what it refuses is escaped, and holds up nothing."""

from collections.abc import Iterator
from typing import Any

import pytest

from priqueue.audit.store import store
from priqueue.audit.verify import verify
from priqueue.coordinator import Batch
from tests.support.auditing import batch, entry, rows
from tests.support.databases import ALIAS, Postgres, audited, migrate


@pytest.fixture(autouse=True)
def _latin(postgres: Postgres, django_db_blocker: Any) -> Iterator[None]:
    """A database for the audit log that holds Latin-1 alone."""
    postgres.run(
        "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' STRATEGY file_copy"
    )
    with audited(postgres.settings("latin")), django_db_blocker.unblock():
        migrate()
        yield
    postgres.run("DROP DATABASE latin")


def said() -> list[tuple[str, str, str]]:
    return [(row.stream_id, row.reason, row.mark) for row in rows()]


def test_a_text_that_the_encoding_lacks_is_escaped_in_its_own_row_alone() -> None:
    store(ALIAS, "n", Batch("e", [entry(1, reason="é"), entry(2, reason="é😀"), entry(3, reason="é")]))

    assert said() == [("1001-0", "é", ""), ("1002-0", "\\xe9\\U0001f600", "cleaned"), ("1003-0", "é", "")]
    assert verify(ALIAS).broken is None


@pytest.mark.parametrize("odd", [3, 13])  # before the stored one, and after it: what the database meets first
def test_such_a_text_in_a_batch_that_is_partly_stored_holds_up_nothing(odd: int) -> None:
    store(ALIAS, "n", batch(10))
    store(ALIAS, "n", batch(1))  # the server's clock was set back
    reasons = {odd: "😀"}

    store(ALIAS, "n", Batch("e", [entry(number, reason=reasons.get(number, "")) for number in (3, 10, 13)]))

    escaped = {odd: ("\\U0001f600", "cleaned")}
    assert said() == [(f"{1000 + number}-0", *escaped.get(number, ("", ""))) for number in (10, 1, 3, 13)]
    assert verify(ALIAS).broken is None


def test_such_an_event_that_comes_again_is_stored_once() -> None:
    odd = Batch("e", [entry(1, reason="😀 \\")])
    store(ALIAS, "n", odd)

    assert store(ALIAS, "n", odd) == []

    assert said() == [("1001-0", "\\U0001f600 \\\\", "cleaned")]


def test_another_event_in_the_place_of_such_a_one_is_in_conflict_with_it() -> None:
    store(ALIAS, "n", Batch("e", [entry(1, reason="😀")]))
    other = Batch("e", [entry(1, reason="😁")])

    for _ in range(2):
        store(ALIAS, "n", other)

    assert said() == [("1001-0", "\\U0001f600", "cleaned"), ("1001-0/2", "\\U0001f601", "cleaned,conflict")]
