"""A child as its parent hears it: what it says, what cannot be understood, and its end."""

import json
import threading
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from priqueue import children
from priqueue.children import Child
from priqueue.ears import Ears
from priqueue.executor import Outcome, Verdict
from priqueue.jobs import Claim, Failure, Job
from priqueue.runner import key_of
from tests.support.waiting import until

CLAIM = Claim(
    job=Job(id="j", name="tests.note", payload={}), token="t", worker_id="w", lane="default", attempt=1, crashes=0,
    deadline_ms=0, ready_since_ms=0,
)  # fmt: skip
ACK = [["j", "t"], "ack", 0.5, None, 0, ""]


class Heard:
    """What a child was heard to say, by a loop that the test turns."""

    def __init__(self) -> None:
        self.ears = Ears()
        self.said: list[tuple[str, Any]] = []
        self.child = Child(1, lambda _, what, value: self.said.append((what, value)), self.ears)
        self.child.runs[key_of(CLAIM)] = CLAIM

    def until_there_are(self, number: int) -> list[tuple[str, Any]]:
        """Turn the loop until so much was said."""

        def is_said() -> bool:
            self.ears.wait(0.01)
            self.ears.listen()
            return len(self.said) >= number

        until(is_said)
        return self.said


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Make a child that says something and then waits to be ended."""
    made: list[Heard] = []

    def make(said: str) -> Heard:
        text = repr(said.encode()).replace("{", "{{").replace("}", "}}")
        code = "import socket; line = socket.socket(fileno={descriptor})"
        code += f"; line.sendall({text}); line.recv(1)  # {{path}} {{parent}} {{threads}}"
        monkeypatch.setattr(children, "_START", code)
        made.append(Heard())
        return made[-1]

    yield make
    for each in made:
        each.child.end()


def line(*messages: Any) -> str:
    return json.dumps(messages) + "\n"


def test_what_it_says_is_told_in_its_order_and_its_end_at_last(heard: Any) -> None:
    found = heard(line(["ready", None]) + line(["done", ACK], ["interrupted", ["j", "t"]]))
    found.until_there_are(3)

    found.child.kill()

    assert found.until_there_are(4) == [
        ("ready", None),
        ("done", Outcome(claim=CLAIM, verdict=Verdict.ACK, run_s=0.5)),
        ("interrupted", ("j", "t")),
        ("gone", None),
    ]


@pytest.mark.parametrize(
    "said",
    [
        "no JSON\n",
        line(["gone", None]),
        line(["told", 1]),
        line(["interrupted", [["j"], "t"]]),
        line(["done", [["j", "other"], *ACK[1:]]]),
        *(line(["done", [*ACK[:2], run_s, *ACK[3:]]]) for run_s in ("x", None, float("nan"), float("inf"), 1e300, -1)),
        line(["done", [*ACK[:4], "soon", ""]]),
        line(["done", [*ACK[:3], [1, 2, 3], 0, ""]]),
        line(["done", [*ACK[:5], None]]),
        *(line(["done", [ACK[0], verdict, *ACK[2:]]]) for verdict in ("won", ["ack"], None)),
    ],
)
def test_a_child_that_says_what_no_child_says_is_ended_and_nothing_of_it_is_told(heard: Any, said: str) -> None:
    found = heard(said)

    assert found.until_there_are(1) == [("gone", None)]
    assert found.child.cause_of_death() == "signal 9 (Killed)"


def test_text_that_has_no_utf_8_is_told_as_it_was_said(heard: Any) -> None:
    failed = [["j", "t"], "bury", 0.5, ["ValueError", "half \ud800", ""], 0, ""]
    failure = Failure(error="ValueError", message="half \ud800")

    told = heard(line(["done", failed])).until_there_are(1)

    assert told == [("done", Outcome(claim=CLAIM, verdict=Verdict.BURY, run_s=0.5, failure=failure))]


def test_a_line_without_an_end_is_not_kept_for_ever(heard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_LONGEST_LINE", 1000)
    found = heard("x" * 1001)

    assert found.until_there_are(1) == [("gone", None)]


def test_where_no_thread_can_be_started_its_end_is_told_all_the_same(
    heard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = heard(line(["done", ACK]))
    found.until_there_are(1)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
        found.child.kill()

        assert found.until_there_are(2)[1:] == [("gone", None)]
