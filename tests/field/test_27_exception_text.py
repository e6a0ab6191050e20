"""Case 27: the text of an error breaks the path that records it, and the job is stuck."""

import json

import pytest

from priqueue.jobs import Failure


class Mute(Exception):
    def __str__(self):
        raise UnicodeDecodeError("utf-8", b"\x9c", 0, 1, "invalid start byte")

    __repr__ = __str__


def raised(exception):
    try:
        raise exception
    except BaseException as error:
        return error


CASES = [
    (ValueError("🐍 naïve"), "ValueError", "🐍 naïve"),
    (ValueError(b"\x9c"), "ValueError", r"b'\x9c'"),
    (ValueError("\udc9c"), "ValueError", r"\udc9c"),
    (ValueError("nul\x00nul"), "ValueError", r"nul\x00nul"),
    (ValueError("\x1b[2J\x1b]0;title\x07"), "ValueError", r"\x1b[2J\x1b]0;title\x07"),
    (ValueError("\u202egnp.exe"), "ValueError", r"\u202egnp.exe"),
    (ValueError("שלום\u200f"), "ValueError", "שלום\u200f"),
    (Mute(), "tests.field.test_27_exception_text.Mute", "the message cannot be shown"),
    (ValueError("\u0000" * 10_000_000), "ValueError", None),
    (ValueError("x" * 10_000_000), "ValueError", None),
]
IDS = ["emoji", "bytes", "surrogate", "NUL", "ANSI", "override", "Hebrew", "mute", "10 MB of NUL", "10 MB"]


@pytest.mark.parametrize(("exception", "error", "message"), CASES, ids=IDS)
def test_any_text_of_an_error_is_recorded_readable_and_bounded(exception, error, message):
    failure = Failure.of(raised(exception))

    assert failure.error == error
    assert message in (None, failure.message)
    assert len(failure.message) <= 2_000
    assert len(failure.traceback.encode()) <= 16 * 1024


@pytest.mark.parametrize("exception", [case[0] for case in CASES], ids=IDS)
def test_the_record_of_any_error_is_json_that_every_store_takes(exception):
    failure = Failure.of(raised(exception))

    record = json.dumps([failure.error, failure.message, failure.traceback], ensure_ascii=False).encode("utf-8")

    assert json.loads(record) == [failure.error, failure.message, failure.traceback]
    assert b"\\u0000" not in record
    assert b"\x00" not in record


def test_an_error_while_an_error_is_handled_is_recorded_too():
    try:
        try:
            raise Mute
        except Mute:
            raise ValueError("\ud800") from None
    except ValueError as error:
        error.__cause__ = Mute()
        traceback = Failure.of(error).traceback

    assert "Mute: the message cannot be shown" in traceback
    assert traceback.endswith("ValueError: \\ud800\n")
