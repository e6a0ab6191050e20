"""verifyaudit: every edit that the table's owner makes by force is found, and named."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from priqueue.audit import chain
from priqueue.audit.store import store
from priqueue.audit.verify import verify
from tests.support.auditing import batch, by_force, guard_again, rows
from tests.support.databases import ALIAS

TABLE = "priqueue_auditevent"
COLUMNS = (
    "at_ms, stored_ms, namespace, epoch, stream_id, action, caller, job, handler, lane, input, outcome, reason,"
    " correlation_id, mark"
)


@pytest.fixture(autouse=True)
def _ten_rows(audit_database: str) -> None:
    store(audit_database, "n", batch(*range(1, 11)))


def said(*options: str) -> dict:
    """Return what the command prints as JSON, and whether it failed."""
    out = StringIO()
    try:
        call_command("verifyaudit", "--json", *options, stdout=out, stderr=StringIO())
    except CommandError as error:
        return {**json.loads(out.getvalue()), "exit": error.returncode}
    return {**json.loads(out.getvalue()), "exit": 0}


def found(*options: str) -> tuple[int, str]:
    """Return row and kind of the break that the command finds."""
    report = said(*options)
    assert (report["ok"], report["exit"]) == (False, 1)
    return report["break"]["id"], report["break"]["kind"]


def rehashed(row_id: int, reason: str) -> None:
    """Change a row and give it the hash that fits it."""
    row = next(row for row in rows() if row.id == row_id)
    row.reason = reason
    own = chain.digest(bytes(row.previous), row.id, chain.content_of(row))
    by_force(f"UPDATE {TABLE} SET reason = %s, hash = %s WHERE id = %s", params=[reason, own, row_id])


def swap(one: int, other: int) -> None:
    """Exchange the places of two rows, each with its hashes."""
    for before, after in ((one, -1), (other, one), (-1, other)):
        by_force(f"UPDATE {TABLE} SET id = %s WHERE id = %s", params=[after, before])


def test_an_untouched_log_is_whole_to_its_head() -> None:
    head = rows()[-1]

    assert said() == {
        "ok": True, "checked": 10, "first_id": 1, "last_id": 10, "hash": bytes(head.hash).hex(), "break": None,
        "exit": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        "reason = 'nothing'", "caller = 'user:1'", "at_ms = at_ms + 1", "stored_ms = stored_ms - 1", "mark = 'cut'",
        "epoch = 'f'", "job = '', lane = job || lane", "action = action || caller, caller = ''",
    ],
)  # fmt: skip
def test_an_edited_row_is_found(change: str) -> None:
    by_force(f"UPDATE {TABLE} SET {change} WHERE id = 4")

    assert found() == (4, "edited")


def test_an_edited_last_row_is_found() -> None:
    by_force(f"UPDATE {TABLE} SET reason = 'x' WHERE id = 10")

    assert found() == (10, "edited")


def test_a_row_that_was_edited_and_hashed_anew_is_found_by_the_row_after_it() -> None:
    rehashed(4, "nothing")

    assert found() == (4, "forged")


def test_a_changed_hash_is_found() -> None:
    by_force(f"UPDATE {TABLE} SET hash = previous WHERE id = 4")

    assert found() == (4, "edited")


def test_a_row_taken_out_of_the_middle_is_found() -> None:
    by_force(f"DELETE FROM {TABLE} WHERE id = 4")

    assert found() == (4, "missing")


def test_rows_taken_from_the_beginning_are_found() -> None:
    by_force(f"DELETE FROM {TABLE} WHERE id < 3")

    assert found() == (1, "missing")


def test_a_gap_that_was_closed_by_new_numbers_is_found() -> None:
    by_force(f"DELETE FROM {TABLE} WHERE id = 4")
    for row_id in range(5, 11):
        by_force(f"UPDATE {TABLE} SET id = {row_id - 1} WHERE id = {row_id}")

    assert found() == (4, "forged")


@pytest.mark.parametrize(("one", "other"), [(4, 5), (4, 8), (9, 10), (1, 2)])
def test_rows_that_changed_places_are_found(one: int, other: int) -> None:
    swap(one, other)

    assert found() == (one, "swapped")


def test_rows_that_changed_what_they_say_are_found() -> None:
    by_force(f"CREATE TABLE kept AS SELECT * FROM {TABLE}")
    by_force(f"UPDATE {TABLE} SET stream_id = stream_id || 'x'")
    for one, other in ((4, 7), (7, 4)):
        by_force(f"UPDATE {TABLE} SET ({COLUMNS}) = (SELECT {COLUMNS} FROM kept WHERE id = {other}) WHERE id = {one}")
    for row_id in (1, 2, 3, 5, 6, 8, 9, 10):
        by_force(f"UPDATE {TABLE} SET stream_id = (SELECT stream_id FROM kept WHERE id = {row_id}) WHERE id = {row_id}")

    assert found() == (4, "swapped")


def test_a_row_that_was_put_in_at_the_end_without_the_trigger_is_found() -> None:
    by_force(
        f"INSERT INTO {TABLE} (id, previous, hash, {COLUMNS}) SELECT 11, previous, hash, at_ms, stored_ms, namespace,"
        f" epoch, 'x', action, caller, job, handler, lane, input, outcome, reason, correlation_id, mark"
        f" FROM {TABLE} WHERE id = 10"
    )

    assert found() == (11, "forged")


def test_a_check_since_a_time_begins_there() -> None:
    by_force(f"UPDATE {TABLE} SET reason = 'x' WHERE id = 4", f"UPDATE {TABLE} SET stored_ms = 0 WHERE id < 6")

    assert said("--since", "1h")["checked"] == 5
    assert found() == (1, "edited")


def test_a_check_since_a_time_after_the_last_row_checks_nothing_and_says_where_the_log_ends() -> None:
    report = said("--since", "0s")

    assert (report["checked"], report["last_id"], report["ok"]) == (0, 10, True)


def test_a_cut_tail_is_found_only_by_an_anchor(tmp_path: Path) -> None:
    anchor = str(tmp_path / "anchors")
    assert said("--anchor", anchor)["exit"] == 0

    by_force(f"DELETE FROM {TABLE} WHERE id > 7")

    assert said()["ok"]
    assert found("--anchor", anchor) == (8, "missing")


def test_an_emptied_log_is_found_by_an_anchor(tmp_path: Path) -> None:
    anchor = str(tmp_path / "anchors")
    said("--anchor", anchor)

    by_force(f"DELETE FROM {TABLE}")

    assert found("--anchor", anchor) == (1, "missing")


def test_a_chain_that_was_made_anew_is_found_by_an_anchor(tmp_path: Path, audit_database: str) -> None:
    anchor = str(tmp_path / "anchors")
    said("--anchor", anchor)
    by_force(f"DELETE FROM {TABLE} WHERE id > 7")
    guard_again()
    store(audit_database, "n", batch(*range(20, 30)))

    assert verify(ALIAS).broken is None
    assert found("--anchor", anchor) == (10, "forged")


def test_an_anchor_is_added_with_every_check_that_holds(tmp_path: Path, audit_database: str) -> None:
    file = tmp_path / "anchors"
    said("--anchor", str(file))
    store(audit_database, "n", batch(11))
    said("--anchor", str(file))

    assert [json.loads(line)["id"] for line in file.read_text().splitlines()] == [10, 11]


def test_a_file_that_holds_no_anchors_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("milk\n")

    with pytest.raises(CommandError, match="line 1: no anchor"):
        call_command("verifyaudit", "--anchor", str(tmp_path / "notes"), stdout=StringIO())


def test_an_alias_that_is_none_is_refused_in_one_line() -> None:
    with pytest.raises(CommandError, match="DATABASES has no 'nowhere'"):
        call_command("verifyaudit", "--database", "nowhere")
