"""Handlers that do what no handler should."""

import asyncio
import os
import re
import resource
import socket
import subprocess
import sys
import threading
from pathlib import Path

import priqueue
from tests.shop import history

_MARGIN_BYTES = 64 * 1024 * 1024


def recurse() -> None:
    recurse()


@priqueue.job(max_attempts=1)
def raise_one(kind: str) -> None:
    """Raise what ``except Exception`` does not catch, or what is short of memory or of stack."""
    history.write("start")
    if kind == "RecursionError":
        recurse()
    if kind == "BaseExceptionGroup":
        raise BaseExceptionGroup("two", [KeyboardInterrupt(), ValueError()])
    raise {
        "SystemExit": SystemExit, "KeyboardInterrupt": KeyboardInterrupt, "GeneratorExit": GeneratorExit,
        "CancelledError": asyncio.CancelledError, "MemoryError": MemoryError,
    }[kind]  # fmt: skip


@priqueue.job
def count_slots() -> None:
    """Write down how many threads for jobs are alive here."""
    history.write("start")
    history.write("slots", alive=sum(thread.name.startswith("slot-") for thread in threading.enumerate()))
    history.write("end")


@priqueue.job(max_attempts=2, backoff=0.05)
def devour() -> None:
    """Take memory until there is no more."""
    history.write("start")
    usual = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MARGIN_BYTES, usual[1]))
    taken = []
    try:
        while True:
            taken.append(bytearray(1024 * 1024))
    finally:
        taken.clear()
        resource.setrlimit(resource.RLIMIT_AS, usual)


@priqueue.job(timeout=0.5, max_attempts=2, backoff=0.05)
def block(where: str) -> None:
    """Wait for what never comes, where no exception is heard."""
    history.write("start")
    if where == "event":
        threading.Event().wait()
    else:
        ours, theirs = socket.socketpair()
        ours.recv(1)
        theirs.close()


@priqueue.job
def backtrack(length: int) -> None:
    """Hold the interpreter lock without a pause, for a time that doubles with the length."""
    history.write("start")
    re.match(r"(a+)+$", "a" * length + "b")
    history.write("end")


@priqueue.job
def fork(how: str) -> None:
    """Fork a process that ends at once, comes back out of the handler, lives on, or is another program."""
    history.write("start")
    if how == "is another program":
        program = subprocess.Popen(["sleep", "60"], close_fds=False)
        history.write("end", child=program.pid)
        return
    child = os.fork()
    if child:
        if how != "lives on":
            os.waitpid(child, 0)
        history.write("end", child=child)
    elif how == "exits":
        sys.exit(0)
    elif how == "lives on":
        threading.Event().wait(60)
        os._exit(0)


@priqueue.job(max_attempts=1)
def fail_late() -> None:
    """Fail after a second."""
    history.write("start")
    threading.Event().wait(1)
    history.write("end")
    raise ValueError("no luck")
