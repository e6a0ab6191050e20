"""The only worker is killed with eight jobs in flight: the figures are true soon, and the jobs run again."""

import signal

from tests.support.processes import Live


def test_after_a_kill_the_figures_are_true_within_a_lease_and_a_sweep_and_all_jobs_run_again(live: Live) -> None:
    live.start("runsweeper")
    worker = live.start_worker("--concurrency", "8")
    jobs = {job.id for job in live.enqueue("work", 8, payload={"seconds": 1})}
    live.until(lambda: len(live.history("start")) == 8)

    worker.send_signal(signal.SIGKILL)
    worker.wait()

    soon_s = live.settings.lease_s + live.settings.sweep_s + 0.4
    live.until(lambda: live.inspector.stats().lanes["default"].in_flight == 0, soon_s)
    (gone,) = live.inspector.workers()
    gauges = live.inspector.gauges()
    assert (gone.in_flight, gauges["slots"], gauges["capacity"], gauges["ready:default"]) == (0, 0, 0, 8)
    live.start_worker("--concurrency", "8")
    live.until(lambda: {line["id"] for line in live.history("end")} == jobs)
    live.until(lambda: live.raw.hlen(live.coordinator.keys.jobs) == 0)
    assert len(live.history("start")) == 16
