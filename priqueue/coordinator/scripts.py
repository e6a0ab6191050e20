"""Scripts: how a transition is sent to the server, and what its errors mean.

A call that got no answer may or may not have been done. It is sent again, as a repeat, until the deadline:
every script can tell what it did before (see the head of each), so that a lost reply has its effect once.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha1
from importlib import resources
from math import inf
from typing import Any

from redis import Redis
from redis.exceptions import (
    AuthenticationError,
    ClusterDownError,
    ConnectionError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    TimeoutError,
    TryAgainError,
)

from priqueue import clock
from priqueue.coordinator.keys import Keys
from priqueue.coordinator.line import Head, Line
from priqueue.exceptions import PriqueueError, QueueFull, QueueUnavailable

_PRELUDE = (
    "basics",
    "events",
    "duties",
    "checks",
    "leases",
    "trails",
    "letters",
    "pools",
    "picker",
    "ready",
    "histograms",
    "answers",
    "refusals",
    "limits",
    "runs",
    "parts",
)
#: a worker's turn: both are one script, since what stands in front of each costs more than most turns do
TURN = "ack+claim"
_LUA = resources.files("priqueue.coordinator") / "lua"
#: scripts that touch no lease and no letter, and need no look at theirs
_UNCHECKED = ("admit", "enqueue")
_FUNCTION = re.compile(r"^local function (\w+)", re.MULTILINE)
_WORD = re.compile(r"\w+")
#: what takes jobs in is refused at the server's memory limit; all else runs there, so that the queue drains
_TAKES_IN = ("admit", "enqueue", "replace")
# A server that is busy, loading, without its master, without replicas or with a full disk, or whose scripts are being
# flushed: in a moment the same call may succeed.
# The client has classes for some of these, and takes the word off their message; the others keep it.
_PASSING = (ConnectionError, TimeoutError, ReadOnlyError, ClusterDownError, TryAgainError, NoScriptError)
_PASSING_WORDS = ("BUSY", "MISCONF", "NOREPLICAS", "UNKILLABLE", "UNBLOCKED")
# Wrong credentials and rights stay wrong until a person changes them. Then the same call succeeds, so it is no fault of
# the call, and what it was to settle is kept.
_REFUSES_US = (AuthenticationError, NoPermissionError)
#: waits for the answers to what was sent; to be called once
Begun = Callable[[], list[Any]]
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.5


@dataclass(frozen=True, slots=True)
class Call:
    """One script with the lanes it touches and its own arguments."""

    script: str
    args: Sequence[str | int]
    lanes: tuple[str, ...] = ()
    #: whether the first argument is to say if this is a repeat
    says_repeat: bool = False

    def words(self, repeat: bool) -> Sequence[str | int]:
        """Return the script's own words."""
        return ("1" if repeat else "0", *self.args) if self.says_repeat else self.args


@dataclass(frozen=True, slots=True)
class Joined:
    """Calls that the server runs as one script. It knows that of ``TURN``, where only the last touches lanes."""

    parts: tuple[Call, ...]

    @property
    def script(self) -> str:
        """The names of all."""
        return "+".join(part.script for part in self.parts)

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes of the last."""
        return self.parts[-1].lanes

    def words(self, repeat: bool) -> Sequence[str | int]:
        """Return the own words of each, and before them their number."""
        return [word for own in (part.words(repeat) for part in self.parts) for word in (len(own), *own)]


@cache
def source(name: str, with_header: bool) -> str:
    """Return the whole text of a script as the server gets it: with those parts of the prelude that it uses.

    The header line tells the server that it may run at the memory limit; fakeredis cannot read one.
    """
    first, *others = name.split("+")
    text = _joined((first, *others)) if others else _text(f"{first}.lua")
    for part in reversed(_PRELUDE):
        before = _text(f"prelude/{part}.lua")
        # Every part is run at each call, and none of them is free.
        always = part == "basics" or (part == "checks" and name not in _UNCHECKED)
        if always or not set(_FUNCTION.findall(before)).isdisjoint(_WORD.findall(text)):
            text = before + text
    flags = "" if name in _TAKES_IN else " flags=allow-oom"
    return f"#!lua{flags}\n{text}" if with_header else text


def _joined(scripts: Sequence[str]) -> str:
    parts = "".join(f"parts[#parts + 1] = function(ARGV)\n{_text(f'{script}.lua')}end\n" for script in scripts)
    return f"{parts}return run_parts()\n"


@cache
def _text(file: str) -> str:
    return (_LUA / file).read_text(encoding="utf-8")


@cache
def names() -> tuple[str, ...]:
    """Return the names of all scripts: those that stand in a file each, and what is joined of them."""
    return (*sorted(file.name.removesuffix(".lua") for file in _LUA.iterdir() if file.is_file()), TURN)


class Scripts:
    """Sends calls to one server, in one round trip, and repeats what was not answered."""

    def __init__(self, client: "Redis", keys: Keys, *, audit: str, deadline_s: float, now_ms: Callable[[], int] | None):
        self._client = client
        self._keys = keys
        self._audit = audit
        self._deadline_s = deadline_s
        self._now_ms = now_ms
        self._with_header = "fakeredis" not in client.connection_pool.connection_class.__module__
        #: when a call last got no answer, or one that is none
        self.troubled_at_s = -inf
        self._line = Line(client)
        self._shas: dict[str, str] = {}
        self._heads: dict[tuple[str, tuple[str, ...]], Head] = {}

    def run(self, *calls: Call | Joined, repeat: bool = False) -> list[Any]:
        """Run the calls in their order, in one round trip, and return their answers.

        ``repeat`` says that an earlier run of the same calls may have been done. Raises QueueUnavailable when no
        answer came before the deadline, QueueFull at the server's memory limit, PriqueueError for any other refusal.
        """
        answers = self.run_each(*calls, repeat=repeat)
        for answer in answers:
            if isinstance(answer, QueueFull):
                raise answer
        return answers

    def run_each(self, *calls: Call | Joined, repeat: bool = False) -> list[Any]:
        """Run the calls as ``run`` does, and return QueueFull as the answer of each that met the memory limit.

        The limit may be reached, or be over, between two calls of one round trip: each is done or not by itself.
        """
        return self.begin(*calls, repeat=repeat)()

    def begin(self, *calls: Call | Joined, repeat: bool = False) -> Begun:
        """Send calls; what is returned waits for their answers, does as ``run_each``, and is to be called once."""
        give_up_at_s = clock.monotonic_s() + self._deadline_s
        try:
            begun = self._evaluate(calls, repeat)
        except RedisError as error:
            begun = partial(_fail, error)
        return lambda: self._persist(calls, begun, repeat, give_up_at_s)

    def _persist(self, calls: Sequence[Call | Joined], begun: Begun, repeat: bool, give_up_at_s: float) -> list[Any]:
        """Wait for the answers to what was begun; where there are none, send it again until the deadline."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return self._end(calls, begun, repeat)
            except RedisError as error:
                self.troubled_at_s = clock.monotonic_s()
                leave_demoted(self._client, error)
                if not may_pass(error) or clock.monotonic_s() + pause_s > give_up_at_s:
                    raise translated(error) from error
            clock.pause(pause_s * random.uniform(0.5, 1))  # noqa: S311 (spreads the callers, hides nothing)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            repeat, begun = True, lambda: self._evaluate(calls, repeat=True)()

    def _end(self, calls: Sequence[Call | Joined], begun: Begun, repeat: bool) -> list[Any]:
        """Return the answers. A restarted server has forgotten the scripts: what it did not know is sent again."""
        answers = begun()
        unknown = [at for at, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
        if unknown:
            self._load()
            again = self._evaluate([calls[at] for at in unknown], repeat)()
            for at, answer in zip(unknown, again, strict=True):
                answers[at] = answer
        return _understood(calls, answers)

    def _evaluate(self, calls: Sequence[Call | Joined], repeat: bool) -> Begun:
        return self._line.send(*((self._head(call), self._words(call, repeat)) for call in calls))

    def _head(self, call: Call | Joined) -> Head:
        head = self._heads.get((call.script, call.lanes))
        if head is None:
            keys = [*self._keys.fixed, *self._keys.of_lanes(call.lanes)]
            head = Head("EVALSHA", self._sha_of(call.script), len(keys), *keys, self._keys.prefix)
            self._heads[call.script, call.lanes] = head
        return head

    def _words(self, call: Call | Joined, repeat: bool) -> list[str | int]:
        now = self._now_ms() if self._now_ms else ""
        return [now, self._audit, ",".join(call.lanes), *call.words(repeat)]

    def _sha_of(self, name: str) -> str:
        sha = self._shas.get(name)
        if sha is None:
            text = source(name, self._with_header)
            sha = self._shas[name] = sha1(text.encode(), usedforsecurity=False).hexdigest()
        return sha

    def _load(self) -> None:
        """Load every script: a server that knows some of ours and not others would run a round trip out of order."""
        pipeline = self._client.pipeline(transaction=False)
        for name in names():
            pipeline.execute_command("SCRIPT LOAD", source(name, self._with_header))
        pipeline.execute()


def _fail(error: Exception) -> list[Any]:
    raise error


def _understood(calls: Sequence[Call | Joined], answers: list[Any]) -> list[Any]:
    """Return answers, with QueueFull for each that met the memory limit. Raises the first other refusal."""
    for call, answer in zip(calls, answers, strict=True):
        for part in answer if isinstance(call, Joined) and isinstance(answer, list) else (answer,):
            if isinstance(part, RedisError) and not _is_full(part):
                raise part
    return [translated(answer) if isinstance(answer, RedisError) else answer for answer in answers]


def leave_demoted(client: "Redis", error: RedisError) -> None:
    """Drop a client's connections when the server behind them says that it is the primary no more.

    A connection that outlived a failover would be refused for ever, though the address leads elsewhere by now.
    """
    if isinstance(error, ReadOnlyError) or str(error).startswith("NOREPLICAS"):
        client.connection_pool.disconnect(inuse_connections=False)


def may_pass(error: RedisError) -> bool:
    """Return whether the same call may succeed in a moment, without anybody changing anything."""
    if isinstance(error, _REFUSES_US):
        return False
    return isinstance(error, _PASSING) or str(error).startswith(_PASSING_WORDS)


def _is_full(error: RedisError) -> bool:
    return isinstance(error, OutOfMemoryError) or str(error).startswith("OOM")


def translated(error: RedisError) -> PriqueueError:
    """Return our error for one of the client library's, without a secret in it."""
    if may_pass(error):
        return QueueUnavailable(f"the queue did not answer: {type(error).__name__}: {error}")
    if _is_full(error):
        return QueueFull("the queue's server is at its memory limit and takes no more jobs")
    if isinstance(error, AuthenticationError):
        return QueueUnavailable("the queue's server refused the user name or password")
    if isinstance(error, NoPermissionError):
        return QueueUnavailable(f"the queue's server refused a right: {error}")
    return PriqueueError(f"the queue's server refused a call: {error}")
