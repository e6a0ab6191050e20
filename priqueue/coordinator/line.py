"""Line: how scripts and their answers travel, several in one round trip.

The client library's pipeline does the same for any commands. All of ours begin with dozens of words that never change,
the keys: packed once and kept, they no longer cost half of the client's time for a round trip. Nor does a connection go
back to the library's pool after each: to lend one and take it back is as dear as to send and to receive.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from hiredis import pack_command
from redis import Redis
from redis.exceptions import ResponseError


class Head:
    """The words with which many commands begin."""

    def __init__(self, *words: str | int) -> None:
        self.words = words
        self.packed = _packed(words)


class Line:
    """Sends commands by the connections of a client, as they are free. For any thread, and after a fork."""

    def __init__(self, client: "Redis") -> None:
        self._pool = client.connection_pool
        #: lent by the pool and kept; the last that was used is the first to be used again
        self._kept: list[Any] = []

    def send(self, *commands: tuple[Head, Sequence[str | int]]) -> Callable[[], list[Any]]:
        """Send commands, each a head and its own words; what is returned waits for their answers, and is called once.

        A refusal is an answer. Both raise RedisError where an answer is, or will be, missing.
        """
        connection = self._take()
        try:
            # In one piece: the server would wake for each, and begin to read what is still to come.
            connection.send_packed_command([b"".join([_command(*each) for each in commands])])
        except BaseException:
            self._drop(connection)
            raise
        return lambda: self._answers(connection, len(commands))

    def _answers(self, connection: Any, number: int) -> list[Any]:
        try:
            answers = [_answer(connection) for _ in range(number)]
        except BaseException:
            self._drop(connection)
            raise
        self._kept.append(connection)
        if any(isinstance(answer, ResponseError) for answer in answers):
            self._give_back()
        return answers

    def _drop(self, connection: Any) -> None:
        """Close a connection: who used it next would get what is still to come."""
        connection.disconnect()
        self._pool.release(connection)

    def _take(self) -> Any:
        with suppress(IndexError):  # by the pop itself: another thread may be faster than a look
            while True:
                connection = self._kept.pop()
                if connection.pid != os.getpid():
                    continue  # of the process that this one was forked from, where it is still in use
                # Not owned is what leads to a server that the sentinels no longer name.
                if self._pool.owns_connection(connection) and _is_silent(connection):
                    return connection
                self._drop(connection)
        return self._pool.get_connection()

    def _give_back(self) -> None:
        """Return what is kept to the pool: who drops the connections to a demoted server finds only those."""
        with suppress(IndexError):
            while True:
                self._pool.release(self._kept.pop())


def _is_silent(connection: Any) -> bool:
    """Return whether a connection stands, and the server has nothing left to say on it."""
    try:
        return not connection.can_read()
    except Exception:  # the library has as many errors for this as ways to read
        return False


def _answer(connection: Any) -> Any:
    try:
        return connection.read_response()
    except ResponseError as refusal:
        return refusal


def _command(head: Head, words: Sequence[str | int]) -> bytes:
    """Return a command as it travels: the number of its words, then each of them."""
    return b"*%d\r\n%b%b" % (len(head.words) + len(words), head.packed, _packed(words))


def _packed(words: Iterable[str | int]) -> bytes:
    """Return words as they travel, without their number in front."""
    packed: bytes = pack_command(tuple(words))  # type: ignore[arg-type]  # its stub knows tuples of one word
    return packed[packed.index(b"\n") + 1 :]
