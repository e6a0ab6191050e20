"""A mountain of due jobs, and tickers that are killed in the middle of it: each job is moved once, none is lost."""

from collections import Counter

from priqueue import clock
from priqueue.coordinator import Coordinator
from priqueue.jobs import Job
from tests.support.processes import Live

JOBS, KILLS = 20_000, 4
AN_HOUR_MS = 3_600_000


def overdue(live: Live) -> list[Job]:
    """Enqueue delayed jobs by a clock that is an hour behind: all are due at once."""
    jobs = [Job(name="tests.shop.jobs.note", payload={}, delay_ms=1) for _ in range(JOBS)]
    Coordinator(live.client, live.settings, lambda: clock.wall_ms() - AN_HOUR_MS).enqueue_many(jobs)
    return jobs


def test_tickers_killed_in_the_middle_of_a_mountain_of_due_jobs_lose_and_double_none(live: Live) -> None:
    jobs, keys = overdue(live), live.coordinator.keys
    moved = lambda: live.raw.llen(keys.lane("default"))  # noqa: E731

    for _ in range(KILLS):
        before, ticker = moved(), live.start("runticker")
        while moved() == before and ticker.poll() is None and live.raw.zcard(keys.delayed("default")):
            jobs += live.enqueue("note", delay_ms=1)
        ticker.kill()
    live.start("runticker")
    live.until(lambda: not live.raw.zcard(keys.delayed("default")))

    events = [entry for _, entry in live.raw.xrange(keys.audit) if entry["action"] == "promote"]
    assert Counter(live.raw.lrange(keys.lane("default"), 0, -1)) == Counter(job.id for job in jobs)
    assert Counter(event["job"] for event in events) == Counter(job.id for job in jobs)
