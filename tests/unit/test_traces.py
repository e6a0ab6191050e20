"""What is kept of an exception, whatever it is made of."""

import re
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priqueue import traces
from priqueue.jobs import Failure


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    def __repr__(self):
        raise RuntimeError("no repr")


class Leaving(Exception):
    def __str__(self):
        raise SystemExit(3)


class Bytes(Exception):
    def __str__(self):
        return b"no text"


class EvilText(str):
    __slots__ = ()

    def __getitem__(self, key):
        raise RuntimeError("sliced")

    def __len__(self):
        raise RuntimeError("measured")

    def __str__(self):
        return self


class Overridden(Exception):
    def __str__(self):
        return EvilText("evil")


class Nameless(type):
    def __getattribute__(cls, name):
        if name in ("__name__", "__qualname__", "__module__"):
            raise RuntimeError(f"no {name}")
        return super().__getattribute__(name)


class OfNameless(Exception, metaclass=Nameless):
    pass


class Lying(Exception):
    @property
    def __cause__(self):
        raise RuntimeError("no cause")

    @property
    def __context__(self):
        raise RuntimeError("no context")

    @property
    def __traceback__(self):
        raise RuntimeError("no traceback")

    @property
    def __notes__(self):
        raise RuntimeError("no notes")


def caught(exception, *, cause=None):
    try:
        raise exception from cause
    except BaseException as raised:
        return raised


def chain(length):
    link = None
    for number in range(length):
        link = caught(ValueError(f"link {number}"), cause=link)
    return link


def cycle():
    first, second = caught(ValueError("first")), caught(ValueError("second"))
    first.__cause__, second.__cause__ = second, first
    return first


def nested_groups(depth):
    group = BaseExceptionGroup("deepest", [KeyboardInterrupt()])
    for level in range(depth):
        group = BaseExceptionGroup(f"level {level}", [group, ValueError("beside")])
    return group


def endless():
    return endless()


def too_deep():
    try:
        endless()
    except RecursionError as error:
        return error


def syntax_error():
    try:
        compile("def (:\n", "\udce9.py", "exec")
    except SyntaxError as error:
        return error


def unencodable():
    try:
        "\ud800".encode()
    except UnicodeEncodeError as error:
        return error


def noted():
    error = ValueError("noted")
    error.__notes__ = [Silent(), "x" * 5_000, 5, *(["again"] * 500)]
    return error


def odd_notes():
    error = ValueError("noted")
    error.__notes__ = 5
    return error


NASTY = {
    "its str raises": Silent(),
    "its str exits": Leaving(),
    "its str is bytes": Bytes(),
    "its str is an evil subclass": Overridden(),
    "its metaclass raises": OfNameless("hidden"),
    "its properties raise": caught(Lying("lying")),
    "10 MB": ValueError("x" * 10_000_000),
    "10 MB of control characters": ValueError("\x00" * 10_000_000),
    "10 MB of lines": ValueError("\n" * 10_000_000),
    "NUL": ValueError("a\x00b"),
    "lone surrogates": ValueError("\ud800 and \udfff"),
    "bytes": ValueError(b"\x9c\xff"),
    "ANSI": ValueError("\x1b[31mred\x1b[0m"),
    "right to left": ValueError("\u202egnp.exe \u2066x"),
    "emoji": ValueError("🐍 né"),
    "no message": ValueError(),
    "200 causes": chain(200),
    "50,000 causes": chain(50_000),
    "a cycle": cycle(),
    "itself": caught(ValueError("self")),
    "a group of 1,000": ExceptionGroup("many", [ValueError(str(number)) for number in range(1_000)]),
    "nested groups": nested_groups(40),
    "recursion": too_deep(),
    "memory": MemoryError(),
    "syntax": syntax_error(),
    "unencodable": unencodable(),
    "notes": noted(),
    "odd notes": odd_notes(),
    "a spaced name": type('a "b"\\\n\x00c'.replace("\x00", "\x01"), (Exception,), {})("odd"),
    "a name of 10,000": type("N" * 10_000, (Exception,), {})("long"),
    "an odd module": type("Odd", (Exception,), {"__module__": 5})("odd"),
    "a surrogate module": type("Odd", (Exception,), {"__module__": "\ud800"})("odd"),
    "a key error": KeyError("k" * 5_000),
    "a group told twice": ExceptionGroup("twice", [same := ValueError("same"), same]),
}


@pytest.mark.parametrize("exception", NASTY.values(), ids=NASTY.keys())
def test_whatever_an_exception_is_made_of_its_record_is_bounded_and_can_be_stored(exception):
    error, message, traceback = traces.render(exception)

    assert re.fullmatch(r"[^\s\"\\\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,200}", error)
    assert len(message) <= 2_000
    assert len(traceback.encode("utf-8")) <= 16 * 1024
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", (error + message + traceback))
    assert {type(error), type(message), type(traceback)} == {str}


@given(st.text(alphabet=st.characters(exclude_categories=())), st.text(max_size=30))
def test_any_text_in_an_exception_can_be_stored(message, note):
    exception = ValueError(message)
    exception.add_note(note)

    for text in traces.render(exception):
        assert text.encode("utf-8").decode("utf-8") == text
        assert "\x00" not in text


@pytest.mark.parametrize(
    ("exception", "error", "message"),
    [
        (ValueError("plain"), "ValueError", "plain"),
        (Silent(), "tests.unit.test_traces.Silent", "the message cannot be shown"),
        (Leaving(), "tests.unit.test_traces.Leaving", "the message cannot be shown"),
        (Overridden(), "tests.unit.test_traces.Overridden", "evil"),
        (OfNameless("hidden"), "tests.unit.test_traces.OfNameless", "hidden"),
        (ValueError("a\x00b\ud800\x1b[31m\r\u202e"), "ValueError", r"a\x00b\ud800\x1b[31m\x0d\u202e"),
        (ValueError("kept:\n\tthe 🐍"), "ValueError", "kept:\n\tthe 🐍"),
        (KeyError("missing"), "KeyError", "'missing'"),
        (SystemExit(3), "SystemExit", "3"),
        (ValueError(), "ValueError", ""),
        (type("Odd", (Exception,), {"__module__": None})(), "Odd", ""),
        (type("an odd\nname", (Exception,), {"__module__": "shop"})(), "shop.an_odd_name", ""),
    ],
)
def test_the_error_is_the_types_name_and_the_message_what_it_says(exception, error, message):
    assert traces.render(exception)[:2] == (error, message)


def test_a_long_message_says_how_long_it_was():
    message = traces.render(ValueError("x" * 10_000_000))[1]

    assert message == "x" * (2_000 - len("… (10,000,000 characters)")) + "… (10,000,000 characters)"


def test_a_message_of_2000_characters_is_kept_whole():
    assert traces.render(ValueError("é" * 2_000))[1] == "é" * 2_000


def test_a_traceback_reads_as_python_shows_it_and_shows_no_local_variables():
    password = "hunter" + "2"

    traceback = traces.render(caught(ValueError(f"{len(password)} characters")))[2]

    assert traceback.startswith("Traceback (most recent call last):\n  File ")
    assert traceback.endswith("ValueError: 7 characters\n")
    assert "raise exception from cause" in traceback
    assert password not in traceback


def test_causes_contexts_and_notes_are_told_oldest_first():
    try:
        try:
            raise caught(KeyError("oldest"), cause=OSError("disk"))
        except KeyError:
            raise ValueError("newest") from None
    except ValueError as raised:
        raised.__suppress_context__ = False
        raised.add_note("seen on Monday")
        lines = traces.render(raised)[2].splitlines()

    told = [line for line in lines if not line.startswith((" ", "Traceback"))]

    assert told == [
        "OSError: disk",
        "",
        "That was the direct cause of:",
        "",
        "KeyError: 'oldest'",
        "",
        "While that was handled, there came:",
        "",
        "ValueError: newest",
        "seen on Monday",
    ]


def test_a_suppressed_context_is_not_told():
    raised = caught(ValueError("shown"))
    raised.__context__ = KeyError("hidden")
    raised.__suppress_context__ = True

    assert "hidden" not in traces.render(raised)[2]


def test_each_exception_of_a_cycle_is_told_once():
    traceback = traces.render(cycle())[2]

    assert (traceback.count("ValueError: first"), traceback.count("ValueError: second")) == (1, 1)


def test_of_200_causes_the_oldest_and_the_newest_are_kept():
    traceback = traces.render(chain(200))[2]

    assert "ValueError: link 0\n" in traceback
    assert traceback.endswith("ValueError: link 199\n")
    assert re.search(r"\n… [\d,]+ characters left out …\n", traceback)


def test_of_endless_causes_the_newest_are_kept_and_it_says_so():
    traceback = traces.render(chain(1_000))[2]

    assert traceback.startswith("(earlier causes are left out)\n")
    assert traceback.endswith("ValueError: link 999\n")


def test_a_group_tells_its_first_members_and_how_many_are_left_out():
    traceback = traces.render(ExceptionGroup("many", [ValueError(str(n)) for n in range(1_000)]))[2]

    assert traceback.startswith("ExceptionGroup: many (1000 sub-exceptions)\n  1 of 1,000:\n    ValueError: 0\n")
    assert traceback.endswith("  20 of 1,000:\n    ValueError: 19\n  … 980 exceptions left out …\n")


def test_a_member_tells_its_own_cause_and_a_repeated_member_is_told_once():
    member = ValueError("inner")
    member.__cause__ = OSError("disk")

    traceback = traces.render(ExceptionGroup("two", [member, member]))[2]

    assert traceback == (
        "ExceptionGroup: two (2 sub-exceptions)\n"
        "  1 of 2:\n"
        "    OSError: disk\n"
        "    \n"
        "    That was the direct cause of:\n"
        "    \n"
        "    ValueError: inner\n"
        "  2 of 2:\n"
        "    (told above)\n"
    )


def test_deep_groups_end_at_a_bound():
    assert "exceptions left out" in traces.render(nested_groups(40))[2]


def test_of_a_long_recursion_the_first_and_last_frames_are_kept():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(5_000)
    try:
        traceback = traces.render(too_deep())[2]
    finally:
        sys.setrecursionlimit(limit)

    assert "in too_deep" in traceback
    assert re.search(r"  … [\d,]+ frames left out …\n", traceback)
    assert traceback.endswith("RecursionError: maximum recursion depth exceeded\n")


def test_the_left_out_characters_are_counted():
    error = ValueError("start")
    error.__notes__ = ["é" * 1_999 for _ in range(10)]
    full = len("ValueError: start\n") + 10 * 2_000

    traceback = traces.render(error)[2]

    left_out = int(re.search(r"… ([\d,]+) characters left out …", traceback)[1].replace(",", ""))
    marker = f"\n… {left_out:,} characters left out …\n"
    assert len(traceback) - len(marker) + left_out == full


def test_a_huge_message_is_never_copied():
    exception = caught(ValueError("x" * 10_000_000), cause=ValueError("y" * 10_000_000))
    tracemalloc.start()
    try:
        traces.render(exception)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak_bytes < 2_000_000


def test_a_failure_is_made_of_any_exception():
    assert Failure.of(KeyError("k")) == Failure(error="KeyError", message="'k'", traceback="KeyError: 'k'\n")
