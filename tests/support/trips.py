"""Trips: how often a test's code sends something to the server, and waits for what comes back."""

from typing import Any

import pytest
from redis.connection import AbstractConnection


def trips_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows from now on with each send on any connection, by the first command of what is sent."""
    made: list[str] = []
    send = AbstractConnection.send_packed_command

    def counted(self: AbstractConnection, command: Any, *args: Any, **options: Any) -> Any:
        sent = command if isinstance(command, bytes) else b"".join(command)
        made.append(sent.split(b"\r\n", 3)[2].decode())
        return send(self, command, *args, **options)

    monkeypatch.setattr(AbstractConnection, "send_packed_command", counted)
    return made
