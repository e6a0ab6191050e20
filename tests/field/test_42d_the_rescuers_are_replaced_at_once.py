"""Ticker and sweeper hold no lock that could outlive them: others do their work at once when they die or freeze."""

import signal

import pytest

from priqueue import clock
from tests.support.processes import Live
from tests.support.waiting import until

JOBS = 20


def lapsing(live: Live) -> None:
    """Leave jobs in flight at a worker that never beats, and one delayed."""
    live.coordinator.register("lost", lanes=["default"], concurrency=JOBS)
    live.enqueue("note", JOBS)
    assert len(live.coordinator.pull("lost", JOBS)) == JOBS
    live.enqueue("note", delay_ms=500)


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
def test_others_take_over_at_once_when_ticker_and_sweeper_die_or_freeze(blow: signal.Signals, live: Live) -> None:
    first = [live.start("runticker"), live.start("runsweeper")]
    live.until(lambda: live.raw.exists(live.coordinator.keys.sweep))
    live.start("runticker")
    live.start("runsweeper")
    for process in first:
        process.send_signal(blow)
    lapsing(live)
    started_s = clock.monotonic_s()

    until(lambda: live.raw.llen(live.coordinator.keys.lane("default")) == JOBS + 1, 30)

    reclaimed = live.inspector.stats().lanes["default"].reclaimed
    assert reclaimed == JOBS
    # The first sweep after a start may find that nobody swept for a lease, and give one more.
    grace_s = 2 * live.settings.lease_s + live.settings.sweep_s
    assert clock.monotonic_s() - started_s < grace_s + 10
