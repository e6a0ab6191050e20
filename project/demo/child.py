"""One child process of the demo, with everything below it: started, watched, stopped, and never left behind.

- It leads a process group of its own, so that Ctrl-C on the terminal reaches the demo alone, which stops its
  children in order, and so that what a child leaves behind can be ended by its group.
- Where the kernel offers it (Linux), the child is told to end when the demo dies, however it dies.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PR_SET_PDEATHSIG = 1
# Loaded here: between fork and exec is no place to load a library.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True, kw_only=True)
class Service:
    """What is to be kept running: a command line, and how it is stopped."""

    name: str
    command: Sequence[str]
    #: how long it may take to end after SIGTERM
    grace_s: float = 10
    #: what it gets when the demo is gone; nobody is left to wait for it then
    death_signal: signal.Signals = signal.SIGKILL
    #: open files that it inherits
    pass_fds: tuple[int, ...] = ()
    #: whether it serves already; asked after the start until it does
    ready: Callable[[], bool] = lambda: True


class Child:
    """A running process of a service: its output is in ``<folder>/<name>.log``, its id in ``<name>.pid``."""

    def __init__(self, service: Service, folder: Path, env: Mapping[str, str]) -> None:
        self.service = service
        self.log = folder / f"{service.name}.log"
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(  # noqa: S603 (our own commands)
                service.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=env,
                pass_fds=service.pass_fds,
                start_new_session=True,
                preexec_fn=_tied_to(os.getpid(), service.death_signal),
            )
        (folder / f"{service.name}.pid").write_text(f"{self.process.pid}\n", encoding="ascii")

    @property
    def exit_code(self) -> int | None:
        """Return how it ended, or None while it runs."""
        return self.process.poll()

    def last_words(self) -> str:
        """Return the last line of its log: what a person wants to see when it died."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def ask_to_stop(self) -> None:
        """Send SIGTERM, if it still runs."""
        if self.exit_code is None:
            self.process.terminate()

    def wait_or_kill(self) -> None:
        """Wait for its end at most its grace, then end it and whatever is left of its group."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(self.service.grace_s)
        self.kill_group()
        self.process.wait()

    def kill_group(self) -> None:
        """End what is left of its process group, at once."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)


def _tied_to(parent: int, death_signal: signal.Signals) -> Callable[[], None] | None:
    """Return what ties a child to its parent's life before its program starts; None where nothing can."""
    if _LIBC is None:
        return None
    prctl = _LIBC.prctl

    def tie() -> None:
        prctl(PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != parent:  # it died before it could be asked for
            os._exit(1)

    return tie
