"""Rows B5 to B7: another server takes over, by Sentinels or behind the same address.

There is no option to wait for replicas: what a failover may lose is for the servers' own settings to bound
(``min-replicas-to-write``). Here it is reported, and what is left must be consistent.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from priqueue.clock import monotonic_s
from priqueue.coordinator import Coordinator, Inspector
from priqueue.coordinator.connection import connect
from priqueue.exceptions import QueueUnavailable
from priqueue.jobs import Job
from tests.faults.checker import WORK, check, drain, misplaced, produce
from tests.faults.outages import (
    BACK_WITHIN_S,
    THREADS,
    THREADS_UNDER_LOAD,
    Report,
    assert_back,
    back_after,
    producing,
    start_all,
)
from tests.support.processes import Live
from tests.support.proxy import Proxy
from tests.support.servers import DURABLE, Guarded, Server

pytestmark = pytest.mark.chaos
CAUTIOUS = {"min-replicas-to-write": "1", "min-replicas-max-lag": "1"}


@contextmanager
def guarded(folder: Path, config: dict[str, str] | None = None) -> Iterator[tuple[Guarded, Live]]:
    """Give servers under Sentinels and a queue that is found by them alone."""
    with Guarded(folder, config) as servers:
        live = Live(1, folder, SENTINEL=servers.setting)
        live.client.close()
        live.client = connect(live.settings)
        live.coordinator = Coordinator(live.client, live.settings)
        live.inspector = Inspector(live.client, live.settings)
        live.raw = live.coordinator.client
        try:
            yield servers, live
        finally:
            live.close()


@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_b5_every_process_follows_a_failover_by_itself(tmp_path: Path, figure: Report, how: str) -> None:
    with guarded(tmp_path) as (servers, live):
        processes = start_all(live, workers=2)
        produce(live, WORK, 100, payload={"seconds": 0.05})
        with producing(live, WORK, payload={"seconds": 0.02}):
            live.until(lambda: len(live.history("end")) > 50)
            servers.first.kill() if how == "killed" else servers.first.freeze()
            live.until(lambda: servers.is_primary(servers.second))
            assert_back(figure, "B5", back_after(live, servers.second, THREADS_UNDER_LOAD))
            ended = len(live.history("end"))
            live.until(lambda: len(live.history("end")) > ended + 50)
        servers.first.start() if how == "killed" else servers.first.thaw()
        live.until(lambda: servers.role(servers.first) == "slave", 40)
        jobs = produce(live, WORK, 20)
        drain(live)
        found = check(live)

        figure("B5", f"accepted and lost, {how} (replication is asynchronous)", len(found.lost), "reported", True)
        assert {job.id for job in jobs} <= {line["id"] for line in live.history("end")}
        assert (found.unexpected, found.double_effects, found.misplaced) == (set(), {}, [])
        assert [process.poll() for process in processes] == [None] * 4


def test_b5_idle_processes_follow_a_failover_too(tmp_path: Path, figure: Report) -> None:
    with guarded(tmp_path) as (servers, live):
        start_all(live)
        servers.first.freeze()
        live.until(lambda: servers.is_primary(servers.second))

        assert_back(figure, "B5", back_after(live, servers.second, THREADS))
        servers.first.thaw()
        live.until(lambda: servers.role(servers.first) == "slave", 40)
        produce(live, WORK, 5)
        live.until(lambda: len(live.history("end")) == 5, BACK_WITHIN_S + 1)


def test_b5_a_primary_that_was_demoted_behind_one_address_is_left(tmp_path: Path, figure: Report) -> None:
    with Server(tmp_path / "old") as old, Server(tmp_path / "new") as new, Proxy(old.port) as address:
        live = Live(address.port, tmp_path)
        try:
            start_all(live)
            address.lead_to(new.port)
            with old.client() as client:
                client.replicaof("127.0.0.1", str(new.port))

            assert_back(figure, "B5", back_after(live, new))
            assert_that_the_producer_arrives(live, new)
        finally:
            live.close()


def assert_that_the_producer_arrives(live: Live, server: Server) -> None:
    """Hold that a connection from before the failover is not used any more."""
    (job,) = produce(live, WORK)
    live.until(lambda: [line["id"] for line in live.history("end")] == [job.id])
    with server.client() as client:
        assert client.xlen(live.coordinator.keys.audit) > 0


def test_b6_a_failover_to_an_older_state_wedges_nothing(tmp_path: Path, figure: Report) -> None:
    with Server(tmp_path / "old", DURABLE) as old, Server(tmp_path / "new") as new, Proxy(old.port) as address:
        live = Live(address.port, tmp_path)
        try:
            processes = start_all(live, workers=2)
            with new.client() as client:
                client.replicaof("127.0.0.1", str(old.port))
                live.until(lambda: client.info("replication").get("master_link_status") == "up")
                with producing(live, WORK, payload={"seconds": 0.02}):
                    ended = len(live.history("end"))
                    live.until(lambda: len(live.history("end")) > ended + 50)
                    client.replicaof("NO", "ONE")  # from here on it misses everything
                    ended = len(live.history("end"))
                    live.until(lambda: len(live.history("end")) > ended + 200)
                    address.lead_to(new.port)
                    old.kill()
                    assert_back(figure, "B6", back_after(live, new, THREADS_UNDER_LOAD))
            drain(live)
            found = check(live)

            figure(
                "B6", "accepted and lost (there is no option to wait for replicas)", len(found.lost), "reported", True
            )
            figure(
                "B6",
                "runs again, of what the older state did not know",
                found.double_starts,
                "reported",
                True,
            )
            figure("B6", "jobs that nobody can get at", len(misplaced(live)), "0", not misplaced(live))
            depths = [lane.ready + lane.delayed + lane.in_flight for lane in live.inspector.stats().lanes.values()]
            assert (depths, found.double_effects) == ([0, 0, 0], {})
            assert [process.poll() for process in processes] == [None] * 4
        finally:
            live.close()


@pytest.mark.parametrize("cautious", [True, False])
def test_b7_a_pinned_producer_leaves_the_primary_that_was_replaced(
    tmp_path: Path, figure: Report, cautious: bool
) -> None:
    with guarded(tmp_path, CAUTIOUS if cautious else {}) as (servers, live):
        produce(live, WORK)  # leaves a connection to the first in the pool
        servers.first.freeze()
        live.until(lambda: servers.is_primary(servers.second))
        servers.first.thaw()
        thawed_s = monotonic_s()
        accepted: dict[str, float] = {}

        def push() -> bool:
            job = Job(name=WORK, payload={})
            try:
                live.coordinator.enqueue(job)
            except QueueUnavailable:
                return False
            accepted[job.id] = monotonic_s() - thawed_s
            return servers.role(servers.first) == "slave"

        live.until(push, 40)
        late_s = monotonic_s() - thawed_s
        live.until(push, 5)
        with servers.second.client() as client:
            stored = set(client.hkeys(live.coordinator.keys.jobs))
        lost = {job_id: at_s for job_id, at_s in accepted.items() if job_id not in stored}

        if cautious:  # the server counts its replicas once a second, and believes in them until then
            late = [at_s for at_s in lost.values() if at_s > 1.5]
            figure(
                "B7", "lost, a second after the old primary went on, min-replicas-to-write 1", len(late), "0", not late
            )
        figure("B7", f"lost to the old primary, min-replicas-to-write {int(cautious)}", len(lost), "reported", True)
        assert max(lost.values(), default=0) < late_s < max(accepted.values())
