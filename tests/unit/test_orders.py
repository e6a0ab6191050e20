"""What a parent tells a child arrives whole and in its order, and nobody waits for a child that does not read."""

import socket
import threading
from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from priqueue.orders import Inbox, Order, Orders, pack
from tests.support.waiting import until

#: more than a socket takes at once, each
LARGE = "x" * 300_000


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a line: the parent's and the child's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def read(theirs: socket.socket, number: int) -> list[Order]:
    """Return so many orders, or those before the end."""
    inbox, arrived = Inbox(theirs), list[Order]()
    while len(arrived) < number and (given := inbox.read()) is not None:
        arrived += given
    return arrived


def catching_up() -> list[str]:
    """Return the names of the threads that send what a socket did not take at once."""
    return [thread.name for thread in threading.enumerate() if thread.name == "orders"]


def test_what_is_held_travels_with_the_next_order_in_one_piece(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    orders = Orders(ours, "orders")

    orders.hold("run", ("one", 1))
    orders.hold("run", ("two", None))
    orders.send(("lose", ("one", "t")))

    assert Inbox(theirs).read() == [("run", ("one", 1)), ("run", ("two", None)), ("lose", ("one", "t"))]
    assert catching_up() == []


def test_nothing_is_sent_when_there_is_nothing(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    theirs.setblocking(False)

    Orders(ours, "orders").send()

    with pytest.raises(BlockingIOError):
        theirs.recv(1)


def test_a_child_that_does_not_read_holds_nobody_up_and_misses_nothing_when_it_does(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = ends
    orders = Orders(ours, "orders")
    given = [("run", f"{number}{LARGE}") for number in range(20)]

    for each in given:
        orders.send(each)
    assert catching_up() == ["orders"]

    assert read(theirs, len(given)) == given
    until(lambda: catching_up() == [])


def test_after_it_has_caught_up_orders_are_sent_at_once_again(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    orders = Orders(ours, "orders")
    orders.send(("run", LARGE))
    assert read(theirs, 1) == [("run", LARGE)]
    until(lambda: catching_up() == [])

    orders.send(("run", "small"))

    assert catching_up() == []
    assert read(theirs, 1) == [("run", "small")]


def test_orders_to_a_child_that_is_gone_raise_nothing_and_leave_no_thread(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = ends
    orders = Orders(ours, "orders")
    orders.send(("run", LARGE))
    theirs.close()

    orders.send(("run", "more"))

    until(lambda: catching_up() == [])


def test_orders_of_many_threads_arrive_whole_and_each_once(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    orders = Orders(ours, "orders")

    def give(who: int) -> None:
        for number in range(200):
            orders.hold("run", (who, number))
            orders.send(("lose", (who, number)))

    threads = [threading.Thread(target=give, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    arrived = read(theirs, 1600)
    for thread in threads:
        thread.join()

    assert len(set(arrived)) == 1600
    for who in range(4):
        for what in ("run", "lose"):
            assert [n for w, (of, n) in arrived if (w, of) == (what, who)] == list(range(200))


@pytest.mark.parametrize("kept", [2, 6])
def test_what_is_cut_short_is_the_end(ends: tuple[socket.socket, socket.socket], kept: int) -> None:
    ours, theirs = ends
    ours.sendall(pack([("run", 1)]) + pack([("run", 2)])[:kept])
    ours.close()

    assert read(theirs, 2) == [("run", 1)]


def test_text_that_has_no_utf_8_gets_through(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends

    Orders(ours, "orders").send(("run", "half \ud800"))

    assert read(theirs, 1) == [("run", "half \ud800")]


def test_orders_that_do_not_come_are_waited_for_no_longer_than_the_patience(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = ends
    inbox = Inbox(theirs)
    ours.sendall(pack([("run", 1)])[:3])

    given = [inbox.read(1), inbox.read(0)]
    ours.sendall(pack([("run", 1)])[3:] + pack([("run", 2)]))

    assert (given, inbox.read(10_000)) == ([[], []], [("run", 1), ("run", 2)])


def test_what_no_thread_could_be_started_for_is_sent_by_the_next_to_send(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = ends
    orders = Orders(ours, "orders")
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
        with pytest.raises(RuntimeError):
            orders.send(("run", LARGE))

    orders.send()

    assert read(theirs, 1) == [("run", LARGE)]
