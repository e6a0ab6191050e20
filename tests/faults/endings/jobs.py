"""Handlers that end in every way, meet, use the database, and fail when they are told to."""

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

from django.contrib.sessions.models import Session
from django.db import connection, transaction
from django.utils.timezone import now

import priqueue
from tests.faults.endings.ways import WAYS
from tests.shop import history
from tests.support.waiting import until

_meetings: dict[int, threading.Barrier] = {}
_lock = threading.Lock()


@priqueue.job(max_attempts=1)
def end(how: str) -> Any:
    """End as a function can."""
    history.write("start")
    return WAYS[how].end()


@priqueue.job(max_attempts=1)
async def end_async(how: str) -> Any:
    """End as a coroutine can."""
    history.write("start")
    await asyncio.sleep(0)
    return WAYS[how].end()


@priqueue.job(max_attempts=1)
async def end_the_loop(how: str) -> None:
    """Do what ends an event loop for everybody on it."""
    history.write("start")
    if how == "stop":
        asyncio.get_running_loop().stop()
    elif how == "callback":
        asyncio.get_running_loop().call_soon(sys.exit, 3)
    else:
        await asyncio.create_task(_exit())


async def _exit() -> None:
    sys.exit(3)


@priqueue.job(max_attempts=1, timeout=10)
def meet(number: int) -> None:
    """Return only when so many run at once in this process: they need a slot each."""
    with _lock:
        barrier = _meetings.setdefault(number, threading.Barrier(number))
    barrier.wait(8)
    history.write("end")


@priqueue.job(max_attempts=2, backoff=0.05)
def echo(value: Any = None, failures: int = 0) -> None:
    """Write down what arrived, and fail so many times."""
    run = priqueue.current_job()
    assert run is not None
    history.write("start", value=value)
    if isinstance(value, list):
        value.append("of the handler's own")
    if run.attempt <= failures:
        raise ValueError("not yet")
    history.write("end")


@priqueue.job(max_attempts=2, backoff=0.05)
def fail_when_told(file: str) -> None:
    """Fail as soon as a file is there."""
    history.write("start")
    until(Path(file).exists, 60)
    raise ValueError("now")


@priqueue.job(max_attempts=1)
def use_the_database(how: str = "") -> None:
    """Write a row, then leave the connection as ``how`` says."""
    run = priqueue.current_job()
    assert run is not None
    Session.objects.create(session_key=run.id, session_data="", expire_date=now())
    if how == "raise":
        raise ValueError("after a write")
    if how == "raise inside":
        with transaction.atomic():
            Session.objects.all()[:1].get()
            raise ValueError("inside of a transaction")
    if how == "break":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
    if how == "open":
        transaction.atomic().__enter__()
        Session.objects.all().delete()
    if how == "open and closed":
        transaction.atomic().__enter__()
        connection.close()
    if how == "manual":
        transaction.set_autocommit(False)
        Session.objects.all().delete()
    if how == "cut":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


@priqueue.job(max_attempts=1)
def look_at_the_database() -> None:
    """Write down in which state the connection is found, and how many rows there are."""
    in_block, autocommit = connection.in_atomic_block, connection.get_autocommit()
    history.write("look", inside=in_block, autocommit=autocommit, rows=Session.objects.count())


@priqueue.job(max_attempts=1)
def query_for_long(seconds: float) -> None:
    """Be in the middle of a query."""
    history.write("start")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(%s)", [seconds])
    history.write("end")


@priqueue.job(max_attempts=1)
async def use_the_database_async(how: str = "") -> None:
    """Write a row from a coroutine, then fail if told so."""
    run = priqueue.current_job()
    assert run is not None
    await Session.objects.acreate(session_key=run.id, session_data="", expire_date=now())
    if how:
        raise ValueError(how)
