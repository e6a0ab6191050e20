"""Handlers of the tests: found by autodiscovery because this is an installed app's jobs module."""

import asyncio
import ctypes
import logging
import os
import re
import signal
import subprocess
import threading
import time
from datetime import datetime

from asgiref.sync import sync_to_async
from django.db import connection, transaction
from django.utils import translation

import priqueue
from tests.shop import history


@priqueue.job(lane="high")
def send_receipt(order_id: int, email: str) -> None:
    """Do nothing, with typed arguments."""


@priqueue.job
def note(n: int = 0) -> None:
    """Do nothing."""


@priqueue.job(api=True)
def open_note(n: int = 0, text: str = "", when: datetime | None = None) -> None:
    """Do nothing, for whoever may ask for it over HTTP."""


@priqueue.job
def write_log(text: str) -> None:
    """Write a text into the log."""
    logging.getLogger("tests.shop").info("it says %s", text)


@priqueue.job
def work(seconds: float = 0) -> None:
    """Take so long, and write down when it began and ended."""
    history.write("start")
    threading.Event().wait(seconds)
    history.write("end")


@priqueue.job(max_attempts=3, backoff=0.05)
def fail(message: str = "no luck") -> None:
    """Fail each time."""
    history.write("start")
    raise ValueError(message)


@priqueue.job
async def awaited(n: int = 0) -> None:
    """Run as a coroutine."""
    history.write("start")


@priqueue.job
def die(how: str) -> None:
    """End the process that runs this."""
    history.write("start")
    if how == "exit":
        os._exit(7)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    ctypes.string_at(0)


@priqueue.job(timeout=0.5, max_attempts=2, backoff=0.05)
def hang(where: str) -> None:
    """Never return: where an exception is heard, or in C code where it is not."""
    history.write("start")
    if where == "python":
        while True:
            threading.Event().wait(0.01)
    threading.Lock().acquire() and (lock := threading.Lock()).acquire() and lock.acquire()


@priqueue.job(timeout=0.5, max_attempts=2, backoff=0.05)
async def hang_async() -> None:
    """Never return."""
    history.write("start")
    await asyncio.Event().wait()


@priqueue.job
def hog(seconds: float) -> None:
    """Hold the interpreter lock for about so long."""
    history.write("start")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        re.match(r"(a+)+$", "a" * 23 + "b")
    history.write("end")


@priqueue.job
def hold_the_lock() -> None:
    """Hold the interpreter lock for seconds, in one call."""
    history.write("start")
    re.match(r"(a+)+$", "a" * 25 + "b")
    history.write("end")


@priqueue.job(max_attempts=1)
def leave_transaction_open() -> None:
    """Leave a transaction open behind."""
    transaction.atomic().__enter__()
    history.write("start")


@priqueue.job
def check_transaction() -> None:
    """Write down whether this thread's connection is inside of a transaction."""
    history.write("start", inside=connection.in_atomic_block)


@priqueue.job
def run_program() -> None:
    """Start a program that takes a minute, and wait for it."""
    program = subprocess.Popen(["sleep", "60"])
    history.write("start", program=program.pid)
    program.wait()


@priqueue.job
async def block_the_loop(seconds: float) -> None:
    """Hold up all coroutines of this process."""
    history.write("start")
    time.sleep(seconds)
    history.write("end")


@priqueue.job
async def ask_slowly(seconds: float) -> None:
    """Hold up the thread in which all coroutines use the database."""
    history.write("start")
    await sync_to_async(time.sleep)(seconds)
    history.write("end")


@priqueue.job
def speak(language: str) -> None:
    """Write down which language is spoken here, and speak another."""
    history.write("start", language=translation.get_language())
    translation.activate(language)


@priqueue.job
def say(text: str) -> None:
    """Say something on the standard output."""
    print(text)  # noqa: T201
    history.write("end")


@priqueue.job
def break_connection() -> None:
    """Leave a connection behind that is old, and cannot be closed."""

    def refuse() -> None:
        raise RuntimeError("cannot be closed")

    connection.ensure_connection()
    connection.close_at = 1
    connection.close = refuse  # type: ignore[method-assign]
