"""A job that kills its process, under a supervisor that starts whatever ends: it is stopped, the others are done."""

from collections import Counter

from tests.support.processes import Live


def test_a_poison_job_ends_in_the_dead_letters_after_its_crashes_and_200_others_are_done(live: Live) -> None:
    workers = [live.start_worker("--concurrency", "4") for _ in range(2)]
    good = live.enqueue("work", 100, payload={"seconds": 0.02})
    (poison,) = live.enqueue("die", payload={"how": "kill"})
    good += live.enqueue("work", 100, payload={"seconds": 0.02})
    starts = len(workers)

    def over() -> bool:
        nonlocal starts
        for number, worker in enumerate(workers):
            if worker.poll() is not None:
                workers[number], starts = live.start("runworker", "--concurrency", "4"), starts + 1
        return {line["id"] for line in live.history("end")} == {job.id for job in good}

    live.until(over, 60)
    live.until(lambda: live.inspector.stats().dead == 1)

    status = live.inspector.job(poison.id)
    assert (status.state, status.job.payload, starts) == ("dead", {"how": "kill"}, 2)
    assert [(each.error, each.crash) for each in status.trail] == [("WorkerLost", True)] * live.settings.max_crashes
    assert Counter(line["id"] for line in live.history("start"))[poison.id] == live.settings.max_crashes
    assert set(live.raw.hkeys(live.coordinator.keys.letters)) == {poison.id}
