"""Child: the process in which handlers run, so that whatever they do to it is not done to the worker.

It is a clean interpreter of its own. It takes runs from its parent by a socket and sends back their outcomes, several
at once where they come close together. It never talks to the queue by itself; when its parent is gone it ends at
once, in the middle of a handler too.
"""

import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Iterable
from typing import Any

import django
from pydantic_core import from_json, to_json

from priqueue import orders, wiring
from priqueue.executor import Outcome, Verdict
from priqueue.jobs import Claim, Failure, Job, from_ms, to_ms
from priqueue.pace import PATIENCE_MS
from priqueue.runner import Key, Runner, key_of

_PR_SET_PDEATHSIG = 1
_LONGEST_S = 1e9
_VERDICTS = {str(verdict): verdict for verdict in Verdict}  # to call the class is ten times as dear


def encode_line(messages: Any) -> bytes:
    """Return messages as they go to the parent, as JSON.

    What writes it may have been corrupted by a handler: unlike orders, it must not be able to crash who reads it.
    """
    try:
        return to_json(messages) + b"\n"
    except ValueError:  # ASCII: text that has no UTF-8, such as half of a surrogate pair, gets through as well
        return f"{json.dumps(messages)}\n".encode()


def decode_line(line: bytes) -> Any:
    """Return the messages of a line. Raises ValueError, RecursionError for what is no JSON."""
    try:
        return from_json(line)
    except ValueError:  # half of a surrogate pair: only the standard library reads what only it wrote
        return json.loads(line.decode())


def encode_claim(claim: Claim) -> tuple[Any, ...]:
    """Return a claim in plain values, as it goes to a child."""
    job = claim.job
    return (
        job.id, job.name, job.payload_text(), job.lane, job.max_attempts, job.timeout, job.caller, job.correlation_id,
        to_ms(job.enqueued_at), claim.token, claim.worker_id, claim.lane, claim.attempt, claim.crashes,
    )  # fmt: skip


def decode_claim(values: tuple[Any, ...]) -> Claim:
    """Return the claim that ``encode_claim`` took apart, with what a run needs of it."""
    (
        job_id, name, payload_json, job_lane, max_attempts, timeout, caller, correlation_id,
        enqueued_ms, token, worker_id, lane, attempt, crashes,
    ) = values  # fmt: skip
    job = Job.of(
        id=job_id, name=name, payload={}, payload_json=payload_json, lane=job_lane, max_attempts=max_attempts,
        timeout=timeout, caller=caller, correlation_id=correlation_id, enqueued_at=from_ms(enqueued_ms),
        delay_ms=0, run_at=None, replaces="",
    )  # fmt: skip
    return Claim(
        job=job, token=token, worker_id=worker_id, lane=lane, attempt=attempt, crashes=crashes,
        deadline_ms=0, ready_since_ms=0,
    )  # fmt: skip


def encode_outcome(outcome: Outcome) -> tuple[Any, ...]:
    """Return an outcome in plain values, as it goes back to the parent."""
    failure = outcome.failure
    told = (failure.error, failure.message, failure.traceback) if failure else None
    return key_of(outcome.claim), str(outcome.verdict), outcome.run_s, told, outcome.delay_s, outcome.note


def decode_outcome(values: tuple[Any, ...], claim: Claim) -> Outcome:
    """Return the outcome that ``encode_outcome`` took apart. Raises what it has for values that it never made."""
    _, verdict, run_s, told, delay_s, note = values
    if not (0 <= run_s <= _LONGEST_S and 0 <= delay_s <= _LONGEST_S and isinstance(note, str)):
        raise ValueError("no outcome")
    failure = _decode_failure(told) if told else None
    return Outcome(claim=claim, verdict=_VERDICTS[verdict], run_s=run_s, failure=failure, delay_s=delay_s, note=note)


def _decode_failure(told: Any) -> Failure:
    error, message, traceback = told
    if not all(isinstance(text, str) for text in told):
        raise ValueError("no failure")
    return Failure(error=error, message=message, traceback=traceback)


class Outbox:
    """Sends messages from many threads, in lines. Who comes while another sends leaves its message to be sent along."""

    def __init__(self, to: socket.socket) -> None:
        self._to = to
        self._waiting: deque[tuple[str, Any]] = deque()
        self._sending = threading.Lock()

    def put(self, what: str, value: Any = None) -> None:
        """Send a message, now or with those that another thread is about to send."""
        self._waiting.append((what, value))
        while self._waiting and self._sending.acquire(blocking=False):
            try:
                batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
                if batch:
                    self._to.sendall(encode_line(batch))
            finally:
                self._sending.release()


def main(descriptor: int, parent: int, threads: int) -> None:
    """Be a child: run what comes until the parent hangs up."""
    _die_with(parent)
    for number in (signal.SIGTERM, signal.SIGINT):
        # They are for the parent, which drains. A handler, not SIG_IGN: programs that a job starts would inherit that.
        signal.signal(number, lambda *_: None)
    django.setup()
    # What a handler starts may outlive this process: it must not hold the line open, so that nobody hears of the end.
    os.set_inheritable(descriptor, False)
    parent_socket = socket.socket(fileno=descriptor)
    os.register_at_fork(after_in_child=lambda: _hang_up(parent_socket))
    if sys.stdout is not None:
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # this process may end at any moment
    outbox = Outbox(parent_socket)
    runner = Runner(
        threads, wiring.settings(),
        finished=lambda outcome: outbox.put("done", encode_outcome(outcome)),
        interrupted=lambda key: outbox.put("interrupted", key),
    )  # fmt: skip
    runner.start()
    outbox.put("ready")
    with contextlib.suppress(OSError):
        _obey(orders.Inbox(parent_socket), runner)
    # At once: what still runs here has no parent left that would settle it.
    os._exit(0)


def _obey(inbox: orders.Inbox, runner: Runner) -> None:
    while (given := inbox.read(PATIENCE_MS if runner.waiting else None)) is not None:
        _heed(runner, given)
        runner.go()


def _heed(runner: Runner, messages: Iterable[tuple[str, Any]]) -> None:
    for order, value in messages:
        if order == "run":
            runner.submit(decode_claim(value))
        elif order == "interrupt":
            runner.interrupt(decode_key(value))
        else:
            runner.lose(decode_key(value))


def _hang_up(line: socket.socket) -> None:
    if line.fileno() >= 0:  # else this process was forked from one that did so already
        os.close(line.detach())  # ``close`` would wait until nobody reads from it


def decode_key(value: Iterable[str]) -> Key:
    """Return what tells a run from all others, as it travelled. Raises ValueError for what is no such thing."""
    job_id, token = value
    if not (isinstance(job_id, str) and isinstance(token, str)):
        raise ValueError("no key of a run")
    return job_id, token


def _die_with(parent: int) -> None:
    """Let the kernel end this process with its parent: a handler that holds the interpreter lock hears of nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
