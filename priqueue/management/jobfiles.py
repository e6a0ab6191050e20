"""Job files: one JSON object a line, each a job: ``{"job": …, "payload": …, "lane": …, "delay": …}``.

A file is read twice: to find every fault in it before anything is enqueued, then to enqueue. So it may be
larger than the memory; what cannot be read twice is copied to the disk first.

A run over a file has an id, and each job's id is made of that and the line's number. Who goes on with a run
after an outage need not know whether its last batch came through: what is in the queue is not added again.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import islice
from typing import Any, BinaryIO
from uuid import UUID

from priqueue import client
from priqueue.exceptions import InvalidPayload, PriqueueError
from priqueue.handlers import loads_strict
from priqueue.jobs import Job, new_id

_KEYS = ("job", "payload", "lane", "delay")
_LINE_BITS = 32
_BATCH = 100


class Run:
    """One run over a file: who goes on with it makes the same ids."""

    def __init__(self, run_id: str = "") -> None:
        """Take up a run, or begin one. Raises ValueError for what is no run's id."""
        self.id = str(UUID(run_id or new_id()))
        self._head = UUID(self.id).int >> _LINE_BITS << _LINE_BITS

    def job_id(self, line: int) -> str:
        """Return the id of a line's job: the run's, with the line's number in its last 32 bits."""
        return str(UUID(int=self._head | line))

    def job(self, line: int, text: bytes) -> Job:
        """Return the job that a line describes. Raises PriqueueError saying what is wrong with it."""
        entry = loads_strict(text)
        if not isinstance(entry, dict):
            raise InvalidPayload('no JSON object; write {"job": "…", "payload": {…}}')
        faults = list(_faults(entry))
        if faults:
            raise InvalidPayload("; ".join(faults))
        payload = {} if entry.get("payload") is None else entry["payload"]
        job = client.prepare(entry["job"], payload, entry.get("lane"), when=(entry.get("delay"), None))
        return replace(job, id=self.job_id(line))


@contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """Open a file, "-" being the standard input, so that it can be read more than once. Raises OSError."""
    with nullcontext(sys.stdin.buffer) if name == "-" else open(name, "rb") as file:
        if name != "-" and file.seekable():
            yield file
            return
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(file, copy)
            yield copy


def lines(file: BinaryIO, first: int) -> Iterator[tuple[int, bytes]]:
    """Give the lines that are not blank, each with its number, from number ``first`` on."""
    file.seek(0)
    for number, text in enumerate(file, 1):
        if number >= first and not text.isspace():
            yield number, text


def verdicts(file: BinaryIO, run: Run, first: int) -> Iterator[tuple[int, PriqueueError | None]]:
    """Give for each line what is wrong with it, None for nothing."""
    for number, text in lines(file, first):
        try:
            run.job(number, text)
        except PriqueueError as error:
            yield number, error
        else:
            yield number, None


def batches(file: BinaryIO, run: Run, first: int) -> Iterator[tuple[int, list[Job]]]:
    """Give the jobs in batches of one round trip, each with the number of its first line."""
    left = lines(file, first)
    while batch := list(islice(left, _BATCH)):
        yield batch[0][0], [run.job(number, text) for number, text in batch]


def _faults(entry: dict[str, Any]) -> Iterator[str]:
    for key in entry:
        if key not in _KEYS:
            yield f"{key!r:.60} is unknown; use {', '.join(_KEYS)}"
    if "job" not in entry:
        yield "job is missing"
    for key, kind, called in (
        ("job", str, "a text"),
        ("payload", dict, "an object"),
        ("lane", str, "a text"),
    ):
        value = entry.get(key)
        wrong = not isinstance(value, kind) or value == ""
        if key in entry and wrong and (key == "job" or value is not None):
            yield f"{key} is not {called}"
