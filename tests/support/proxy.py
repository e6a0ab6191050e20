"""A proxy between a client and its server: it loses replies, refuses or swallows, as a bad network does.

A client of the queue sends and then waits for the reply, so all that one connection sent since the last reply
is one request. A request whose reply is eaten was forwarded, and is done.
"""

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

_CHUNK = 1 << 20


@dataclass
class _Pair:
    """One client's connection and its counterpart at the server."""

    client: socket.socket
    server: socket.socket
    request: bytes = b""
    hangs: bool = False

    def close(self) -> None:
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):  # the other side was faster
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Proxy:
    """Forwards loopback connections to ``port``; the test says what goes wrong."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._pairs: list[_Pair] = []
        self._lock = threading.Lock()
        self._matching, self._to_eat, self._hang = b"", 0, False
        #: replies eaten so far
        self.eaten = 0
        #: connections are accepted and closed at once
        self.refuses = False
        #: what clients send is thrown away
        self.swallows = False

    def eat(self, number: int = 1, *, matching: bytes = b"EVALSHA", hang: bool = False) -> None:
        """Lose the next replies to requests that contain ``matching``; close the connection, or hang."""
        with self._lock:
            self._matching, self._to_eat, self._hang = matching, number, hang

    def heal(self) -> None:
        """Forward everything again; connections that hang are closed."""
        self.eat(0)
        self.refuses = self.swallows = False
        self.cut()

    def lead_to(self, port: int) -> None:
        """Lead new connections to another server, as an address that moves does; those there are stay as they are."""
        self._server_port = port

    def cut(self) -> None:
        """Close every connection there is."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            pair.close()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.refuses:
                client.close()
                continue
            pair = _Pair(client, socket.create_connection(("127.0.0.1", self._server_port)))
            for end in (pair.client, pair.server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._pairs.append(pair)
            for pump in (self._requests, self._replies):
                threading.Thread(target=self._pump, args=(pump, pair), daemon=True).start()

    def _pump(self, pump: Callable[[_Pair], bool], pair: _Pair) -> None:
        with contextlib.suppress(OSError):  # cut, or closed by either side
            while pump(pair):
                pass
        pair.close()
        with self._lock:
            self._pairs = [other for other in self._pairs if other is not pair]

    def _requests(self, pair: _Pair) -> bool:
        sent = pair.client.recv(_CHUNK)
        pair.request += sent
        if not self.swallows:
            pair.server.sendall(sent)
        return bool(sent)

    def _replies(self, pair: _Pair) -> bool:
        reply = pair.server.recv(_CHUNK)
        if pair.hangs:
            return bool(reply)
        request, pair.request = pair.request, b""
        if self._eats(request):
            pair.hangs = self._hang
            return self._hang
        pair.client.sendall(reply)
        return bool(reply)

    def _eats(self, request: bytes) -> bool:
        with self._lock:
            if not self._to_eat or self._matching not in request:
                return False
            self._to_eat -= 1
            self.eaten += 1
            return True
