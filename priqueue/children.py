"""Children: how the pool sees the processes, or the one, in which its runs take place.

``Child`` is another process: it can be ended, and it can die. ``Here`` is this process, for development and
debuggers: it cannot. Both take the same orders and answer by the same messages.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol

from priqueue.child import decode_key, decode_line, decode_outcome, encode_claim
from priqueue.conf import Settings
from priqueue.ears import Ears
from priqueue.executor import Outcome
from priqueue.jobs import Claim
from priqueue.orders import BUFFER_BYTES, Orders
from priqueue.runner import Key, Runner, key_of

_LONGEST_LINE = 2**26  # more than all slots of a child can say at once
_START = "import sys; sys.path[:] = {path!r}; from priqueue.child import main; main({descriptor}, {parent}, {threads})"


class Place(Protocol):
    """Where runs take place."""

    runs: dict[Key, Claim]
    #: whether it takes runs: a child that is still starting does not
    ready: bool
    #: how many runs it has taken so far
    taken: int

    def submit(self, claim: Claim) -> None:
        """Take a claim, to run it at the next ``send`` or before."""

    def send(self) -> None:
        """Run what it took."""

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

    def __init__(self, size: int, settings: Settings, tell: Callable[[Place, str, Any], None], ears: Ears) -> None:
        self.runs: dict[Key, Claim] = {}
        self.ready = True
        self.taken = 0
        self._tell = tell
        self._ears = ears
        self._runner = Runner(
            size,
            settings,
            lambda outcome: self._say("done", outcome),
            lambda key: self._say("interrupted", key),
        )
        self._runner.start()

    def _say(self, what: str, value: Any) -> None:
        self._tell(self, what, value)
        self._ears.ring()

    def submit(self, claim: Claim) -> None:
        """Take a claim, to run it at the next ``send`` or before."""
        self.runs[key_of(claim)] = claim
        self.taken += 1
        self._runner.submit(claim)

    def send(self) -> None:
        """Run what it took, all at once: nobody looks after what waits here meanwhile."""
        self._runner.spread()

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

    ``tell`` is called by ``hear`` with "ready", "done" and an outcome, or "interrupted" and a key, and at last, from a
    thread of its own, with "gone".
    """

    def __init__(self, size: int, tell: Callable[[Place, str, Any], None], ears: Ears) -> None:
        self.runs: dict[Key, Claim] = {}
        self.ready = False
        self.taken = 0
        self._tell = tell
        self._socket, theirs = socket.socketpair()
        code = _START.format(path=sys.path, descriptor=theirs.fileno(), parent=os.getpid(), threads=size)
        # A group of its own: Ctrl-C on a terminal is for the worker, which drains.
        self.process = subprocess.Popen(  # noqa: S603 (our own interpreter and our own code)
            [sys.executable, "-c", code], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, process_group=0
        )
        theirs.close()
        self._orders = Orders(self._socket, f"orders-{self.process.pid}")
        self._said = b""  # the beginning of a line, whose end is still to come
        self._silent = False
        self._burial: threading.Thread | None = None
        self._ears = ears
        ears.add(self)

    def submit(self, claim: Claim) -> None:
        """Take a claim, to run it at the next ``send`` or before."""
        self.runs[key_of(claim)] = claim
        self.taken += 1
        self._orders.hold("run", encode_claim(claim))

    def send(self) -> None:
        """Run what it took: all claims of a turn go to the process in one piece."""
        self._orders.send()

    def interrupt(self, key: Key) -> None:
        """Ask a run to stop."""
        self._orders.send(("interrupt", key))

    def lose(self, key: Key) -> None:
        """Tell a run that its lease is lost."""
        self._orders.send(("lose", key))

    def dismiss(self) -> None:
        """Let an empty child end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """End the process now, and with its runs the programs that they started; it is told "gone" afterwards."""
        if self.process.returncode is None:  # before that, its number cannot be another's
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if self.runs else os.kill)(self.process.pid, signal.SIGKILL)

    def end(self) -> None:
        """End the process now, and wait until everything it said has been told."""
        self.kill()
        while not self._silent:
            self.hear(wait=True)
        if self._burial is not None:
            self._burial.join()

    def cause_of_death(self) -> str:
        """Return how the process ended, for people."""
        code = self.process.wait()
        return f"signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exit code {code}"

    def fileno(self) -> int:
        """Return the descriptor by which it speaks."""
        return self._socket.fileno()

    def hear(self, *, wait: bool = False) -> bool:
        """Tell what it has said; return whether there may be more.

        A child of which nothing can be understood any more must not go on.
        """
        try:
            said = self._socket.recv(BUFFER_BYTES, 0 if wait else socket.MSG_DONTWAIT)
            if said:
                # A line without an end is all that it got out before it died.
                *lines, self._said = (self._said + said).split(b"\n")
                if len(self._said) > _LONGEST_LINE:
                    raise ValueError("a line without an end")
                for line in lines:
                    for what, value in decode_line(line):
                        self._tell(self, what, self._read_value(what, value))
                return len(said) == BUFFER_BYTES
        except BlockingIOError:
            return False
        except Exception:  # noqa: S110 (whatever it said, its end is told)
            pass
        self._silent = True
        self._ears.remove(self)
        self.kill()  # now: the programs that its runs started may be what leaves no room for a thread
        # A thread of its own: a process may take its time to end, and its neighbours' outcomes do not wait for that.
        burial = threading.Thread(target=self._bury, name=f"burial-{self.process.pid}", daemon=True)
        try:
            burial.start()
        except RuntimeError:  # no more threads
            self._bury()
        else:
            self._burial = burial
        return False

    def _bury(self) -> None:
        self.process.wait()
        self._socket.close()
        self._tell(self, "gone", None)
        self._ears.ring()

    def _read_value(self, what: str, value: Any) -> Outcome | Key | None:
        if what == "done":
            return decode_outcome(value, self.runs[tuple(value[0])])
        if what == "interrupted":
            return decode_key(value)
        if what != "ready":
            raise ValueError(f"a child says nothing like {what!r:.40}")
        return None
