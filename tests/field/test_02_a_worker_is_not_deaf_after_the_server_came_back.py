"""The server goes away and comes back, several times within seconds and while everybody waits: all threads go on."""

from pathlib import Path

import pytest

from tests.faults.checker import WORK, check, drain, produce
from tests.faults.outages import BACK_WITHIN_S, THREADS, Ear, harmed, let_outage_last, listening, producing, start_all
from tests.support.processes import Live
from tests.support.servers import DURABLE, Server


def assert_takes_work(live: Live) -> None:
    """Hold that a job enqueued now is run soon."""
    (job,) = produce(live, WORK)
    live.until(lambda: job.id in {line["id"] for line in live.history("end")}, BACK_WITHIN_S)


def assert_all_are_back(live: Live, ear: Ear, server: Server) -> None:
    back = ear.back_after(live, THREADS, lambda: None)
    assert max(back.values()) <= BACK_WITHIN_S, back
    assert server.answers()


def test_a_worker_takes_work_after_five_restarts_within_seconds_under_load(tmp_path: Path) -> None:
    with harmed(tmp_path, DURABLE) as (server, live):
        start_all(live)
        with producing(live, WORK):
            for _ in range(5):
                let_outage_last(0.4)
                server.kill()
                server.start()
        with listening(server) as ear:
            assert_all_are_back(live, ear, server)
        assert_takes_work(live)
        drain(live)

        assert check(live).faults() == {}


def test_a_worker_takes_work_after_a_restart_while_it_waited_for_some(tmp_path: Path) -> None:
    with harmed(tmp_path, DURABLE) as (server, live):
        start_all(live)
        with server.client() as client:
            live.until(lambda: any(each["cmd"] == "blpop" and "b" in each["flags"] for each in client.client_list()))
        server.kill()
        server.start()

        with listening(server) as ear:
            assert_all_are_back(live, ear, server)
        assert_takes_work(live)


@pytest.mark.chaos
def test_a_worker_takes_work_after_the_server_was_frozen_for_twenty_seconds(tmp_path: Path) -> None:
    with harmed(tmp_path) as (server, live), listening(server) as ear:
        start_all(live)
        server.freeze()
        let_outage_last(20)
        back = ear.back_after(live, THREADS, server.thaw)

        assert max(back.values()) <= BACK_WITHIN_S, back
        assert_takes_work(live)
