"""What the demo runs, in the order it is started: server, sweeper, ticker, workers, web."""

import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings

from project import datafolder
from project.demo import server
from project.demo.child import Service

WORKERS = ("worker-1", "worker-2")
USUAL_PORT = 8000

Stages = Sequence[Sequence[Service]]


def listen(port: int | None) -> socket.socket:
    """Return a listening socket on loopback: on ``port``; else on 8000 if that is free, or on any port.

    The demo holds it, so that a restarted web server goes on where the last one ended. Raises OSError.
    """
    listener = socket.socket(socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", USUAL_PORT if port is None else port))
    except OSError:
        if port is not None:
            listener.close()
            raise
        listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener


def stages(listener: socket.socket) -> Stages:
    """Return the services, those that are started and stopped together in one stage."""
    grace_s = settings.PRIQUEUE.get("SHUTDOWN_GRACE_S", 25) + 5
    return [
        *_server(),
        [_command("sweeper", "runsweeper")],
        [_command("ticker", "runticker")],
        [_command(name, "runworker", grace_s=grace_s) for name in WORKERS],
        [_web(listener)],
    ]


def _server() -> list[list[Service]]:
    if not settings.EMBEDDED_SERVER:
        return []
    return [[server.service(datafolder.socket_path(settings.DATA_DIR), settings.DATA_DIR / "valkey")]]


def _command(name: str, command: str, grace_s: float = 10) -> Service:
    return Service(name=name, command=[sys.executable, str(_manage()), command], grace_s=grace_s)


def _web(listener: socket.socket) -> Service:
    fd = listener.fileno()
    config = settings.BASE_DIR / "project" / "gunicorn_config.py"
    command = [sys.executable, "-m", "gunicorn", "--config", str(config), "--chdir", str(settings.BASE_DIR)]
    return Service(
        name="web",
        command=[*command, "--bind", f"fd://{fd}"],
        # Its own processes end only when they see that it is gone; on SIGTERM it tells them.
        death_signal=signal.SIGTERM,
        pass_fds=(fd,),
    )


def _manage() -> Path:
    return settings.BASE_DIR / "manage.py"
