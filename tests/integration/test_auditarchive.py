"""auditarchive: what is old leaves the log, verified and exported, and the chain goes on from there."""

import json
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connections, transaction

from priqueue.audit.store import store
from priqueue.audit.verify import verify
from priqueue.clock import wall_ms
from tests.support.auditing import batch, by_force, guard_again, rows
from tests.support.databases import ALIAS

OLD_MS = 1_700_000_000_000


@pytest.fixture(autouse=True)
def _six_old_rows_and_four_new(audit_database: str) -> None:
    """The first six were stored in 2023, by the word of SQLite's clock; on PostgreSQL the test waits for it instead."""
    if connections[audit_database].vendor == "sqlite":
        with patch("priqueue.audit.chain.clock.wall_ms", return_value=OLD_MS):
            store(audit_database, "n", batch(*range(1, 7)))
    else:
        by_force(
            "ALTER FUNCTION priqueue_audit_append() RENAME TO priqueue_audit_append_now",
            "DO $x$ BEGIN EXECUTE replace(replace(pg_get_functiondef('priqueue_audit_append_now'::regproc),"
            f" 'append_now', 'append'), 'extract(epoch FROM clock_timestamp())', '{OLD_MS / 1000}'); END $x$",
            "DROP TRIGGER priqueue_audit_append ON priqueue_auditevent",
            "CREATE TRIGGER priqueue_audit_append BEFORE INSERT ON priqueue_auditevent"
            " FOR EACH ROW EXECUTE FUNCTION priqueue_audit_append()",
        )
        guard_again()
        store(audit_database, "n", batch(*range(1, 7)))
        by_force(
            "DROP TRIGGER priqueue_audit_append ON priqueue_auditevent",
            "DROP FUNCTION priqueue_audit_append()",
            "ALTER FUNCTION priqueue_audit_append_now() RENAME TO priqueue_audit_append",
            "CREATE TRIGGER priqueue_audit_append BEFORE INSERT ON priqueue_auditevent"
            " FOR EACH ROW EXECUTE FUNCTION priqueue_audit_append()",
        )
        guard_again()
    store(audit_database, "n", batch(*range(7, 11)))


def archive(file: Path, *options: str) -> str:
    out = StringIO()
    usual = ("--before", "30d", "--to", str(file), "--reason", "kept for a month", "--yes")
    call_command("auditarchive", *usual, *options, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_old_rows_are_in_the_file_and_new_ones_in_the_log(tmp_path: Path) -> None:
    before = rows()

    said = archive(tmp_path / "old.jsonl")

    lines = [json.loads(line) for line in (tmp_path / "old.jsonl").read_text().splitlines()]
    assert [(line["id"], line["stream_id"], line["hash"]) for line in lines] == [
        (row.id, row.stream_id, bytes(row.hash).hex()) for row in before[:6]
    ]
    assert [row.id for row in rows()] == [7, 8, 9, 10, 11]
    assert said == f"archived 6 rows, up to 6, in {tmp_path / 'old.jsonl'}\n"


def test_the_chain_goes_on_from_the_archive_and_says_who_did_it(tmp_path: Path) -> None:
    archive(tmp_path / "old.jsonl")

    event = rows()[-1]
    assert (event.action, event.outcome, event.reason) == ("archive", "6 rows", "kept for a month")
    assert event.caller.startswith("command:")
    report = verify(ALIAS)
    assert (report.broken, report.first_id, report.last_id, report.checked) == (None, 7, 11, 5)
    store(ALIAS, "n", batch(11))
    assert verify(ALIAS).broken is None


def test_a_second_archive_takes_the_record_of_the_first_along(tmp_path: Path) -> None:
    archive(tmp_path / "old.jsonl")
    archive(tmp_path / "all.jsonl", "--before", "0s")

    assert [row.action for row in rows()] == ["archive"]
    assert verify(ALIAS).broken is None
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 5


def test_after_an_archive_nothing_can_be_changed_as_before(tmp_path: Path) -> None:
    archive(tmp_path / "old.jsonl")

    for attempt in ("UPDATE priqueue_auditevent SET reason = 'x'", "DELETE FROM priqueue_auditevent"):
        with pytest.raises(DatabaseError), transaction.atomic(using=ALIAS), connections[ALIAS].cursor() as cursor:
            cursor.execute(attempt)

    assert len(rows()) == 5


def test_rows_that_were_cut_off_at_the_beginning_do_not_pass_for_archived(tmp_path: Path) -> None:
    archive(tmp_path / "old.jsonl")

    by_force("DELETE FROM priqueue_auditevent WHERE id = 7")

    broken = verify(ALIAS).broken
    assert broken is not None
    assert broken.kind == "missing"


def test_a_broken_chain_is_not_archived(tmp_path: Path) -> None:
    by_force("UPDATE priqueue_auditevent SET reason = 'x' WHERE id = 3")
    guard_again()

    with pytest.raises(CommandError, match="row 3 is edited"):
        archive(tmp_path / "old.jsonl")

    assert len(rows()) == 10
    assert not (tmp_path / "old.jsonl").exists()


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "old.jsonl").write_text("mine")

    with pytest.raises(CommandError, match="nothing was deleted"):
        archive(tmp_path / "old.jsonl")

    assert (tmp_path / "old.jsonl").read_text() == "mine"
    assert len(rows()) == 10


def test_a_deletion_that_fails_leaves_the_log_and_its_triggers_as_they_were(tmp_path: Path) -> None:
    failing = patch("priqueue.audit.archive.insert", side_effect=DatabaseError("no"))
    with failing, pytest.raises(CommandError, match="nothing was deleted"):
        archive(tmp_path / "old.jsonl")

    assert len(rows()) == 10
    with pytest.raises(DatabaseError), transaction.atomic(using=ALIAS), connections[ALIAS].cursor() as cursor:
        cursor.execute("DELETE FROM priqueue_auditevent")


def test_when_no_row_is_so_old_nothing_is_done(tmp_path: Path) -> None:
    assert archive(tmp_path / "old.jsonl", "--before", "9999d") == "no row is so old\n"
    assert not (tmp_path / "old.jsonl").exists()


def test_without_anybody_to_ask_it_asks_for_yes(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="use --yes"):
        call_command("auditarchive", "--before", "30d", "--to", str(tmp_path / "f"), "--reason", "x")


def test_an_anchor_from_before_an_archive_still_lets_the_log_pass(tmp_path: Path) -> None:
    anchors = str(tmp_path / "anchors")
    call_command("verifyaudit", "--anchor", anchors, stdout=StringIO())
    archive(tmp_path / "old.jsonl")

    call_command("verifyaudit", "--anchor", anchors, stdout=StringIO())

    assert len(Path(anchors).read_text().splitlines()) == 2
    assert wall_ms() > OLD_MS
