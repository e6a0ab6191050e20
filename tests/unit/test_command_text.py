"""How commands print, and the values that their options take."""

import argparse
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from priqueue import jobs
from priqueue.management import sessions
from priqueue.management.options import moment, whole
from priqueue.management.text import block, table, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ä and 文", "plain, ä and 文"),
        ("\x1b[2J\r\n\t", r"\x1b[2J\r\n\t"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\udcff", r"\udcff"),
        (7, "7"),
    ],
)
def test_nothing_that_is_printed_commands_a_terminal(text: object, shown: str) -> None:
    assert visible(text) == shown


def test_a_block_keeps_its_lines_and_nothing_else_that_is_not_printable() -> None:
    assert block("one\n  two\x1b\n") == "    one\n      two\\x1b"


def test_a_table_is_as_wide_as_its_cells_and_numbers_stand_to_the_right() -> None:
    assert table(("name", "n"), [("a", 1), ("much\nlonger", 1000)]) == (
        "name             n\na                1\nmuch\\nlonger  1000"
    )


def test_a_table_without_rows_is_its_head() -> None:
    assert table(("name", "n"), []) == "name  n"


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", ""])
def test_a_number_that_is_not_whole_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no whole number"):
        whole(text)


def test_a_time_is_read_in_djangos_zone_or_its_own() -> None:
    assert moment("2026-11-29T03:00:00+01:00") == datetime(2026, 11, 29, 2, tzinfo=UTC)
    with timezone.override(timezone.get_fixed_timezone(60)):
        assert moment("2026-11-29T03:00") == datetime(2026, 11, 29, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "ago"), [("30s", timedelta(seconds=30)), ("90m", timedelta(minutes=90)), ("7d", timedelta(days=7))]
)
def test_a_time_can_be_an_age(monkeypatch: pytest.MonkeyPatch, text: str, ago: timedelta) -> None:
    now = datetime(2026, 11, 29, tzinfo=UTC)
    monkeypatch.setattr(jobs, "now", lambda: now)

    assert moment(text) == now - ago


@pytest.mark.parametrize("text", ["", "soon", "5", "5w", "2026-13-01T00:00", "999999999d"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no time"):
        moment(text)


@pytest.mark.parametrize(("name", "word"), [("alice", "alice"), ("DOMAIN\\al ice", "DOMAIN_al_ice")])
def test_the_systems_user_becomes_a_caller(monkeypatch: pytest.MonkeyPatch, name: str, word: str) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: name)

    assert sessions.user() == word


@pytest.mark.parametrize("error", [KeyError("uid not found"), OSError("no name")])
def test_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def nameless() -> str:
        raise error

    monkeypatch.setattr("getpass.getuser", nameless)
    monkeypatch.setattr("os.getuid", lambda: 4711)

    assert sessions.user() == "uid-4711"
