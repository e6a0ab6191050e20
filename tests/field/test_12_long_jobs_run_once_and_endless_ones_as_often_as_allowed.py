"""A job longer than its lease is not doubled while its worker beats; one over its time is not run for ever."""

from collections import Counter

from tests.support.processes import Live


def test_a_job_of_ten_leases_runs_once_beside_other_workers(live: Live) -> None:
    live.start("runsweeper")
    for _ in range(2):
        live.start_worker("--concurrency", "2")
    (job,) = live.enqueue("work", payload={"seconds": 10 * live.settings.lease_s})

    live.until(lambda: live.raw.hlen(live.coordinator.keys.jobs) == 0, 30)

    assert [(line["what"], line["id"]) for line in live.history()] == [("start", job.id), ("end", job.id)]


def test_jobs_that_are_always_over_their_time_run_as_often_as_allowed_and_are_dead_as_timeouts(live: Live) -> None:
    live.start("runticker")
    live.start_worker("--concurrency", "3")
    jobs = live.enqueue("hang", 3, payload={"where": "c code"}, max_attempts=2, timeout=0.5)

    live.until(lambda: live.inspector.stats().dead == 3)

    assert Counter(line["id"] for line in live.history("start")) == {job.id: 2 for job in jobs}
    trails = [live.inspector.job(job.id).trail for job in jobs]
    assert [[(each.error, each.crash) for each in trail] for trail in trails] == [[("Timeout", False)] * 2] * 3
