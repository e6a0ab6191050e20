"""note: an audit event that is no change of the queue."""

from collections.abc import Callable

import pytest

from priqueue import InvalidCaller
from priqueue.coordinator import DENIED, INTENDED, Note
from tests.support.queues import START_MS, Queue

NOTE = Note(
    action="purge", caller="user:7", outcome=INTENDED, lane="low", job="a", handler="shop.note", input="lane low",
    reason="old", correlation_id="act-1",
)  # fmt: skip


def test_a_note_is_an_event_with_all_that_it_says_and_changes_nothing_else(queue: Queue) -> None:
    queue.buried()
    before = queue.everything()

    queue.coordinator.note(NOTE)

    assert queue.event() == {
        "action": "purge", "caller": "user:7", "job": "a", "handler": "shop.note", "lane": "low", "input": "lane low",
        "outcome": "intended", "reason": "old", "correlation_id": "act-1", "at": str(START_MS),
    }  # fmt: skip
    after = queue.everything()
    assert {key: value for key, value in after.items() if key != queue.keys.audit} == {
        key: value for key, value in before.items() if key != queue.keys.audit
    }


def test_what_is_not_said_is_empty(queue: Queue) -> None:
    queue.coordinator.note(Note(action="view", caller="user:7", outcome=DENIED))

    assert queue.event() == {"action": "view", "caller": "user:7", "outcome": "denied", "at": str(START_MS)}


def test_a_note_takes_no_more_room_than_its_row_has(queue: Queue) -> None:
    queue.coordinator.note(Note(action="view", caller="user:7", outcome="o" * 9_000, input="i" * 9_000))

    event = queue.event()
    assert (len(event["outcome"]), len(event["input"])) == (200, 2048)


def test_a_caller_that_is_no_word_is_refused(queue: Queue) -> None:
    with pytest.raises(InvalidCaller, match="caller"):
        queue.coordinator.note(Note(action="view", caller="some body", outcome=DENIED))

    assert queue.everything() == {}


@pytest.mark.parametrize(("audit", "caller", "noted"), [
    ("callers", "user:7", True), ("callers", "system", False), ("off", "user:7", False),
])  # fmt: skip
def test_the_setting_decides_whose_notes_are_kept(
    make_queue: Callable[..., Queue], audit: str, caller: str, noted: bool
) -> None:
    queue = make_queue(AUDIT=audit)

    queue.coordinator.note(Note(action="view", caller=caller, outcome=DENIED))

    assert bool(queue.events()) is noted
