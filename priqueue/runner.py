"""Runner: runs jobs beside each other in one process: functions in threads, coroutines on one event loop.

A run that is over its time can be interrupted: a coroutine is cancelled, a thread gets a Timeout raised in it. That
can land anywhere in the thread, so it is raised only under a lock that the thread takes to leave its job: never in
the next one. What blocks in C code hears of neither; then only the end of the process helps.
"""

import asyncio
import contextvars
import ctypes
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from asgiref.sync import sync_to_async

from priqueue import connections
from priqueue.clock import monotonic_s
from priqueue.conf import Settings
from priqueue.exceptions import Timeout
from priqueue.executor import Outcome, execute, execute_async, failed, is_async
from priqueue.jobs import Claim
from priqueue.pace import PATIENCE_MS, Pace

Key = tuple[str, str]


def key_of(claim: Claim) -> Key:
    """Return what tells a run from all others: job and token."""
    return claim.job.id, claim.token


class Slot:
    """One thread's place: which run it is at, and whether that was interrupted."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._key: Key | None = None
        self._due_s = 0.0
        self._thread_id = 0

    def run(self, claim: Claim, lease_lost: Callable[[], bool]) -> Outcome:
        """Run a claim and return its outcome."""
        outcome = None
        try:
            try:
                self._enter(claim)
                outcome = execute(claim, self._settings, lease_lost)
            finally:
                self._leave()
        except Timeout:  # it landed beside the handler; there is only one for each run, so nothing more can come
            self._leave()
        return outcome or failed(claim, Timeout(), self._settings)

    def interrupt(self, key: Key) -> float | None:
        """Raise a Timeout in the thread; return 0, or the seconds that its run has left, or None if it is elsewhere.

        A run that had to wait, behind one that held the interpreter lock, has its time from its own beginning.
        """
        with self._lock:
            if self._key != key:
                return None
            left_s = max(0.0, self._due_s - monotonic_s())
            if not left_s:
                self._key = None
                _raise_in(self._thread_id, Timeout)
        return left_s

    def _enter(self, claim: Claim) -> None:
        self._thread_id = threading.get_ident()
        with self._lock:
            self._key, self._due_s = key_of(claim), monotonic_s() + claim.job.timeout

    def _leave(self) -> None:
        with self._lock:
            if self._key is None:  # interrupted: what was raised may not have landed yet
                _raise_in(self._thread_id, None)
            self._key = None


def _raise_in(thread_id: int, exception: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread_id), ctypes.py_object(exception) if exception else None
    )


class Coroutines:
    """The event loop on which all coroutines of this process run; started when the first comes."""

    def __init__(
        self, settings: Settings, finished: Callable[[Outcome], None], interrupted: Callable[[Key], None]
    ) -> None:
        self._settings = settings
        self._finished = finished
        self._interrupted = interrupted
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    def submit(self, claim: Claim, lease_lost: Callable[[], bool]) -> None:
        """Run a claim beside the others."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._turn, args=(self._loop,), name="coroutines", daemon=True).start()
        self._loop.call_soon_threadsafe(self._begin, claim, lease_lost)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the loop for good: a SystemExit in a task that a handler started, or a ``stop``, would end it for all."""
        while not loop.is_closed():
            with suppress(BaseException):
                loop.run_forever()

    def interrupt(self, key: Key) -> None:
        """Cancel a run, if it still goes on."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._cancel, key)

    def _begin(self, claim: Claim, lease_lost: Callable[[], bool]) -> None:
        assert self._loop is not None
        self._tasks[key_of(claim)] = self._loop.create_task(self._run(claim, lease_lost))

    def _cancel(self, key: Key) -> None:
        if key in self._tasks:
            self._tasks[key].cancel()
            self._interrupted(key)

    async def _run(self, claim: Claim, lease_lost: Callable[[], bool]) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            outcome = await execute_async(claim, self._settings, lease_lost)
            if task.cancelling():
                outcome = failed(claim, Timeout(), self._settings, outcome.run_s)
        except asyncio.CancelledError:  # before the handler began
            outcome = failed(claim, Timeout(), self._settings)
        finally:
            del self._tasks[key_of(claim)]
        self._finished(outcome)
        # After: this waits for the thread in which all coroutines use the database, and the next to come waits for it.
        await sync_to_async(connections.tidy)()


class Runner:
    """Runs claims, at most as many at a time as it has threads, and tells when each is finished.

    Threads that take turns with the interpreter lock cost more than the shortest runs do. So while runs are quick, one
    thread takes them one after the other, until one keeps it for ``PATIENCE_MS``: whoever submits calls ``go``, and
    calls it again that much later if something is ``waiting`` still.
    """

    def __init__(
        self,
        size: int,
        settings: Settings,
        finished: Callable[[Outcome], None],
        interrupted: Callable[[Key], None] = lambda _: None,
    ) -> None:
        self._finished = finished
        self._interrupted = interrupted
        self._claims: deque[Claim] = deque()
        self._lock = threading.Lock()  # over who is idle, and what waits
        self._idle: list[threading.Lock] = []  # one for each idle thread, which waits for its release
        self._size = size
        self._taken_s = 0.0  # when a thread last took a claim, or was woken for one
        self._relief = 1  # how many threads are woken when the one at work is stuck
        self._pace = Pace()
        self._slots = [Slot(settings) for _ in range(size)]
        self._coroutines = Coroutines(settings, self._finish, interrupted)
        self._lost: set[Key] = set()

    def start(self) -> None:
        """Start the threads. They are daemons: a handler that never returns must not keep a process alive."""
        for number, slot in enumerate(self._slots, 1):
            threading.Thread(target=self._work, args=(slot,), name=f"slot-{number}", daemon=True).start()

    def submit(self, claim: Claim) -> None:
        """Take a claim: a function runs after the next ``go`` or ``spread``, a coroutine at once."""
        if is_async(claim):
            self._coroutines.submit(claim, self._asker(claim))
        else:
            self._claims.append(claim)

    @property
    def waiting(self) -> bool:
        """Whether a claim waits for a thread."""
        return bool(self._claims)

    def go(self) -> None:
        """Run what waits: each claim in a thread of its own, or quick ones by the thread that is at them."""
        with self._lock:
            at_work = self._size - len(self._idle)
            is_stuck = at_work > 0 and monotonic_s() - self._taken_s >= PATIENCE_MS / 1000
            # One more thread, then two more, and so on: it may have been the machine that was busy, and not the thread.
            self._relief = min(2 * self._relief, self._size) if is_stuck else 1
            if not self._pace.is_quick:
                self._wake(len(self._claims))
            elif is_stuck or not at_work:
                self._wake(self._relief)

    def spread(self) -> None:
        """Run what waits, each claim in a thread of its own."""
        with self._lock:
            self._wake(len(self._claims))

    def _wake(self, number: int) -> None:
        for _ in range(min(number, len(self._claims), len(self._idle))):
            self._taken_s = monotonic_s()
            self._idle.pop().release()

    def _next(self, gate: threading.Lock) -> Claim:
        """Wait for a claim."""
        while True:
            with self._lock:
                if self._claims:
                    self._taken_s = monotonic_s()
                    return self._claims.popleft()
                self._idle.append(gate)
            gate.acquire()

    def interrupt(self, key: Key) -> None:
        """Ask a run that is over its time to stop; ``interrupted`` is called once it is."""
        self._coroutines.interrupt(key)
        for left_s in [slot.interrupt(key) for slot in self._slots]:
            if left_s == 0:
                self._interrupted(key)
            elif left_s is not None:
                later = threading.Timer(left_s, self.interrupt, (key,))
                later.daemon = True
                later.start()

    def lose(self, key: Key) -> None:
        """Let a run know that its lease is lost."""
        self._lost.add(key)

    def _asker(self, claim: Claim) -> Callable[[], bool]:
        return lambda: key_of(claim) in self._lost

    def _work(self, slot: Slot) -> None:
        holds_connections = False
        gate = threading.Lock()
        gate.acquire()
        while True:
            claim = self._next(gate)
            if holds_connections:  # the server may have closed them while this thread had nothing to do
                connections.tidy()
            # In a context of its own: a language, or a tenant, that a handler sets must not be the next job's.
            outcome = contextvars.copy_context().run(slot.run, claim, self._asker(claim))
            holds_connections = connections.tidy()
            self._pace.note(outcome.run_s)
            self._finish(outcome)

    def _finish(self, outcome: Outcome) -> None:
        self._lost.discard(key_of(outcome.claim))
        self._finished(outcome)
