"""Orders: what a parent tells a child, on its way. A child that does not read holds nobody up.

Orders that belong together are sent together, straight from the thread that gives them: no other thread has to wake up
for that. Only what the socket does not take at once is sent by a thread, which ends when it has caught up.
"""

import marshal
import select
import selectors
import socket
import struct
import threading
from typing import Any

Order = tuple[str, Any]

#: enough for what a turn brings to many slots, so that it is read at once
BUFFER_BYTES = 65_536
_LENGTH = struct.Struct("!I")
_LOOK_AGAIN_S = 1


def pack(orders: Any) -> bytes:
    """Return plain values as they travel between two of the same interpreter."""
    body = marshal.dumps(orders)
    return _LENGTH.pack(len(body)) + body


class Inbox:
    """What the other end of a line is ordered. For one thread."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._comes = select.poll()
        self._comes.register(line, select.POLLIN)
        self._bytes = bytearray()

    def read(self, patience_ms: float | None = None) -> list[Order] | None:
        """Wait for orders and return them; none when there were none in that time, None when the line is closed."""
        while not (orders := self._whole()):
            if patience_ms is not None and not self._comes.poll(patience_ms):
                return []
            piece = self._line.recv(BUFFER_BYTES)
            if not piece:
                return None
            self._bytes += piece
        return orders

    def _whole(self) -> list[Order]:
        """Take all orders that are there from their first to their last byte."""
        orders: list[Order] = []
        start, end = 0, len(self._bytes)
        while end - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._bytes, start)
            stop = start + _LENGTH.size + length
            if stop > end:
                break
            orders += marshal.loads(self._bytes[start + _LENGTH.size : stop])  # noqa: S302 (written by the parent, which runs no handler)
            start = stop
        del self._bytes[:start]
        return orders


class Orders:
    """Sends orders by a socket. For any thread."""

    def __init__(self, to: socket.socket, name: str) -> None:
        self._to = to
        self._name = name
        self._lock = threading.Lock()
        self._held: list[Order] = []
        self._unsent = b""
        self._behind = False  # a thread is at it, and nobody else sends, so that the order is kept

    def hold(self, what: str, value: object) -> None:
        """Keep an order, to be sent with the next."""
        with self._lock:
            self._held.append((what, value))

    def send(self, *orders: Order) -> None:
        """Send what is held, and these."""
        with self._lock:
            if self._held or orders:
                self._unsent += pack([*self._held, *orders])
                self._held.clear()
            if self._unsent and not self._behind and not self._sent_all():
                # Where no thread can be started this raises, and the next to send tries again.
                threading.Thread(target=self._catch_up, name=self._name, daemon=True).start()
                self._behind = True

    def _sent_all(self) -> bool:
        """Send what the socket takes now; return whether nothing is left. Who is gone is sent no more."""
        try:
            self._unsent = self._unsent[self._to.send(self._unsent, socket.MSG_DONTWAIT) :]
        except BlockingIOError:
            return False
        except OSError:
            self._unsent = b""
        return not self._unsent

    def _catch_up(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._to, selectors.EVENT_WRITE)
            while True:
                selector.select(_LOOK_AGAIN_S)  # who is buried meanwhile is forgotten by the selector
                with self._lock:
                    if self._sent_all():
                        self._behind = False
                        return
