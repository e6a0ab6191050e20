"""Line: connections are kept from one round trip to the next, and never used where they should not be."""

import os
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest
from redis import ConnectionPool, Redis
from redis.exceptions import ConnectionError, ResponseError

from priqueue.coordinator import line as line_module
from priqueue.coordinator.line import Head, Line
from tests.support.waiting import until

ECHO = Head("ECHO")
ID = Head("CLIENT", "ID")


@pytest.fixture
def line(client: Redis) -> Line:
    """A line of a client that nobody else uses. Its connections have a name: those of tests before may still close."""
    pool = client.connection_pool
    pool.disconnect()
    pool.reset()
    pool.connection_kwargs["client_name"] = f"line-{secrets.token_hex(4)}"
    return Line(client)


def _id(line: Line) -> int:
    """Return the number that the server gave to the connection that is used next."""
    return int(line.send((ID, ()))()[0])


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what was used just now count as used long ago."""
    monkeypatch.setattr(line_module, "_FRESH_S", 0)


def _kill(client: Redis, number: int) -> None:
    with Redis(port=client.connection_pool.connection_kwargs["port"]) as other:
        other.execute_command("CLIENT", "KILL", "ID", number)


def test_words_and_numbers_arrive_as_they_are(line: Line) -> None:
    assert line.send((ECHO, ("é \r\n",)), (ECHO, (7,)), (ECHO, ("",)))() == ["é \r\n".encode(), b"7", b""]


def test_one_connection_serves_one_round_trip_after_the_other(line: Line) -> None:
    assert _id(line) == _id(line)


def test_threads_never_share_a_connection(line: Line) -> None:
    together = threading.Barrier(8)

    def talk(number: int) -> bool:
        together.wait()
        return all(line.send((ECHO, (number * 1_000 + n,)))() == [b"%d" % (number * 1_000 + n)] for n in range(200))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(talk, range(8)))


@pytest.mark.usefixtures("later")
def test_a_connection_that_the_server_closed_is_not_used(line: Line, client: Redis) -> None:
    closed = _id(line)
    _kill(client, closed)

    assert _id(line) != closed


def test_one_that_it_closed_just_now_is_an_error_once(line: Line, client: Redis) -> None:
    closed = _id(line)
    _kill(client, closed)

    with pytest.raises(ConnectionError):
        _id(line)

    assert _id(line) != closed


@pytest.mark.usefixtures("later")
def test_a_connection_with_an_answer_that_nobody_read_is_not_used(line: Line) -> None:
    before = _id(line)
    ((kept, _),) = line._kept
    kept.send_command("ECHO", "stray")
    assert kept.can_read(timeout=5)

    assert _id(line) != before


def test_a_connection_whose_round_trip_broke_off_is_not_used(line: Line, client: Redis) -> None:
    client.connection_pool.connection_kwargs["socket_timeout"] = 0.05
    before = _id(line)

    with pytest.raises(Exception, match="Timeout"):
        line.send((Head("BLPOP", "nothing here"), (1,)))()

    assert _id(line) != before


def test_a_refusal_gives_every_connection_back_to_the_pool(line: Line, client: Redis) -> None:
    before = _id(line)

    (refusal,) = line.send((Head("NONSENSE"), ()))()
    client.connection_pool.disconnect(inuse_connections=False)

    assert isinstance(refusal, ResponseError)
    assert _id(line) != before


def test_a_connection_that_the_pool_disowns_is_not_used(line: Line, client: Redis) -> None:
    before = _id(line)
    disowned, owns = [kept for kept, _ in line._kept], client.connection_pool.owns_connection
    client.connection_pool.owns_connection = lambda each: each not in disowned and owns(each)  # type: ignore[method-assign]

    assert _id(line) != before


def test_a_forked_process_leaves_its_parents_connection_alone(line: Line) -> None:
    before = _id(line)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, str(_id(line)).encode())
        os._exit(0)
    os.waitpid(child, 0)

    assert int(os.read(reading, 100)) != before
    assert _id(line) == before
    for end in (reading, writing):
        os.close(end)


def test_closing_the_client_closes_what_is_kept(line: Line, client: Redis) -> None:
    _id(line)
    ((kept, _),) = line._kept

    client.close()

    assert not kept.is_connected


def test_a_server_that_is_away_is_an_error_and_leaves_nothing_lent() -> None:
    pool = ConnectionPool(port=1, max_connections=1)
    line = Line(Redis.from_pool(pool))

    for _ in range(2):  # a lent one would leave none for the second
        with pytest.raises(ConnectionError, match="refused"):
            line.send((ECHO, ("x",)))()


def _connections(client: Redis) -> int:
    """Return how many connections of the client the server knows."""
    mine = client.connection_pool.connection_kwargs
    with Redis(port=mine["port"], decode_responses=True) as other:
        return sum(each["name"] == mine["client_name"] for each in other.client_list())


def test_a_round_trip_that_nobody_reads_closes_its_connection(line: Line, client: Redis) -> None:
    before = _connections(client)
    sent = [line.send((ECHO, (number,))) for number in range(5)]
    assert _connections(client) == before + 5

    sent.clear()

    until(lambda: _connections(client) == before)
    assert line.send((ECHO, ("next",)))() == [b"next"]


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("step", ["can_read", "send_packed_command", "read_response"])
def test_what_is_raised_from_outside_between_two_steps_costs_a_connection_and_no_more(
    line: Line, client: Redis, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _id(line)
    before = _connections(client)
    ((kept, _),) = line._kept
    monkeypatch.setattr(kept, step, Mock(side_effect=KeyboardInterrupt))

    with pytest.raises(KeyboardInterrupt):
        line.send((ECHO, ("lost",)))()

    monkeypatch.undo()
    until(lambda: _connections(client) == before - 1)
    assert line.send((ECHO, ("next",)))() == [b"next"]


def test_a_clock_that_is_interrupted_costs_no_connection_either(
    line: Line, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _connections(client)
    sent = line.send((ECHO, ("lost",)))
    monkeypatch.setattr(line_module, "monotonic_s", Mock(side_effect=KeyboardInterrupt))

    with pytest.raises(KeyboardInterrupt):
        sent()

    until(lambda: _connections(client) == before)
