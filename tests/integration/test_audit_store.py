"""Storing a batch: once, in order, by one at a time; what cannot be stored as it is gets cleaned and marked."""

import threading

import pytest
from django.db import connections, transaction

from priqueue.audit.store import Held, locked, store
from priqueue.audit.verify import verify
from priqueue.coordinator import Batch
from tests.support.auditing import batch, entry, rows
from tests.support.databases import ALIAS

pytestmark = pytest.mark.usefixtures("audit_database")


def stream_ids() -> list[str]:
    return [row.stream_id for row in rows()]


def marks() -> list[str]:
    return [row.mark for row in rows()]


def test_a_batch_that_comes_again_is_stored_once() -> None:
    store(ALIAS, "n", batch(1, 2, 3))

    assert store(ALIAS, "n", batch(1, 2, 3)) == []

    assert stream_ids() == ["1001-0", "1002-0", "1003-0"]


def test_of_a_batch_that_overlaps_only_the_new_is_stored() -> None:
    store(ALIAS, "n", batch(1, 2, 3))

    store(ALIAS, "n", batch(2, 3, 4))

    assert stream_ids() == ["1001-0", "1002-0", "1003-0", "1004-0"]
    assert marks() == ["", "", "", ""]


def test_the_same_id_in_another_epoch_or_namespace_is_another_event() -> None:
    store(ALIAS, "n", batch(1))
    store(ALIAS, "n", batch(1, epoch="f"))
    store(ALIAS, "m", batch(1))

    assert [(row.namespace, row.epoch, row.mark) for row in rows()] == [("n", "e", ""), ("n", "f", ""), ("m", "e", "")]


def test_another_event_under_a_stored_id_is_stored_beside_it_and_marked() -> None:
    store(ALIAS, "n", batch(1, 2))
    other = Batch("e", [entry(2, caller="user:7")])

    (told,) = store(ALIAS, "n", other)

    assert (told.mark, told.caller) == ("conflict", "user:7")
    assert stream_ids() == ["1001-0", "1002-0", "1002-0/2"]
    assert verify(ALIAS).broken is None


def test_a_conflict_that_comes_again_is_stored_once() -> None:
    store(ALIAS, "n", batch(1))
    other = Batch("e", [entry(1, caller="user:7")])
    store(ALIAS, "n", other)

    assert store(ALIAS, "n", other) == []

    assert stream_ids() == ["1001-0", "1001-0/2"]


def test_a_second_conflict_gets_the_next_name() -> None:
    store(ALIAS, "n", batch(1))
    for caller in ("user:7", "user:8"):
        store(ALIAS, "n", Batch("e", [entry(1, caller=caller)]))

    assert stream_ids() == ["1001-0", "1001-0/2", "1001-0/3"]


def test_a_stream_whose_clock_was_set_back_loses_and_doubles_nothing() -> None:
    store(ALIAS, "n", batch(10, 11, 12))

    store(ALIAS, "n", batch(1, 2))
    store(ALIAS, "n", batch(3, 10, 13))

    assert stream_ids() == ["1010-0", "1011-0", "1012-0", "1001-0", "1002-0", "1003-0", "1013-0"]
    assert verify(ALIAS).broken is None


@pytest.mark.parametrize(
    ("text", "kept"),
    [("a\0b", "a\\x00b"), ("a\udc80b", "a\\udc80b"), ("a\ud800", "a\\ud800"), ("\x01\x7f\u202e😀", "\x01\x7f\u202e😀")],
)
def test_what_no_database_holds_is_written_as_escapes(text: str, kept: str) -> None:
    store(ALIAS, "n", Batch("e", [entry(1, reason=text), entry(2)]))

    assert [row.reason for row in rows()] == [kept, ""]
    assert marks() == ["cleaned" if kept != text else "", ""]
    assert verify(ALIAS).broken is None


def test_what_is_longer_than_its_column_is_cut_and_marked() -> None:
    store(ALIAS, "n", Batch("e", [entry(1, caller="x" * 201)]))

    (row,) = rows()
    assert (row.caller, row.mark) == ("x" * 200, "cut")


def test_fields_of_a_later_version_are_kept_in_the_reason() -> None:
    store(ALIAS, "n", Batch("e", [entry(1, reason="why", colour="red")]))

    (row,) = rows()
    assert (row.reason, row.mark) == ('why {"colour": "red"}', "extra")


@pytest.mark.parametrize("at", ["", "now", "-1", "9" * 30, "٣"])
def test_a_time_that_is_none_is_taken_from_the_id(at: str) -> None:
    store(ALIAS, "n", Batch("e", [entry(1, at=at)]))

    (row,) = rows()
    assert (row.at_ms, row.mark) == (1001, "cleaned")


def test_an_event_without_any_field_is_stored() -> None:
    store(ALIAS, "n", Batch("e", [type(entry())("5-0", {})]))

    (row,) = rows()
    assert (row.action, row.at_ms, row.mark) == ("", 5, "cleaned")


def test_a_row_that_the_database_refuses_holds_up_no_other(monkeypatch) -> None:
    monkeypatch.setattr("priqueue.audit.rows._fitting", lambda text, *_: text)  # as if it had overlooked something

    bad = entry(2, reason="é\0") if connections[ALIAS].vendor == "postgresql" else entry(2)
    store(ALIAS, "n", Batch("e", [entry(1), bad, entry(3)]))

    assert stream_ids() == ["1001-0", "1002-0", "1003-0"]
    assert verify(ALIAS).broken is None
    if connections[ALIAS].vendor == "postgresql":
        assert [(row.reason, row.mark) for row in rows()] == [("", ""), ("\\xe9\\x00", "cleaned"), ("", "")]


def test_while_one_holds_the_lock_another_stands_by() -> None:
    if connections[ALIAS].vendor == "sqlite":
        connections[ALIAS].settings_dict["OPTIONS"]["timeout"] = 0.05
    outcomes: list[str] = []

    def other() -> None:
        try:
            store(ALIAS, "n", batch(1))
        except Exception as error:
            outcomes.append(type(error).__name__)
        finally:
            connections[ALIAS].close()

    with locked(ALIAS):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    assert outcomes == ["Held" if connections[ALIAS].vendor == "postgresql" else "OperationalError"]
    assert rows() == []


def test_the_lock_ends_with_its_transaction() -> None:
    with pytest.raises(Held), locked(ALIAS):
        raise Held

    with locked(ALIAS), transaction.atomic(using=ALIAS):
        pass
    assert len(store(ALIAS, "n", batch(1))) == 1


def test_a_role_that_commits_without_waiting_for_the_disk_waits_here(audit_database: str) -> None:
    if connections[ALIAS].vendor == "sqlite":
        return
    with connections[ALIAS].cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")
        with locked(ALIAS):
            cursor.execute("SHOW synchronous_commit")
            inside = cursor.fetchone()[0]
        cursor.execute("SHOW synchronous_commit")

        assert (inside, cursor.fetchone()[0]) == ("on", "off")
