"""The claim loop wakes for a bell and for whoever speaks, and hears only those who have something to say."""

import socket
from collections.abc import Iterator

import pytest

from priqueue.clock import monotonic_s
from priqueue.ears import Ears

LONG_S = 60


class Child:
    """Somebody who speaks, and whose words are noted when they are heard."""

    def __init__(self) -> None:
        self.line, self.theirs = socket.socketpair()
        self.heard: list[bytes] = []

    def fileno(self) -> int:
        return self.line.fileno()

    def hear(self) -> bool:
        self.heard.append(self.line.recv(4))
        return len(self.heard[-1]) == 4


@pytest.fixture
def children() -> Iterator[tuple[Child, Child]]:
    both = Child(), Child()
    yield both
    for child in both:
        child.line.close()
        child.theirs.close()


def waits(ears: Ears, seconds: float = LONG_S) -> bool:
    """Return whether a wait was over before its time."""
    began_s = monotonic_s()
    ears.wait(seconds)
    return monotonic_s() - began_s < seconds


def test_a_ring_from_before_ends_the_next_wait_and_no_other() -> None:
    ears = Ears()
    for _ in range(3):
        ears.ring()

    assert (waits(ears), waits(ears, 0.01)) == (True, False)


def test_more_rings_than_a_pipe_holds_block_nobody() -> None:
    ears = Ears()

    for _ in range(100_000):
        ears.ring()

    assert waits(ears)


def test_a_word_ends_the_wait_until_it_is_heard(children: tuple[Child, Child]) -> None:
    ears, (one, other) = Ears(), children
    ears.add(one)
    ears.add(other)
    one.theirs.send(b"end")

    woken = waits(ears), waits(ears)
    ears.listen()

    assert (woken, one.heard, other.heard) == ((True, True), [b"end"], [])
    assert not waits(ears, 0.01)


def test_who_has_more_to_say_than_can_be_heard_at_once_is_heard_to_the_end(children: tuple[Child, Child]) -> None:
    ears, (one, other) = Ears(), children
    ears.add(one)
    ears.add(other)
    one.theirs.send(b"0123456789")
    other.theirs.send(b"end")

    ears.listen()

    assert (one.heard, other.heard) == ([b"0123", b"4567", b"89"], [b"end"])


def test_who_is_listened_to_no_more_wakes_nobody(children: tuple[Child, Child]) -> None:
    ears, (one, other) = Ears(), children
    ears.add(one)
    ears.add(other)
    ears.remove(one)
    one.theirs.send(b"done")

    woken = waits(ears, 0.01)
    ears.listen()

    assert (woken, one.heard, other.heard) == (False, [], [])
