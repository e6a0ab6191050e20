"""Line: how scripts and their answers travel, several in one round trip.

The client library's pipeline does the same for any commands. All of ours begin with dozens of words that never change,
the keys: packed once and kept, they no longer cost half of the client's time for a round trip.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

from redis import Redis
from redis.exceptions import ResponseError

# The library takes a command's name apart at its spaces, so that no word of ours may stand in that place.
_NAME, _AFTER_NAME = "X", b"\r\nX\r\n"


class Head:
    """The words with which many commands begin."""

    def __init__(self, *words: str | int) -> None:
        self.words = words
        self.packed = b""  # until it was sent once


class Line:
    """Sends commands by the connections of a client, as they are free. For any thread."""

    def __init__(self, client: "Redis") -> None:
        self._pool = client.connection_pool

    def ask(self, *commands: tuple[Head, Sequence[str | int]]) -> list[Any]:
        """Send commands, each a head and its own words, and return their answers; a refusal is an answer.

        Raises RedisError where an answer is missing.
        """
        return self.send(*commands)()

    def send(self, *commands: tuple[Head, Sequence[str | int]]) -> Callable[[], list[Any]]:
        """Send commands, and return what waits for their answers: to be called once. Raises RedisError."""
        connection = self._pool.get_connection()
        with self._dropped(connection):
            # In one piece: the server would wake for each, and begin to read what is still to come.
            connection.send_packed_command([b"".join(chain(*(_pieces(connection, *each) for each in commands)))])
        return lambda: self._answers(connection, len(commands))

    def _answers(self, connection: Any, number: int) -> list[Any]:
        with self._dropped(connection):
            answers = [_answer(connection) for _ in range(number)]
        self._pool.release(connection)
        return answers

    @contextmanager
    def _dropped(self, connection: Any) -> Iterator[None]:
        """Close a connection that fails in between: who used it next would get what is still to come."""
        try:
            yield
        except BaseException:
            connection.disconnect()
            self._pool.release(connection)
            raise


def _answer(connection: Any) -> Any:
    try:
        return connection.read_response()
    except ResponseError as refusal:
        return refusal


def _pieces(connection: Any, head: Head, words: Sequence[str | int]) -> list[bytes]:
    """Return a command as it travels: the number of its words, then each of them."""
    head.packed = head.packed or b"".join(_packed(connection, head.words))
    return [b"*%d\r\n" % (len(head.words) + len(words)), head.packed, *_packed(connection, words)]


def _packed(connection: Any, words: Sequence[str | int]) -> list[bytes]:
    """Return words as the library packs them, without the number and the name of the command."""
    first, *rest = connection.pack_command(_NAME, *words)
    return [first[first.index(_AFTER_NAME) + len(_AFTER_NAME) :], *rest]
