"""Rows B12 and B14 to B18: the server answers, but with a refusal, or with what is not ours."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import ConnectionError

from priqueue.exceptions import QueueFull
from priqueue.jobs import Job
from tests.faults.checker import WORK, audit, check, drain, misplaced, produce
from tests.faults.outages import (
    Report,
    assert_back,
    back_after,
    calm,
    false_orphans,
    harmed,
    let_outage_last,
    start_all,
)
from tests.support.processes import Live
from tests.support.servers import Server, config

FAIL = "tests.shop.jobs.fail"
RECEIPT = "tests.shop.jobs.send_receipt"
_BUSY_FOR_3_S = """
local function now_ms() local time = redis.call('TIME') return time[1] * 1000 + time[2] / 1000 end
local until_ms = now_ms() + 3000
while now_ms() < until_ms do end
"""


@pytest.mark.chaos
def test_b12_while_the_server_is_busy_with_a_script_of_others_no_lease_is_lost(tmp_path: Path, figure: Report) -> None:
    with harmed(tmp_path, {"busy-reply-threshold": "500"}) as (server, live):
        worker, *_ = start_all(live)
        produce(live, WORK, 3, payload={"seconds": 5})
        live.until(lambda: len(live.history("start")) == 3)
        with calm(live, worker, figure, "B12"), server.client(10) as other:
            other.eval(_BUSY_FOR_3_S, 0)
        assert_back(figure, "B12", back_after(live, server))
        drain(live)
        found = check(live)

        figure("B12", "leases taken from living workers", false_orphans(live), "0", false_orphans(live) == 0)
        assert (found.faults(), found.double_starts) == ({}, 0)


def test_b14_at_the_memory_limit_enqueue_is_refused_and_everything_else_goes_on(tmp_path: Path, figure: Report) -> None:
    with harmed(tmp_path) as (server, live):
        start_all(live)
        held = produce(live, WORK, 2, payload={"seconds": 2})
        produce(live, FAIL, 1, max_attempts=2)
        live.until(lambda: len(live.history("start")) >= 3)
        live.coordinator.pause("low", caller="user:1", reason="to fill it")
        with config(server, maxmemory=str(live.raw.info("memory")["used_memory"] + 1_000_000)):
            accepted = _flood(live)
            half = misplaced(live)
            live.coordinator.resume("low", caller="user:1")
            drain(live)
            acked = {entry["job"] for _, entry in audit(live, "ack")}
        more = produce(live, WORK)
        drain(live)

        figure("B14", "drained under OOM", f"{len(acked & accepted)}/{len(accepted)}", "all", accepted <= acked)
        figure("B14", "half states when enqueue was refused", len(half), "0", not half)
        figure("B14", "leases taken from living workers", false_orphans(live), "0", false_orphans(live) == 0)
        assert {job.id for job in (*held, *more)} <= {line["id"] for line in live.history("end")}
        assert misplaced(live) == []


def _flood(live: Live) -> set[str]:
    """Enqueue jobs of 50 kB each until the server is full; return those it took."""
    accepted: set[str] = set()
    jobs = (Job(name=RECEIPT, payload={"order_id": 1, "email": "x" * 50_000}, lane="low") for _ in range(200))

    def flood() -> None:
        for job in jobs:
            live.coordinator.enqueue(job)
            accepted.add(job.id)

    with pytest.raises(QueueFull, match="memory limit"):
        flood()
    assert accepted
    return accepted


@pytest.mark.chaos
def test_b15_a_server_that_may_evict_jobs_is_refused_at_the_start(tmp_path: Path, figure: Report) -> None:
    with harmed(tmp_path, {"maxmemory": "50mb", "maxmemory-policy": "allkeys-lru"}) as (_, live):
        commands = [live.start(command) for command in ("runworker", "runticker", "runsweeper")]
        codes = [process.wait(20) for process in commands]

        figure("B15", "processes that refuse to start", codes.count(1), "3", codes == [1, 1, 1])
        for process in commands:
            assert "maxmemory-policy is allkeys-lru" in live.log(process).splitlines()[-1]


def test_b16_what_is_not_ours_at_our_keys_stops_nobody(tmp_path: Path, figure: Report) -> None:
    with harmed(tmp_path) as (_, live):
        keys, raw = live.coordinator.keys, live.raw
        raw.set(keys.lane("high"), "not a list")
        raw.rpush(keys.lane("default"), "junk", "01890000-0000-7000-8000-000000000000", "\n")
        raw.zadd(keys.delayed("low"), {"ghost": 1})
        raw.hset(keys.jobs, "half", '{"name"')
        raw.rpush(keys.lane("low"), "half")
        worker, *_ = start_all(live)
        jobs = [*produce(live, WORK, 20), *produce(live, WORK, 20, lane="low"), *produce(live, WORK, 5, delay_ms=200)]
        ids = {job.id for job in jobs}
        live.until(lambda: ids <= {line["id"] for line in live.history("end")})
        live.until(lambda: raw.hlen(keys.jobs) == raw.hlen(keys.letters))

        figure("B16", "jobs of ours that ran", len(ids), "45", len(audit(live, "ack")) == 45)
        assert raw.hkeys(keys.letters) == ["half"]
        assert [raw.llen(keys.lane("default")), raw.llen(keys.lane("low")), raw.zcard(keys.delayed("low"))] == [0, 0, 0]
        assert raw.get(keys.lane("high")) == "not a list"
        assert worker.poll() is None
        lines = live.log(worker).count("failed, goes on")
        figure("B16", "faults that a loop met", lines, "≤ 5", lines <= 5)


# ── refusals that pass: while they last, what ended is kept, and it is settled afterwards ──


@contextmanager
def full(server: Server, admin: Redis) -> Iterator[None]:
    """No connection is left for anybody else."""
    admin.config_set("maxclients", 40)
    with ExitStack() as held:
        others = [held.enter_context(server.client()) for _ in range(60)]
        admin.client_kill_filter(_type="normal", skipme=True)
        for other in others:
            with suppress(ConnectionError):
                other.ping()
        yield


@contextmanager
def locked(_: Server, admin: Redis) -> Iterator[None]:
    """The password was changed."""
    admin.config_set("requirepass", "another")
    admin.client_kill_filter(_type="normal", skipme=True)
    yield
    admin.config_set("requirepass", "")


@contextmanager
def without_rights(_: Server, admin: Redis) -> Iterator[None]:
    """The user may not run scripts, nor wait."""
    admin.execute_command("ACL SETUSER", "default", "-evalsha", "-blpop")
    yield
    admin.execute_command("ACL SETUSER", "default", "+evalsha", "+blpop")


@contextmanager
def without_replicas(_: Server, admin: Redis) -> Iterator[None]:
    """The primary refuses to write without a replica."""
    admin.config_set("min-replicas-to-write", 1)
    yield
    admin.config_set("min-replicas-to-write", 0)


@contextmanager
def read_only(_: Server, admin: Redis) -> Iterator[None]:
    """The server is a replica, of a primary that is not there."""
    admin.replicaof("127.0.0.1", "1")
    yield
    admin.replicaof("NO", "ONE")


@pytest.mark.chaos
@pytest.mark.parametrize("refusing", [full, locked, without_rights, without_replicas, read_only])
def test_b17_a_server_that_refuses_is_waited_for_and_what_ended_meanwhile_is_settled(
    tmp_path: Path, figure: Report, refusing: Callable[[Server, Redis], object]
) -> None:
    with harmed(tmp_path, HEARTBEAT_S=5) as (server, live), server.client() as admin:
        worker, *others = start_all(live)
        produce(live, WORK, 2, payload={"seconds": 1})
        produce(live, "tests.faults.jobs.fail_late", max_attempts=1)
        live.until(lambda: len(live.history("start")) == 3)
        with refusing(server, admin), calm(live, worker, figure, "B17"):  # type: ignore[attr-defined]
            live.until(lambda: len(live.history("end")) == 3)
            let_outage_last(4)
        assert_back(figure, "B17", back_after(live, server))
        live.until(lambda: live.inspector.stats().dead == 1)
        drain(live)
        found = check(live)

        assert (found.faults(), found.double_starts, len(audit(live, "ack"))) == ({}, 0, 2)
        figure("B17", f"runs of what ended meanwhile, {refusing.__name__}", len(live.history("start")), "3", True)
        assert false_orphans(live) == 0
        assert [process.poll() for process in others] == [None] * 2


@pytest.mark.chaos
def test_b17_a_wrong_password_is_said_in_one_line_at_the_start(tmp_path: Path, figure: Report) -> None:
    with Server(tmp_path / "server", {"requirepass": "right"}) as server:
        live = Live(server.port, tmp_path, PASSWORD="wrong")
        try:
            worker = live.start("runworker")
            code = worker.wait(20)
            said = live.log(worker).strip().splitlines()
        finally:
            live.close()

    figure("B17", "exit code with a wrong password", code, "1", code == 1)
    assert len(said) == 1
    assert "password" in said[0]
    assert "wrong" not in said[0].replace("wrong password", "")


@pytest.mark.chaos
def test_b18_a_worker_drains_a_queue_on_a_cluster_node(tmp_path: Path, figure: Report) -> None:
    with Server(tmp_path / "server", {"cluster-enabled": "yes"}) as server, server.client() as client:
        client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
        live = Live(server.port, tmp_path)
        try:
            live.until(lambda: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
            processes = start_all(live)
            produce(live, WORK, 20)
            produce(live, FAIL, 2, max_attempts=2)
            drain(live)
            refused = sum("CROSSSLOT" in live.log(process) for process in processes)

            figure("B18", "CROSSSLOT errors", refused, "0", refused == 0)
            assert check(live).faults() == {}
        finally:
            live.close()


@pytest.mark.chaos
def test_b18_a_cluster_node_without_our_slot_is_refused_with_the_address_of_the_right_one(
    tmp_path: Path, figure: Report
) -> None:
    with (
        Server(tmp_path / "one", {"cluster-enabled": "yes"}) as one,
        Server(tmp_path / "two", {"cluster-enabled": "yes"}) as two,
        one.client() as first,
        two.client() as second,
    ):
        second.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
        first.execute_command("CLUSTER MEET", "127.0.0.1", two.port)
        live = Live(one.port, tmp_path)
        try:
            live.until(lambda: first.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
            worker = live.start("runworker")
            code = worker.wait(20)

            figure("B18", "exit code at the wrong node", code, "1", code == 1)
            assert f"use 127.0.0.1:{two.port}" in live.log(worker)
        finally:
            live.close()
