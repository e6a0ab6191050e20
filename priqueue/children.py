"""Children: how the pool sees the processes, or the one, in which its runs take place.

``Child`` is another process: it can be ended, and it can die. ``Here`` is this process, for development and
debuggers: it cannot. Both take the same orders and answer by the same messages.
"""

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Protocol

from priqueue.child import decode_outcome, encode_claim, pack_orders
from priqueue.conf import Settings
from priqueue.executor import Outcome
from priqueue.jobs import Claim
from priqueue.runner import Key, Runner, key_of

_START = "import sys; sys.path[:] = {path!r}; from priqueue.child import main; main({descriptor}, {parent}, {threads})"


class Place(Protocol):
    """Where runs take place."""

    runs: dict[Key, Claim]
    #: whether it takes runs: a child that is still starting does not
    ready: bool
    #: how many runs it has taken so far
    taken: int

    def submit(self, claim: Claim) -> None:
        """Run a claim."""

    def interrupt(self, key: Key) -> None:
        """Ask a run to stop."""

    def lose(self, key: Key) -> None:
        """Tell a run that its lease is lost."""

    def dismiss(self) -> None:
        """Let it end, when it has nothing to do."""

    def kill(self) -> None:
        """End it now."""

    def end(self) -> None:
        """End it now, and wait until everything it said has been told."""

    def cause_of_death(self) -> str:
        """Return how it ended, for people."""


class Here:
    """Runs in threads of this process, which cannot be ended."""

    def __init__(self, size: int, settings: Settings, tell: Callable[[Place, str, Any], None]) -> None:
        self.runs: dict[Key, Claim] = {}
        self.ready = True
        self.taken = 0
        self._runner = Runner(
            size, settings, lambda outcome: tell(self, "done", outcome), lambda key: tell(self, "interrupted", key)
        )
        self._runner.start()

    def submit(self, claim: Claim) -> None:
        """Run a claim."""
        self.runs[key_of(claim)] = claim
        self.taken += 1
        self._runner.submit(claim)

    def interrupt(self, key: Key) -> None:
        """Ask a run to stop."""
        self._runner.interrupt(key)

    def lose(self, key: Key) -> None:
        """Tell a run that its lease is lost."""
        self._runner.lose(key)

    def dismiss(self) -> None:
        """Do nothing: the threads wait for more."""

    kill = end = dismiss

    def cause_of_death(self) -> str:
        """Return nothing: it lives as long as the worker."""
        return ""


class Child:
    """Runs in another process.

    ``tell`` is called from a thread of its own with "ready", "done" and an outcome, "interrupted" and a key, or "gone".
    """

    def __init__(self, size: int, tell: Callable[[Place, str, Any], None]) -> None:
        self.runs: dict[Key, Claim] = {}
        self.ready = False
        self.taken = 0
        self._tell = tell
        self._socket, theirs = socket.socketpair()
        self._connection = Connection(os.dup(self._socket.fileno()))
        code = _START.format(path=sys.path, descriptor=theirs.fileno(), parent=os.getpid(), threads=size)
        # A group of its own: Ctrl-C on a terminal is for the worker, which drains.
        self.process = subprocess.Popen(  # noqa: S603 (our own interpreter and our own code)
            [sys.executable, "-c", code], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, process_group=0
        )
        theirs.close()
        self._orders: queue.SimpleQueue[tuple[str, Any] | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name=f"child-{self.process.pid}", daemon=True)
        self._reader.start()
        threading.Thread(target=self._write, name=f"orders-{self.process.pid}", daemon=True).start()

    def submit(self, claim: Claim) -> None:
        """Run a claim."""
        self.runs[key_of(claim)] = claim
        self.taken += 1
        self._orders.put(("run", encode_claim(claim)))

    def interrupt(self, key: Key) -> None:
        """Ask a run to stop."""
        self._orders.put(("interrupt", key))

    def lose(self, key: Key) -> None:
        """Tell a run that its lease is lost."""
        self._orders.put(("lose", key))

    def dismiss(self) -> None:
        """Let an empty child end."""
        self._orders.put(None)

    def kill(self) -> None:
        """End the process now, and with its runs the programs that they started; it is told "gone" afterwards."""
        if self.process.returncode is None:  # before that, its number cannot be another's
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if self.runs else os.kill)(self.process.pid, signal.SIGKILL)

    def end(self) -> None:
        """End the process now, and wait until everything it said has been told."""
        self.kill()
        self._reader.join()

    def cause_of_death(self) -> str:
        """Return how the process ended, for people."""
        code = self.process.wait()
        return f"signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exit code {code}"

    def _read(self) -> None:
        try:
            while True:
                for what, value in json.loads(self._connection.recv_bytes()):
                    self._tell(self, what, self._read_value(what, value))
        except (EOFError, OSError):
            pass
        finally:  # whatever ended this thread, a child that nobody hears must not go on
            self.kill()
            self.process.wait()
            self._orders.put(None)
            self._tell(self, "gone", None)

    def _read_value(self, what: str, value: Any) -> Outcome | Key | None:
        if what == "done":
            return decode_outcome(value, self.runs[tuple(value[0])])
        return tuple(value) if what == "interrupted" else None

    def _write(self) -> None:
        """Send orders from a thread of its own: a child that does not read must not hold up the claim loop."""
        with contextlib.suppress(OSError):
            while orders := self._next_orders():
                self._connection.send_bytes(pack_orders(orders))
            self._socket.shutdown(socket.SHUT_WR)

    def _next_orders(self) -> list[tuple[str, Any]]:
        """Return all orders that wait, after waiting for one; none when the child is dismissed."""
        orders = []
        order = self._orders.get()
        while order is not None:
            orders.append(order)
            if self._orders.empty():
                return orders
            order = self._orders.get()
        self._orders.put(None)  # dismissed: seen again by the next call, once these are sent
        return orders if orders else []
