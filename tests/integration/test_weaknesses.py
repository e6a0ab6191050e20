"""What queues get wrong: each weakness, and that this one does not have it."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import grimp
import pytest
import time_machine

import priqueue
from priqueue import ConfigurationError, LeaseLost, PriqueueError, lanes
from priqueue.conf import Settings
from priqueue.coordinator import Coordinator
from priqueue.coordinator.keys import FIXED
from priqueue.coordinator.line import Line
from priqueue.coordinator.scripts import names, source
from priqueue.jobs import Claim, Job
from priqueue.worker import Worker
from tests.support.queues import CAUSE, FAILURE, Queue

PACKAGE = Path(priqueue.__file__).parent
BY = {"caller": "user:1", "reason": "test"}

TRANSITIONS = (
    "enqueue",
    "promote",
    "claim",
    "ack",
    "retry",
    "bury",
    "release",
    "crash",
    "reclaim",
    "requeue",
    "purge",
    "cancel",
)
#: every kind of key, the ones by name as those of the jobs below
KEYS = (*FIXED, "lane:default", "delayed:default", "wake:default", "series", "trail", "cause")


def _do(queue: Queue, transition: str, held: Any, dead: str, ready: str) -> None:
    coordinator = queue.coordinator
    acts = {
        "enqueue": lambda: queue.enqueue(),
        "promote": lambda: coordinator.promote(),
        "claim": lambda: coordinator.pull("worker", 9),
        "ack": lambda: coordinator.ack(held),
        "retry": lambda: coordinator.retry(held, FAILURE, delay_s=1),
        "bury": lambda: coordinator.bury(held, FAILURE),
        "release": lambda: coordinator.release(held),
        "crash": lambda: coordinator.crash(held, FAILURE),
        "reclaim": lambda: coordinator.reclaim(),
        "requeue": lambda: coordinator.requeue([dead], **BY),
        "purge": lambda: coordinator.purge([dead], **BY),
        "cancel": lambda: coordinator.cancel(ready, lane="default", **BY),
    }
    acts[transition]()


def _with_a_foreign_value(queue: Queue, name: str) -> tuple[Claim, Job, Job]:
    """Put a foreign value at a key; return a claim that lapsed, a dead job and a ready one."""
    (dead,) = queue.buried()
    queue.enqueue(delay_ms=1_000)
    (held,) = queue.claimed()
    (ready,) = queue.enqueue()
    queue.coordinator.reclaim()
    queue.clock.advance(queue.settings.lease_s)
    of_a_job = {
        "series": queue.keys.series(queue.clock.now_ms),
        "trail": queue.keys.trail(held.job.id),
        "cause": queue.keys.cause(CAUSE),
    }
    queue.raw.set(of_a_job.get(name, queue.keys.prefix + name), "foreign")
    return held, dead, ready


@pytest.mark.parametrize("transition", TRANSITIONS)
def test_w1_a_script_that_fails_has_written_nothing(make_queue: Callable[..., Queue], transition: str) -> None:
    """A server does not take back what a script wrote before it failed: half a transition is a lost job."""
    for name in KEYS:
        queue = make_queue()
        held, dead, ready = _with_a_foreign_value(queue, name)
        before, failed = queue.everything(), False
        try:
            _do(queue, transition, held, dead.id, ready.id)
        except PriqueueError:
            failed = True

        moved = {key for key, value in queue.everything().items() if before.get(key) != value}
        assert not failed or moved <= {queue.keys.sweep}, name


def test_w2_what_is_in_flight_is_kept_in_one_place_and_the_index_beside_it_gives_way(queue: Queue) -> None:
    """Two records of the same fact drift apart, and what only one of them knows is never found again."""
    kept, ghost = queue.claimed(number=2)
    queue.raw.zadd(queue.keys.deadlines, {kept.job.id: 1, "nobody": 1})
    queue.raw.hdel(queue.keys.inflight, ghost.job.id)
    queue.raw.zadd(queue.keys.deadlines, {ghost.job.id: 1})

    queue.coordinator.reclaim()

    assert queue.state()["deadlines"] == {kept.job.id: kept.deadline_ms}
    assert list(queue.state()["in flight"]) == [kept.job.id]


@pytest.mark.parametrize("name", names())
def test_w3_no_script_searches_the_keyspace(name: str) -> None:
    """A script that walks over all keys stops the server for everybody, for as long as there are keys."""
    assert not {"'KEYS'", "'SCAN'", "'HSCAN'", "'SSCAN'", "'ZSCAN'"} & set(source(name, False).split("("))
    assert "'SCAN'" not in source(name, False)
    assert "call('KEYS'" not in source(name, False)


def test_w4_nine_thousand_leases_are_beaten_released_and_acked_in_one_call_each(real_queue: Queue) -> None:
    """Lua takes only some thousand values in one call: a large batch must not fail, and a loop has a limit."""
    queue, number = real_queue, 9_000
    queue.enqueue(number=number)
    queue.register("w", concurrency=number)
    claims = queue.coordinator.pull("w", number)

    assert queue.coordinator.beat("w", claims) == []
    queue.coordinator.release(*claims)
    again = queue.coordinator.pull("w", number)
    assert [claim.job for claim in again] == [claim.job for claim in claims]
    turn = queue.coordinator.turn("w", 1, again)

    assert turn.lost == []
    assert queue.state() == queue.expected()


def test_w4_each_script_over_many_jobs_stops_at_a_thousand(real_queue: Queue) -> None:
    """The same weakness from the other side: whatever a caller asks for, the server is not held up."""
    queue = real_queue
    queue.enqueue(number=1_100, delay_ms=1)
    queue.clock.advance(1)
    promoted = queue.coordinator.promote(limit=1_000_000)
    queue.coordinator.promote()
    queue.register("w", concurrency=2_000)
    queue.coordinator.pull("w", 2_000)
    queue.coordinator.reclaim()
    queue.clock.advance(queue.settings.lease_s)

    assert (promoted, queue.coordinator.reclaim(limit=1_000_000)) == (1_000, 1_000)


def test_w5_the_pickers_position_outlives_every_process(queue: Queue) -> None:
    """A picker that begins anew with each claim or process gives the first lane everything."""
    for lane in ("high", "default", "low"):
        queue.enqueue(number=20, lane=lane)

    picks = []
    for number in range(20):
        coordinator = Coordinator(queue.client, queue.settings, queue.clock)
        coordinator.register(f"w{number}", lanes=["high", "default", "low"], concurrency=1)
        picks += [claim.lane for claim in coordinator.pull(f"w{number}")]

    assert Counter(picks) == {"high": 12, "default": 6, "low": 2}


@pytest.fixture(params=["empty", "paused"])
def idle_queue(request: pytest.FixtureRequest, queue: Queue) -> Queue:
    """A queue in which there is nothing to claim: nothing there, or nothing that may be taken."""
    if request.param == "paused":
        for lane in queue.settings.lane_names:
            queue.enqueue(number=5, lane=lane)
            queue.coordinator.pause(lane, **BY)
            queue.raw.delete(queue.keys.wake(lane))
    return queue


def test_w6_an_idle_worker_makes_at_most_one_round_trip_a_second(idle_queue: Queue, calls: Counter[str]) -> None:
    """A loop that asks again at once when every lane is empty, or paused, burns a whole core for nothing."""
    worker = Worker(idle_queue.coordinator)
    worker.run_once()
    calls.clear()

    waited_s = sum(worker.run_once() for _ in range(10))

    assert calls["scripts"] <= waited_s
    assert idle_queue.tokens() == {}  # nothing that would end its wait at once


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the round trips that run scripts, under "scripts"; a test may begin anew by ``clear``."""
    counted: Counter[str] = Counter()
    send = Line.send

    def count(line: Line, *commands: Any) -> Any:
        counted["scripts"] += 1
        return send(line, *commands)

    monkeypatch.setattr(Line, "send", count)
    return counted


def test_w7_the_weights_are_a_share_of_picks_however_long_the_jobs_take(queue: Queue) -> None:
    """Weights are read as shares of worker time, which no picker can promise: say what they are, and hold that."""
    for lane in ("high", "default", "low"):
        queue.enqueue(number=60, lane=lane)
    queue.register("w", concurrency=12)
    picks: list[str] = []
    slow: list[Any] = []

    while len(picks) < 50:
        claims = queue.coordinator.pull("w", 12)
        picks += [claim.lane for claim in claims]
        slow += [claim for claim in claims if claim.lane == "low"]  # these stay in their slots
        for claim in claims:
            if claim.lane != "low":
                queue.coordinator.ack(claim)

    shares = Counter(picks[:50])
    assert shares == {"high": 30, "default": 15, "low": 5}
    assert queue.state()["slots"] == {"w": len(slow)}
    assert "share of *picks*" in (lanes.__doc__ or "")
    assert "no share of worker time" in (lanes.__doc__ or "")


@pytest.mark.parametrize("transition", TRANSITIONS)
def test_w8_every_transition_is_one_script_so_that_no_crash_falls_between(
    queue: Queue, transition: str, calls: Counter[str]
) -> None:
    """Take a job out here and put it in there, in two calls: who dies between them loses the job."""
    (dead,) = queue.buried()
    (held,) = queue.claimed()
    (ready,) = queue.enqueue()
    calls.clear()

    _do(queue, transition, held, dead.id, ready.id)

    assert calls == {"scripts": 1}


@pytest.mark.parametrize("settle", ["ack", "retry", "bury", "release", "crash"])
@pytest.mark.parametrize("repeat", [False, True])
def test_w9_who_lost_the_lease_settles_nothing(queue: Queue, settle: str, repeat: bool) -> None:
    """A worker that stalled comes back and finishes a job that another one runs by now."""
    (old,) = queue.claimed(worker_id="stalled")
    queue.register("other")
    queue.lapse()
    (new,) = queue.coordinator.pull("other")
    before = queue.everything()
    acts = {
        "ack": lambda: queue.coordinator.ack(old, repeat=repeat),
        "retry": lambda: queue.coordinator.retry(old, FAILURE, delay_s=1, repeat=repeat),
        "bury": lambda: queue.coordinator.bury(old, FAILURE, repeat=repeat),
        "release": lambda: queue.coordinator.release(old, repeat=repeat),
        "crash": lambda: queue.coordinator.crash(old, FAILURE, repeat=repeat),
    }

    with suppress(LeaseLost):
        acts[settle]()

    assert queue.everything() == before
    assert queue.state() == queue.expected(new, attempts={new.job.id: "0 1"})


@pytest.mark.parametrize("off_s", [-86_400, 86_400])
def test_w10_the_clocks_of_the_machines_do_not_matter(real_queue: Queue, off_s: int) -> None:
    """A sweeper whose clock is ahead takes jobs from workers that are well: there is one clock, the server's."""
    coordinator = Coordinator(real_queue.client, real_queue.settings)
    coordinator.register("w", lanes=["default"], concurrency=1)
    real_queue.enqueue()
    (claim,) = coordinator.pull("w")
    coordinator.reclaim()

    with time_machine.travel(1_800_000_000 + off_s, tick=True):
        reclaimed = coordinator.reclaim()
        promoted = coordinator.promote()

    assert (reclaimed, promoted) == (0, 0)
    assert real_queue.places() == {claim.job.id: "in flight"}


def test_w11_a_bad_configuration_is_refused_as_a_whole_before_anything_runs() -> None:
    """A setting that is misspelt is silently ignored, or found out by the first job of the night."""
    wrong = {"URL": "redis://localhost/0", "HEARTBEET_S": 5, "LANES": {"High": 0}, "CONCURRENCY": "many"}

    with pytest.raises(ConfigurationError) as caught:
        Settings.parse(wrong)

    faults = str(caught.value)
    assert all(name in faults for name in ("HEARTBEET_S", "HEARTBEAT_S", "LANES", "CONCURRENCY"))


def _modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if "migrations" not in path.parts:
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def _lines(node: Any) -> int:
    return int(node.end_lineno - node.lineno + 1)


def test_w12_no_function_class_or_file_has_grown_beyond_what_one_can_hold_in_mind() -> None:
    """One class that knows everything: nobody dares to change it, and everything changes with it."""
    # One method for each transition makes the Coordinator long; each of them is short.
    broad = {"Coordinator"}
    too_long = [
        f"{path.name}: {node.name}"
        for path, tree in _modules()
        for node in ast.walk(tree)
        if (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _lines(node) > 40)
        or (isinstance(node, ast.ClassDef) and _lines(node) > 200 and node.name not in broad)
    ]
    too_long += [path.name for path, _ in _modules() if len(path.read_text("utf-8").splitlines()) > 300]

    assert too_long == []


def test_w13_no_module_imports_itself_by_way_of_others() -> None:
    """Modules that need each other can only be understood, tested and imported together."""
    graph = grimp.build_graph("priqueue", cache_dir=None)

    caught = {
        module
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
        if graph.chain_exists(importer=imported, imported=module)
    }
    assert caught == set()


_WATCHED = """
import sys
def watch(event, args):
    written = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
    if written or event in {"socket.connect", "socket.bind", "os.mkdir", "subprocess.Popen", "os.putenv"}:
        raise SystemExit(f"{event} {args}")
sys.addaudithook(watch)
import priqueue, priqueue.coordinator, priqueue.worker, priqueue.sweeper, priqueue.ticker
"""


def test_w13_to_import_it_opens_and_writes_nothing() -> None:
    """Code that acts when it is imported fails in places where nobody asked for anything."""
    done = subprocess.run([sys.executable, "-B", "-c", _WATCHED], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_w9_a_token_cannot_be_guessed_from_the_job(queue: Queue) -> None:
    """Proof of ownership that follows from what everybody knows is none."""
    (claim,) = queue.claimed()

    for guess in (claim.job.id, claim.worker_id, "", "1"):
        with pytest.raises(LeaseLost):
            queue.coordinator.ack(replace(claim, token=guess))

    assert queue.state() == queue.expected(claim)
