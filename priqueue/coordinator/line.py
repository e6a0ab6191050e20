"""Line: how scripts and their answers travel, several in one round trip.

The client library's pipeline does the same for any commands. All of ours begin with dozens of words that never change,
the keys: packed once and kept, they no longer cost half of the client's time for a round trip. Nor does a connection go
back to the library's pool after each: to lend one and take it back is as dear as to send and to receive.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from hiredis import pack_command
from redis import Redis
from redis.exceptions import ResponseError

from priqueue.clock import monotonic_s

_FRESH_S = 0.1


class Head:
    """The words with which many commands begin."""

    def __init__(self, *words: str | int) -> None:
        self.words = words
        self.packed = _packed(words)


class Line:
    """Sends commands by the connections of a client, as they are free. For any thread, and after a fork."""

    def __init__(self, client: "Redis") -> None:
        self._pool = client.connection_pool
        #: lent by the pool and kept, each with when it was used; the last is the first to be used again
        self._kept: list[tuple[Any, float]] = []

    def send(self, *commands: tuple[Head, Sequence[str | int]]) -> "Sent":
        """Send commands, each a head and its own words; what is returned waits for their answers. Raises RedisError."""
        sent = Sent(self._pool, self._kept)
        sent.send(commands)
        return sent


class Sent:
    """A round trip under way. Called, once, it returns the answers; a refusal is one. Raises RedisError.

    It owns its connection. One of which not all is read is closed, or who used it next would get the rest: also where
    an exception comes from outside between any two steps, as a Timeout does into a thread that runs a job.
    """

    def __init__(self, pool: Any, kept: list[tuple[Any, float]]) -> None:
        self._pool = pool
        self._kept = kept
        self._connection: Any = None
        self._number = 0

    def send(self, commands: Sequence[tuple[Head, Sequence[str | int]]]) -> None:
        """Take a connection and send commands, in one piece.

        In several, the server would wake for each, and begin to read what is still to come.
        """
        self._number = len(commands)
        try:
            self._take()
            self._connection.send_packed_command([b"".join([_command(*each) for each in commands])])
        except BaseException:
            self._close()
            raise

    def __call__(self) -> list[Any]:
        try:
            answers, used_s = [_answer(self._connection) for _ in range(self._number)], monotonic_s()
        except BaseException:
            self._close()
            raise
        connection, self._connection = self._connection, None
        self._kept.append((connection, used_s))
        if any(isinstance(answer, ResponseError) for answer in answers):
            self._give_back()
        return answers

    def __del__(self) -> None:
        with suppress(Exception):
            self._close()

    def _take(self) -> None:
        with suppress(IndexError):  # by the pop itself: another thread may be faster than a look
            while True:
                self._connection, used_s = self._kept.pop()
                if self._connection.pid != os.getpid():
                    self._connection = None  # of the process that this one was forked from, where it is still in use
                # Not owned is what leads to a server that the sentinels no longer name.
                elif self._pool.owns_connection(self._connection) and _is_good(self._connection, used_s):
                    return
                else:
                    self._close()
        self._connection = self._pool.get_connection()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()
            self._pool.release(connection)

    def _give_back(self) -> None:
        """Return what is kept to the pool: who drops the connections to a demoted server finds only those."""
        with suppress(IndexError):
            while True:
                self._pool.release(self._kept.pop()[0])


def _is_good(connection: Any, used_s: float) -> bool:
    """Return whether a connection stands, and the server has nothing left to say on it.

    One that was used just now gets no look, which is as dear as to send: should the server have closed it since, who
    sends has to send again, as where it is closed on the way.
    """
    try:
        return monotonic_s() < used_s + _FRESH_S or not connection.can_read()
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
