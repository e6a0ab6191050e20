"""Handlers run in children of the worker: what they do to their process is not done to the queue."""

import os
import signal
from collections import Counter

import pytest

from tests.support.processes import Live


def starts(live: Live) -> Counter[str]:
    return Counter(line["id"] for line in live.history("start"))


@pytest.mark.parametrize("how", ["exit", "kill", "segfault"])
def test_a_poison_job_is_found_exactly_and_no_neighbour_is_blamed(live: Live, how: str) -> None:
    good = live.enqueue("work", 30, payload={"seconds": 0.05})
    (poison,) = live.enqueue("die", payload={"how": how}, lane="high")
    more = live.enqueue("work", 30, payload={"seconds": 0.05})
    live.start_worker("--concurrency", "4", "--processes", "1")

    live.until(lambda: len({line["id"] for line in live.history("end")}) == 60, 60)
    live.until(lambda: live.inspector.stats().dead == 1)

    assert {line["id"] for line in live.history("end")} == {job.id for job in (*good, *more)}
    assert starts(live)[poison.id] == live.settings.max_crashes
    status = live.inspector.job(poison.id)
    assert status is not None
    assert (status.state, status.crashes, status.job.payload) == ("dead", 3, {"how": how})
    assert [attempt.error for attempt in status.trail] == ["WorkerLost"] * 3
    ending = {"exit": "exit code 7", "kill": "signal 9", "segfault": "signal 11"}[how]
    assert ending in status.trail[-1].message


@pytest.mark.parametrize("where", ["python", "c code"])
def test_a_run_over_its_time_is_ended_and_only_it_is_blamed(live: Live, where: str) -> None:
    live.start("runticker")
    (hung,) = live.enqueue("hang", payload={"where": where}, lane="high", max_attempts=2, timeout=0.5)
    neighbours = live.enqueue("work", 3, payload={"seconds": 3})
    live.start_worker("--concurrency", "4", "--processes", "1")

    live.until(lambda: live.inspector.stats().dead == 1)
    live.until(lambda: {line["id"] for line in live.history("end")} == {job.id for job in neighbours})

    status = live.inspector.job(hung.id)
    assert status is not None
    assert (status.attempt, [attempt.error for attempt in status.trail]) == (2, ["Timeout", "Timeout"])
    buried = [entry["job"] for _, entry in live.raw.xrange(live.coordinator.keys.audit) if entry["outcome"] == "dead"]
    assert buried == [hung.id]


def test_a_coroutine_over_its_time_is_cancelled_in_its_child(live: Live) -> None:
    (hung,) = live.enqueue("hang_async", max_attempts=1, timeout=0.3)
    live.start_worker("--concurrency", "2", "--processes", "1")
    live.enqueue("awaited", 5)

    live.until(lambda: live.inspector.stats().dead == 1)
    live.until(lambda: len(live.history("start")) == 6)

    status = live.inspector.job(hung.id)
    assert status is not None
    assert status.trail[0].error == "Timeout"
    assert len({line["pid"] for line in live.history("start")}) == 1


def test_a_handler_that_holds_the_interpreter_lock_costs_no_lease(live: Live) -> None:
    live.start("runsweeper")
    live.start_worker("--concurrency", "4", "--processes", "1")
    live.enqueue("hog", payload={"seconds": 3 * live.settings.lease_s})
    live.enqueue("work", 3, payload={"seconds": 0.2})

    live.until(lambda: len(live.history("end")) == 4, 30)

    assert set(starts(live).values()) == {1}
    assert live.inspector.stats().lanes["default"].reclaimed == 0


@pytest.mark.parametrize("seconds", [60, 0])
def test_a_child_ends_with_its_parent_in_the_middle_of_a_handler(live: Live, seconds: int) -> None:
    worker = live.start_worker("--concurrency", "1", "--processes", "1")
    live.enqueue("work" if seconds else "hog", payload={"seconds": seconds or 60})
    live.until(lambda: live.history("start"))
    child = live.history("start")[0]["pid"]
    assert child != worker.pid

    worker.send_signal(signal.SIGKILL)
    worker.wait()

    live.until(lambda: not _is_alive(child), 3)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] != "Z"


def test_a_killed_child_is_replaced_and_the_worker_goes_on(live: Live) -> None:
    live.start_worker("--concurrency", "2", "--processes", "2")
    live.enqueue("work", payload={"seconds": 60})
    live.until(lambda: live.history("start"))
    first = live.history("start")[0]["pid"]

    os.kill(first, signal.SIGKILL)

    live.until(lambda: len(live.history("start")) == 2)
    assert live.history("start")[1]["pid"] != first
    live.enqueue("note", 20)
    live.until(lambda: live.inspector.stats().lanes["default"].acked == 20)


def test_children_are_replaced_after_their_share_of_jobs(live: Live) -> None:
    live.start_worker("--concurrency", "2", "--processes", "1", "--max-jobs", "5")
    live.enqueue("work", 30)

    live.until(lambda: len(live.history("end")) == 30, 40)

    assert len({line["pid"] for line in live.history("end")}) >= 4
    assert set(starts(live).values()) == {1}


def test_a_drained_worker_ends_its_children_first_and_gives_their_jobs_back_once(live: Live) -> None:
    live.options["SHUTDOWN_GRACE_S"] = 1
    worker = live.start_worker("--concurrency", "2", "--processes", "1")
    jobs = live.enqueue("work", 2, payload={"seconds": 60})
    live.until(lambda: len(live.history("start")) == 2)
    child = live.history("start")[0]["pid"]

    worker.send_signal(signal.SIGTERM)

    assert worker.wait(3) == 0
    assert not _is_alive(child)
    assert live.raw.lrange(live.coordinator.keys.lane("default"), 0, -1) == [job.id for job in jobs]
    assert live.raw.hgetall(live.coordinator.keys.attempts) == {}


def test_an_open_transaction_does_not_leak_into_the_next_job(live: Live) -> None:
    live.start_worker("--concurrency", "1", "--processes", "1")
    live.enqueue("leave_transaction_open", max_attempts=1)
    live.until(lambda: live.history("start"))

    live.enqueue("check_transaction")

    live.until(lambda: len(live.history("start")) == 2)
    assert live.history("start")[1]["inside"] is False


def test_a_hung_thread_of_the_worker_itself_is_reported_and_the_process_ends_with_1(live: Live) -> None:
    (hung,) = live.enqueue("hang", payload={"where": "c code"}, max_attempts=1, timeout=0.3)
    worker = live.start_worker("--concurrency", "2", "--processes", "0")

    assert worker.wait(15) == 1

    assert "does not stop after its timeout" in live.log(worker)
    status = live.inspector.job(hung.id)
    assert status is not None
    assert (status.state, status.trail[0].error) == ("dead", "Timeout")


def test_a_worker_whose_children_cannot_start_ends_with_1(live: Live) -> None:
    live.options["SHUTDOWN_GRACE_S"] = 0.1
    live.breaks_children()
    worker = live.start("runworker", "--processes", "1")

    assert worker.wait(30) == 1
    assert "children in a row" in live.log(worker)


def test_the_heartbeat_file_is_touched_while_the_worker_turns(live: Live) -> None:
    beat = live.folder / "beat"
    live.start_worker("--heartbeat-file", str(beat))

    first = live.until(lambda: beat.exists() and beat.stat().st_mtime_ns)

    live.until(lambda: beat.stat().st_mtime_ns > first)


def test_a_worker_whose_output_nobody_reads_goes_on(live: Live) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    worker = live.start("runworker", "--burst", "--concurrency", "1", stdout=write_end)
    os.close(write_end)
    live.enqueue("work", 2)

    assert worker.wait(20) == 0
    assert len(live.history("end")) == 2


def test_what_a_handler_logs_in_its_child_names_its_job_and_forges_no_line(live: Live) -> None:
    (job,) = live.enqueue("write_log", payload={"text": "one\ntwo"})
    worker = live.start_worker("--processes", "1")

    live.until(lambda: "it says" in live.log(worker))

    (line,) = [line for line in live.log(worker).splitlines() if "it says" in line]
    assert line.endswith(f"it says one\\x0atwo [job {job.id}]")
