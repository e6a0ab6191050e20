"""Rows B1 to B4: the server is killed and comes back, with its data, with a part of it, or without."""

from pathlib import Path

import pytest

from priqueue import QueueUnavailable
from priqueue.jobs import Job
from tests.faults.checker import WORK, audit, check, drain, misplaced, produce
from tests.faults.outages import (
    SHIPPED,
    THREADS,
    THREADS_UNDER_LOAD,
    Report,
    assert_back,
    back_after,
    calm,
    false_orphans,
    harmed,
    let_outage_last,
    producing,
    start_all,
)
from tests.support.proxy import Proxy
from tests.support.servers import DURABLE


def test_b1_a_restarted_server_loses_nothing_and_every_thread_is_back(tmp_path: Path, figure: Report) -> None:
    with harmed(tmp_path, {**DURABLE, "appendfsync": "always"}) as (server, live):
        start_all(live)
        delayed = produce(live, WORK, 10, delay_ms=2_000)
        produce(live, WORK, 200, payload={"seconds": 0.02})
        with producing(live, WORK, payload={"seconds": 0.02}):
            for _ in range(2):
                live.until(lambda: live.history("start"))
                server.kill()
                server.start()
                assert_back(figure, "B1", back_after(live, server, THREADS_UNDER_LOAD))
        drain(live)
        found = check(live)

        figure("B1", "lost", len(found.lost), "0", not found.lost)
        figure("B1", "leases taken from living workers", false_orphans(live), "0", false_orphans(live) == 0)
        assert {job.id for job in delayed} <= {line["id"] for line in live.history("end")}
        assert found.faults() == {}


@pytest.mark.chaos
@pytest.mark.parametrize("fsync", ["always", "everysec"])
def test_b1_five_restarts_under_load_lose_nothing(tmp_path: Path, figure: Report, fsync: str) -> None:
    with harmed(tmp_path, {**DURABLE, "appendfsync": fsync}) as (server, live):
        workers = start_all(live, workers=3)
        produce(live, WORK, 50, delay_ms=5_000)
        with producing(live, WORK, payload={"seconds": 0.05}):
            for _ in range(5):
                ended = len(live.history("end"))
                live.until(lambda before=ended: len(live.history("end")) > before + 200)
                server.kill()
                server.start()
                assert_back(figure, "B1", back_after(live, server, THREADS_UNDER_LOAD))
        drain(live)
        found = check(live)

        figure("B1", f"lost, five restarts, fsync {fsync}", len(found.lost), "0", not found.lost)
        assert found.faults() == {}
        assert false_orphans(live) == 0
        assert [process.poll() for process in workers] == [None] * 5


@pytest.mark.chaos
def test_b1_with_the_settings_as_shipped_every_thread_is_back_within_two_seconds(
    tmp_path: Path, figure: Report
) -> None:
    with harmed(tmp_path, DURABLE, **SHIPPED) as (server, live), Proxy(server.port) as between:
        live.options["URL"] = f"redis://127.0.0.1:{between.port}/0"
        worker, *_ = start_all(live)
        between.refuses = True  # and not the server itself, so that all of what comes afterwards is heard
        between.cut()
        server.kill()
        with calm(live, worker, figure, "B1"):
            let_outage_last(12)
        server.start()

        assert_back(figure, "B1", back_after(live, server, then=between.heal))


@pytest.mark.chaos
def test_b1_what_ended_during_an_outage_is_settled_once_afterwards(tmp_path: Path, figure: Report) -> None:
    with harmed(tmp_path, DURABLE, HEARTBEAT_S=5, SWEEP_S=0.5) as (server, live):
        start_all(live)
        produce(live, WORK, 4, payload={"seconds": 1.0})
        live.until(lambda: len(live.history("start")) == 4)
        server.kill()
        live.until(lambda: len(live.history("end")) == 4)
        server.start()
        drain(live)
        found = check(live)

        assert (found.faults(), found.double_starts, len(audit(live, "ack"))) == ({}, 0, 4)
        figure("B1", "runs of what ended during the outage", len(live.history("start")), "4", True)


@pytest.mark.chaos
def test_b2_a_cut_append_only_file_leaves_no_half_states(tmp_path: Path, figure: Report) -> None:
    with harmed(tmp_path, DURABLE) as (server, live):
        start_all(live)
        produce(live, WORK, 600, payload={"seconds": 0.02})
        live.until(lambda: len(live.history("end")) > 200)
        server.kill()
        (log,) = (server.folder / "appendonlydir").glob("*.incr.aof")
        log.write_bytes(log.read_bytes()[:-20_001])  # in the middle of a command
        server.start()
        half = misplaced(live)
        drain(live)
        found = check(live)

        figure(
            "B2", "half states after the cut", len(half) + len(found.misplaced), "0", not half and not found.misplaced
        )
        # Jobs that were acked before the cut run again; what was enqueued before it is all there.
        assert (found.lost, found.unexpected, found.double_effects) == (set(), set(), {})


@pytest.mark.chaos
@pytest.mark.parametrize("how", ["restarted empty", "flushed"])
def test_b3_workers_go_on_with_a_server_that_lost_everything(tmp_path: Path, figure: Report, how: str) -> None:
    with harmed(tmp_path) as (server, live):
        processes = start_all(live, workers=2)
        produce(live, WORK, 100, payload={"seconds": 0.05})
        live.until(lambda: len(live.history("end")) > 20)
        if how == "flushed":
            live.raw.flushall()
        else:
            server.kill()
            server.start()
        assert_back(figure, "B3", back_after(live, server))
        jobs = [job for lane in live.settings.lane_names for job in produce(live, WORK, 20, lane=lane)]
        drain(live)

        assert {job.id for job in jobs} <= {line["id"] for line in live.history("end")}
        assert misplaced(live) == []
        assert {worker.in_flight for worker in live.inspector.workers()} == {0}
        figure("B3", f"processes that ended, {how}", sum(p.poll() is not None for p in processes), "0", True)
        assert [process.poll() for process in processes] == [None] * 4


@pytest.mark.chaos
def test_b4_a_server_that_is_loading_is_waited_for(tmp_path: Path, figure: Report) -> None:
    slow = {**DURABLE, "loading-process-events-interval-bytes": "1024", "key-load-delay": "15"}
    with harmed(tmp_path, slow) as (server, live):
        worker, *others = start_all(live)
        with server.client(60) as client:
            client.eval("for i = 1, 100000 do redis.call('SET', 'x' .. i, string.rep('x', 20)) end", 0)
        with calm(live, worker, figure, "B4"):
            server.kill()
            server.start(answers=False)
            live.until(lambda: server.answer().startswith("-LOADING"))
            with pytest.raises(QueueUnavailable, match="BusyLoadingError"):
                live.coordinator.enqueue(Job(name=WORK, payload={}))
            live.until(server.answers, 60)
        assert_back(figure, "B4", back_after(live, server))
        assert [process.poll() for process in others] == [None] * 2
        figure("B4", "threads back", len(THREADS), "6", True)
