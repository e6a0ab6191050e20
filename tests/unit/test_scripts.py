"""scripts: what every script looks like, and what becomes of errors on the way."""

import re
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any
from unittest.mock import Mock, call

import pytest
from fakeredis import FakeRedis
from redis import Redis
from redis._parsers.base import BaseParser
from redis.crc import key_slot
from redis.exceptions import (
    AuthenticationError,
    ConnectionError,
    OutOfMemoryError,
    RedisError,
    TimeoutError,
)

from priqueue import PriqueueError, QueueFull, QueueUnavailable, clock
from priqueue.coordinator import DENIED, Coordinator, Note, Outbox, Run
from priqueue.coordinator.calls import mark
from priqueue.coordinator.connection import derive
from priqueue.coordinator.forms import Forms
from priqueue.coordinator.keys import Keys
from priqueue.coordinator.letters import Filter
from priqueue.coordinator.line import Head
from priqueue.coordinator.scripts import TURN, Call, Scripts, names, source
from priqueue.jobs import Failure, Job
from priqueue.limits import Limit, Rule
from tests.support.queues import FAILURE, HANDLER, Queue, test_settings

LUA = Path(str(resources.files("priqueue.coordinator"))) / "lua"
SCRIPTS = sorted(LUA.glob("*.lua"))
PRELUDE = sorted(LUA.glob("prelude/*.lua"))
INTEGRATION = Path(__file__).parent.parent / "integration"
#: the methods that run a script of another name: a pull is a claim that waits
#: where a method says more than its script: pages begin and finish a form, only the auditor says that it was seen
METHODS = {"claim": "pull", "form": "begin", "seen": "say_seen"}

every_file = pytest.mark.parametrize("file", SCRIPTS + PRELUDE, ids=lambda file: file.stem)
every_script = pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.stem)


def _header(file: Path) -> str:
    """Return the comment at the top of a file."""
    lines = file.read_text(encoding="utf-8").splitlines()
    head = next(number for number, line in enumerate(lines) if not line.startswith("--"))
    return "\n".join(lines[:head])


def _code(file: Path) -> str:
    """Return a file without its comments."""
    return re.sub(r"--.*", "", file.read_text(encoding="utf-8"))


# ── what they look like ──


@every_file
def test_no_file_is_longer_than_sixty_lines(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 60


@every_file
def test_the_header_begins_with_the_name_and_says_the_output(file: Path) -> None:
    header = _header(file)

    assert header.startswith(f"-- {file.stem}: ")
    assert "-- Output: " in header


@every_script
def test_the_header_names_every_argument_that_the_script_reads(file: Path) -> None:
    read = {int(number) for number in re.findall(r"ARGV\[(\d+)\]", _code(file))}
    told = {int(number) for number in re.findall(r"ARGV\[(\d+)", _header(file))}

    assert read <= told


@every_script
def test_the_header_tells_of_no_argument_that_the_script_never_reads(file: Path) -> None:
    code = _code(file)
    told = {int(number) for number in re.findall(r"ARGV\[(\d+)\]", _header(file))}
    read = {int(number) for number in re.findall(r"ARGV\[(\d+)\]", code)}

    assert told <= read | {4}  # the lanes are read by the prelude


@every_file
def test_no_script_looks_through_the_keyspace(file: Path) -> None:
    assert not re.search(r"'(KEYS|SCAN|HSCAN|SSCAN|ZSCAN|RANDOMKEY|FLUSHDB|FLUSHALL)'", _code(file))


@every_file
def test_every_key_made_in_lua_begins_with_the_prefix(file: Path) -> None:
    code = _code(file)
    made = re.findall(r"(\S+ \.\. )?'[a-z]+:' \.\. (?!lane$)", code)

    assert all(before == "prefix .. " for before in made if before)
    assert "'{'" not in code


@every_file
def test_time_is_asked_of_the_server_alone(file: Path) -> None:
    assert not re.search(r"os\.(time|clock|date)", _code(file))


@every_script
def test_the_time_is_read_once(file: Path) -> None:
    assert "'TIME'" not in _code(file)


@every_file
def test_nothing_is_unpacked_that_could_be_longer_than_a_batch(file: Path) -> None:
    of_lanes = {"fields", "wanted", "words"}
    bounded = {"KEYS, 1, 25", "stays", "words, at, math.min(at + 999, #words", "trails, at, math.min(at + 999, #trails"}

    assert set(re.findall(r"unpack\(([^)]*)\)", _code(file))) <= bounded | of_lanes


@pytest.mark.parametrize("name", names())
def test_every_script_but_those_that_take_jobs_in_runs_at_the_memory_limit(name: str) -> None:
    first_line = source(name, True).splitlines()[0]

    assert first_line == ("#!lua" if name in ("admit", "enqueue", "replace") else "#!lua flags=allow-oom")


@pytest.mark.parametrize("name", names())
def test_what_cannot_read_the_first_line_gets_the_same_script_without_it(name: str) -> None:
    assert source(name, True).partition("\n")[2] == source(name, False)


@every_script
def test_script_method_and_test_file_share_a_verb(file: Path) -> None:
    method = METHODS.get(file.stem, file.stem)

    assert any(callable(getattr(kind, method, None)) for kind in (Coordinator, Outbox, Forms))
    assert (INTEGRATION / f"test_{file.stem}.py").exists()


def test_every_file_is_a_script_that_can_be_sent() -> None:
    assert names() == (*(file.stem for file in SCRIPTS), TURN)


# ── one slot ──

RUN = Run(id="r", action="purge", wanted=Filter(), reason="test", until_ms=0, number=0)


def _live(queue: Queue) -> None:
    """Lead jobs through every transition."""
    c, by = queue.coordinator, {"caller": "user:1", "reason": "test"}
    rule = Rule("named", Limit.parse("1/h"))
    once = Job(name=HANDLER, payload={}, caller="user:{1}", lane="high")
    for _ in range(2):
        other = Job(name=HANDLER, payload={}, caller="user:{1}", lane="high")
        c.enqueue_once([once, other], [mark("user:{1}", "key{}", ""), ""], rule)
    c.cancel(once.id, lane="high", **by)
    queue.enqueue(number=6, lane="low")
    (delayed,) = queue.enqueue(delay_ms=1_000)
    c.register("w", lanes=["default", "low"], concurrency=9)
    acked, retried, released, buried, requeued, crashed = c.pull("w", 6)
    c.beat("w", [acked])
    c.ack(acked)
    c.retry(retried, FAILURE, delay_s=1)
    c.release(released)
    c.bury(buried, FAILURE)
    c.bury(requeued, Failure(error="Odd{error}"))
    c.requeue([requeued.job.id], **by)
    copy = Job(name=HANDLER, payload={}, lane="low")
    c.replace(buried.job.id, copy, **by)
    c.cancel(copy.id, lane="low", **by)
    c.purge([buried.job.id], **by)
    c.cancel(released.job.id, lane="low", **by)
    c.steer(RUN, "going", caller="user:1")
    c.step(RUN, [], "a", caller="user:1")
    queue.lapse()
    c.promote()
    c.pause("low", **by)
    c.resume("low", **by)
    c.wake(["low"])
    c.sample({"slots": 1})
    c.count({("failed_pushes", "low"): 1})
    c.drain("w", **by)
    c.note(Note(action="view", caller="user:1", outcome=DENIED))
    c.forget(["w"])
    c.leave("w")
    c.trim()
    queue.clock.advance(60)
    c.report()
    assert queue.places() == dict.fromkeys((delayed.id, retried.job.id, requeued.job.id, crashed.job.id), "ready")


@pytest.mark.parametrize("namespace", ["priqueue", "shop:jobs", "a.b_c-d", ":", "x" * 64, "9"])
def test_every_key_of_every_script_is_in_the_slot_of_its_namespace(namespace: str) -> None:
    client = FakeRedis()
    client.flushall()

    _live(Queue(client, test_settings(NAMESPACE=namespace)))

    slots = {key_slot(key) for key in client.keys("*")}
    assert slots == {key_slot(namespace.encode())}


def test_a_script_names_all_the_keys_it_could_know_before() -> None:
    client, keys = Recorder(), Keys("s")
    scripts = _scripts(client, now_ms=lambda: 7)

    scripts.run(Call("promote", (1, "ticker"), ("high", "low")))

    ((_, _, number, *rest),) = client.commands
    assert rest[:number] == [*keys.fixed, *keys.of_lanes(["high", "low"])]
    assert rest[number:] == ["{s}:", 7, "all", "high,low", 1, "ticker"]


# ── errors ──


class Recorder:
    """A client, and its line, that records the commands and raises what it is told to, one error for each call."""

    def __init__(self, *errors: Exception | None) -> None:
        self.connection_pool = Mock(connection_class=Redis)
        self.errors = list(errors)
        self.commands: list[tuple[Any, ...]] = []

    def send(self, *commands: tuple[Head, Sequence[Any]]) -> Callable[[], list[int]]:
        self.commands += [(*head.words, *words) for head, words in commands]
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        return lambda: [1 for _ in commands]


class Time:
    """This machine's clock, that only pauses move."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.pauses_s: list[float] = []

    def pause(self, seconds: float) -> None:
        self.pauses_s.append(seconds)
        self.now_s += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    moved = Time()
    monkeypatch.setattr(clock, "pause", moved.pause)
    monkeypatch.setattr(clock, "monotonic_s", lambda: moved.now_s)
    return moved


def _scripts(client: Any, deadline_s: float = 4, now_ms: Callable[[], int] | None = None) -> Scripts:
    scripts = Scripts(client, Keys("s"), audit="all", deadline_s=deadline_s, now_ms=now_ms)
    if isinstance(client, Recorder):
        scripts._line = client  # type: ignore[assignment]
    return scripts


def _flags(client: Recorder) -> list[str]:
    """Return what each call said of being a repeat: its first own argument."""
    return [command[3 + command[2] + 4] for command in client.commands]


#: what servers say when it will soon be over, in their own words
PASSING = [
    "BUSY Redis is busy running a script.",
    "LOADING Redis is loading the dataset in memory",
    "MASTERDOWN Link with MASTER is down",
    "NOREPLICAS Not enough good replicas to write.",
    "READONLY You can't write against a read only replica.",
    "CLUSTERDOWN The cluster is down",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "UNKILLABLE Sorry the script already executed write commands",
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
    "MISCONF Errors writing to the AOF file: No space left on device",
    "ERR max number of clients reached",
]
#: what will be no better in a moment
LASTING = [
    "WRONGPASS invalid username-password pair or user is disabled.",
    "NOAUTH Authentication required.",
    "NOPERM this user has no permissions to run the 'evalsha' command",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "ERR unknown command 'EVALSHA'",
]


def _error(said: str) -> RedisError:
    """Return the error that the client library makes of a server's words."""
    error = BaseParser.parse_error(said)
    assert isinstance(error, RedisError)
    return error


@pytest.mark.parametrize("said", PASSING)
def test_what_may_pass_is_tried_again_and_then_answered(time: Time, said: str) -> None:
    client = Recorder(_error(said), _error(said))

    assert _scripts(client).run(Call("wake", ())) == [1]

    assert len(client.commands) == 3


@pytest.mark.parametrize("said", PASSING)
def test_only_a_server_that_is_the_primary_no_more_loses_its_connections(time: Time, said: str) -> None:
    client = Recorder(_error(said))

    _scripts(client).run(Call("wake", ()))

    demoted = said.startswith(("READONLY", "NOREPLICAS"))
    assert client.connection_pool.disconnect.call_args_list == [call(inuse_connections=False)] * demoted


@pytest.mark.parametrize("said", LASTING)
def test_what_will_not_pass_is_raised_at_once(time: Time, said: str) -> None:
    client = Recorder(_error(said))

    with pytest.raises(PriqueueError):
        _scripts(client).run(Call("wake", ()))

    assert (len(client.commands), time.pauses_s) == (1, [])


def test_a_call_without_an_answer_is_sent_again_as_a_repeat(time: Time) -> None:
    client = Recorder(TimeoutError(), TimeoutError())

    _scripts(client).run(Call("ack", ("id", "token"), says_repeat=True))

    assert _flags(client) == ["0", "1", "1"]


def test_a_call_that_is_a_repeat_from_the_start_says_so(time: Time) -> None:
    client = Recorder()

    _scripts(client).run(Call("ack", ("id", "token"), says_repeat=True), repeat=True)

    assert _flags(client) == ["1"]


def test_the_deadline_is_respected_and_the_pauses_grow_to_half_a_second(time: Time) -> None:
    client = Recorder(*[ConnectionError("refused")] * 1_000)

    with pytest.raises(QueueUnavailable, match="did not answer: ConnectionError: refused"):
        _scripts(client, deadline_s=4).run(Call("wake", ()))

    assert 3 < time.now_s <= 4
    assert time.pauses_s[0] <= 0.02
    assert all(pause_s <= 0.5 for pause_s in time.pauses_s)
    assert len(client.commands) < 25


def test_with_no_time_left_the_first_failure_is_the_last(time: Time) -> None:
    client = Recorder(ConnectionError("refused"))

    with pytest.raises(QueueUnavailable):
        _scripts(client, deadline_s=0).run(Call("wake", ()))

    assert len(client.commands) == 1


def test_a_port_where_nobody_listens_is_a_queue_that_is_unavailable(time: Time) -> None:
    client = derive(Redis(port=1), socket_timeout_s=1)

    with pytest.raises(QueueUnavailable):
        _scripts(client).run(Call("wake", ()))

    assert time.pauses_s


def test_the_memory_limit_is_a_full_queue(time: Time) -> None:
    with pytest.raises(QueueFull, match="memory limit"):
        _scripts(Recorder(OutOfMemoryError("OOM command not allowed"))).run(Call("enqueue", ()))


@pytest.mark.parametrize("text", ["WRONGPASS secret", "invalid password secret"])
def test_a_refused_password_is_told_without_what_the_server_said(time: Time, text: str) -> None:
    with pytest.raises(QueueUnavailable, match="user name or password") as caught:
        _scripts(Recorder(AuthenticationError(text))).run(Call("wake", ()))

    assert "secret" not in str(caught.value)


def test_a_right_that_is_missing_is_the_server_s_fault_and_not_the_call_s(time: Time) -> None:
    with pytest.raises(QueueUnavailable, match="refused a right: this user has no permissions"):
        _scripts(Recorder(_error(LASTING[2]))).run(Call("wake", ()))


# ── a server that has forgotten the scripts ──


@pytest.fixture
def alone() -> Iterator[Callable[[], Queue]]:
    """Make a queue on a server whose scripts nobody else uses, and let the server forget them."""
    client = FakeRedis()

    def make() -> Queue:
        return Queue(client, test_settings())

    yield make
    client.close()


def test_a_forgotten_script_is_loaded_and_run_once(alone: Callable[[], Queue]) -> None:
    queue = alone()
    queue.raw.script_flush()

    (job,) = queue.enqueue()

    assert queue.state() == queue.expected(ready={"default": [job.id]})


def test_a_first_try_that_met_a_forgotten_script_is_no_repeat(alone: Callable[[], Queue]) -> None:
    queue = alone()
    (claim,) = queue.claimed()
    queue.coordinator.ack(claim)
    queue.raw.script_flush()

    with pytest.raises(PriqueueError, match="no longer held"):
        queue.coordinator.ack(claim)


def test_forgotten_scripts_in_one_round_trip_are_loaded_and_run_in_their_order(
    alone: Callable[[], Queue],
) -> None:
    queue = alone()
    queue.enqueue(number=3)
    queue.register("w", concurrency=2)
    done = queue.coordinator.pull("w", 2)
    queue.raw.script_flush()

    turn = queue.coordinator.turn("w", 2, done)

    assert (turn.state, turn.lost, len(turn.claims)) == ("ok", [], 1)
    assert queue.state() == queue.expected(*turn.claims)


def test_an_ack_in_a_round_trip_that_met_a_forgotten_script_is_no_repeat(alone: Callable[[], Queue]) -> None:
    queue = alone()
    claims = queue.claimed()
    queue.coordinator.ack(*claims)
    queue.raw.script_flush()

    turn = queue.coordinator.turn("worker", 1, claims)

    assert list(turn.lost) == claims


def test_a_server_that_knows_one_script_of_ours_knows_all(alone: Callable[[], Queue]) -> None:
    queue = alone()
    queue.raw.script_flush()

    queue.enqueue()

    assert all(queue.raw.script_exists(*(queue.coordinator._scripts._sha_of(name) for name in names())))


def test_a_batch_over_several_lanes_survives_a_forgotten_script(alone: Callable[[], Queue]) -> None:
    queue = alone()
    jobs = [Job(name=HANDLER, payload={}, lane=lane) for lane in ("high", "default", "low")]
    queue.raw.script_flush()

    queue.coordinator.enqueue_many(jobs)

    assert queue.places() == {job.id: "ready" for job in jobs}
