"""Rows B8 to B11: replies are lost, connections are killed, nothing answers, scripts are forgotten.

What becomes of each single transition whose reply is lost is in tests/integration/test_repeats.py; here it is whole
processes that lose them.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from priqueue.clock import monotonic_s
from tests.faults.checker import WORK, audit, check, drain, percentile, produce
from tests.faults.outages import (
    BACK_WITHIN_S,
    SHIPPED,
    THREADS,
    Report,
    assert_back,
    back_after,
    calm,
    false_orphans,
    harmed,
    let_outage_last,
    listening,
    sha_of,
    start_all,
)
from tests.support.proxy import Proxy
from tests.support.servers import DURABLE, Server

FAIL = "tests.shop.jobs.fail"


@contextmanager
def again_and_again(server: Server, pause_s: float, *command: str) -> Iterator[list[int]]:
    """Send a command to a server over and over inside the block; give a list that grows with each."""
    over, sent = threading.Event(), [0]

    def work() -> None:
        with server.client() as client:
            while not over.wait(pause_s):
                client.execute_command(*command)
                sent[0] += 1

    thread = threading.Thread(target=work, name="harm")
    thread.start()
    try:
        yield sent
    finally:
        over.set()
        thread.join()


def test_b8_a_worker_that_loses_replies_again_and_again_runs_and_settles_each_job_once(
    tmp_path: Path, figure: Report
) -> None:
    with harmed(tmp_path) as (server, live), Proxy(server.port) as between:
        good = produce(live, WORK, 300, payload={"seconds": 0.02})
        failing = produce(live, FAIL, 5, max_attempts=2)
        live.options["URL"] = f"redis://127.0.0.1:{between.port}/0"
        start_all(live)
        with eating(between):
            drain(live)
        found = check(live)

        attempts = {job.id: len(live.inspector.job(job.id).trail) for job in failing}  # type: ignore[union-attr]
        figure("B8", "replies lost", between.eaten, "≥ 10", between.eaten >= 10)
        figure("B8", "runs that no retry asked for", found.double_starts, "0", found.double_starts == 0)
        assert (found.faults() | {"lost": found.lost & {job.id for job in good}}) == {"lost": set()}
        assert set(attempts.values()) == {2}
        assert len(audit(live, "ack")) == 300
        assert false_orphans(live) == 0


@contextmanager
def eating(between: Proxy) -> Iterator[None]:
    """Lose a reply to a script ten times a second inside the block."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.1):
            between.eat(1)

    thread = threading.Thread(target=work, name="eater")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        between.eat(0)


def storm(folder: Path, figure: Report, row: str, harm: tuple[float, ...], jobs: int, workers: int = 1) -> None:
    """Let all processes work while a command is sent to the server again and again; hold that nothing is lost."""
    pause_s, *command = harm
    waits_s: list[float] = []
    with harmed(folder) as (server, live):
        processes = start_all(live, workers=workers)
        with again_and_again(server, pause_s, *map(str, command)) as sent:
            for _ in range(jobs):
                since_s = monotonic_s()
                produce(live, WORK, payload={"seconds": 0.01})
                waits_s.append(monotonic_s() - since_s)
            live.until(lambda: len(live.history("end")) >= jobs, 60)
        drain(live)
        found = check(live)

        refused = len(live.history("enqueue-unknown"))
        figure(row, "times it was done", sent[0], "≥ 5", sent[0] >= 5)
        figure(row, "enqueue refused", refused, "0", refused == 0)
        figure(row, "enqueue, p99, s", percentile(waits_s, 0.99), "≤ 0.8", percentile(waits_s, 0.99) <= 0.8)
        assert (found.faults(), found.double_starts, false_orphans(live)) == ({}, 0, 0)
        assert [process.poll() for process in processes] == [None] * (workers + 2)
        assert_back(figure, row, back_after(live, server))
        connections = _connections(server)
        figure(row, "connections afterwards", connections, "≤ 30", connections <= 30)


def _connections(server: Server) -> int:
    with server.client() as client:
        return len(client.client_list())


KILL = (0.01, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
FLUSH = (0.05, "SCRIPT", "FLUSH")


def test_b9_a_storm_of_killed_connections_loses_nothing(tmp_path: Path, figure: Report) -> None:
    storm(tmp_path, figure, "B9", KILL, jobs=300)


@pytest.mark.chaos
def test_b9_a_long_storm_of_killed_connections_loses_nothing(tmp_path: Path, figure: Report) -> None:
    storm(tmp_path, figure, "B9", KILL, jobs=3000, workers=3)


def test_b11_scripts_that_are_flushed_again_and_again_are_no_error_to_anybody(tmp_path: Path, figure: Report) -> None:
    storm(tmp_path, figure, "B11", FLUSH, jobs=500)


@pytest.mark.chaos
def test_b11_scripts_that_are_flushed_for_long_are_no_error_to_anybody(tmp_path: Path, figure: Report) -> None:
    storm(tmp_path, figure, "B11", FLUSH, jobs=5000, workers=3)


@pytest.mark.chaos
@pytest.mark.parametrize("options", [{}, SHIPPED], ids=["fast", "shipped"])
def test_b10_a_frozen_server_holds_nobody_up_past_the_bound(
    tmp_path: Path, figure: Report, options: dict[str, float]
) -> None:
    with harmed(tmp_path, **options) as (server, live), listening(server) as ear:
        worker, *others = start_all(live)
        produce(live, WORK)
        drain(live)  # registered, it may not have started its children yet, nor the threads that talk to them
        before = _threads(worker.pid)
        server.freeze()
        with calm(live, worker, figure, "B10"):
            assert_bounded(figure, live.settings.socket_timeout_s, lambda: produce(live, WORK))
            let_outage_last(20)
        figure("B10", "threads more than before", _threads(worker.pid) - before, "0", _threads(worker.pid) == before)

        assert_back(figure, "B10", ear.back_after(live, THREADS, server.thaw))
        jobs = produce(live, WORK, 10)
        live.until(lambda: {job.id for job in jobs} <= {line["id"] for line in live.history("end")}, BACK_WITHIN_S)
        assert false_orphans(live) == 0
        assert [process.poll() for process in others] == [None] * 2


def assert_bounded(figure: Report, socket_timeout_s: float, call: Callable[[], object]) -> None:
    """Hold that a call ends in time: tried for two time-outs, the last try may take one to connect and one to hear."""
    since_s = monotonic_s()
    call()
    took_s, bound_s = monotonic_s() - since_s, 4 * socket_timeout_s + 0.1
    figure("B10", f"longest call, s, SOCKET_TIMEOUT_S {socket_timeout_s}", took_s, f"≤ {bound_s}", took_s <= bound_s)


def _threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


@pytest.mark.chaos
def test_b10_a_network_that_swallows_everything_is_waited_for(tmp_path: Path, figure: Report) -> None:
    with (
        harmed(tmp_path, DURABLE, **SHIPPED) as (server, live),
        Proxy(server.port) as between,
        listening(server) as ear,
    ):
        live.options["URL"] = f"redis://127.0.0.1:{between.port}/0"
        worker, *_ = start_all(live)
        produce(live, WORK, 2, payload={"seconds": 6})
        live.until(lambda: len(live.history("start")) == 2)
        between.swallows = True
        with calm(live, worker, figure, "B10"):
            live.until(lambda: len(live.history("end")) == 2)
            let_outage_last(6)

        def end_of_it() -> None:
            between.swallows = False

        # What was swallowed stays so: who waits for an answer, or for work, has to give up first.
        bound_s, silence_s = live.settings.socket_timeout_s + BACK_WITHIN_S, live.settings.pull_timeout_s + 2
        back = ear.back_after(live, THREADS, end_of_it)
        quick = {what: back[what] for what in THREADS if not what.startswith("listen")}
        assert_back(figure, "B10", quick, bound_s)
        assert_back(figure, "B10", back, silence_s + BACK_WITHIN_S)
        between.swallows = True
        let_outage_last(6)
        end_of_it()
        (job,) = produce(live, WORK)
        since_s = monotonic_s()
        live.until(lambda: job.id in {line["id"] for line in live.history("end")})

        took_s = monotonic_s() - since_s
        figure("B10", "first job after a silent network, s", took_s, f"≤ {bound_s}", took_s <= bound_s)
        drain(live)
        found = check(live)
        assert (found.faults(), found.double_starts, len(audit(live, "ack"))) == ({}, 0, 3)


@pytest.mark.chaos
def test_b10_beats_go_on_while_the_claims_get_no_answer(tmp_path: Path, figure: Report) -> None:
    with harmed(tmp_path) as (server, live), Proxy(server.port) as between:
        live.options["URL"] = f"redis://127.0.0.1:{between.port}/0"
        start_all(live)
        produce(live, WORK, 2, payload={"seconds": 4})
        live.until(lambda: len(live.history("start")) == 2)
        between.eat(1000, matching=sha_of("claim").encode(), hang=True)
        live.until(lambda: len(live.history("end")) == 2)
        between.heal()
        drain(live)

        figure("B10", "leases lost while claims got no answer", false_orphans(live), "0", false_orphans(live) == 0)
        assert len(audit(live, "ack")) == 2


@pytest.mark.chaos
def test_b10_a_worker_that_is_to_stop_while_nothing_answers_does_so_in_time(tmp_path: Path, figure: Report) -> None:
    with harmed(tmp_path, **SHIPPED, SHUTDOWN_GRACE_S=2) as (server, live):
        worker, *others = start_all(live)
        produce(live, WORK, payload={"seconds": 60})
        live.until(lambda: live.history("start"))
        server.freeze()
        since_s = monotonic_s()
        for process in (worker, *others):
            process.terminate()
        codes = [process.wait(30) for process in (worker, *others)]
        took_s = monotonic_s() - since_s
        bound_s = 2 + 1 + 0.5  # the interpreter has to end, too

        figure("B10", "SIGTERM to exit, s, with a grace of 2 s", took_s, f"≤ {bound_s}", took_s <= bound_s)
        assert codes == [0, 0, 0]
