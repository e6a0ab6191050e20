"""What a hostile reader tried on a worker and its children, and what has to come of it."""

import os
import signal

from tests.support.processes import Live
from tests.support.proxy import Proxy
from tests.support.waiting import until


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_claim_without_an_answer_is_given_back_unmarked_by_a_worker_that_stops(live: Live) -> None:
    with Proxy(live.client.connection_pool.connection_kwargs["port"]) as proxy:
        live.options["URL"] = f"redis://127.0.0.1:{proxy.port}/0"
        worker = live.start_worker("--concurrency", "4", "--processes", "1")
        live.enqueue("work")
        live.until(lambda: live.history("end"))
        proxy.eat(10_000)
        jobs = live.enqueue("work", 4)
        live.until(lambda: "did not answer" in live.log(worker))
        assert live.inspector.stats().lanes["default"].in_flight == 4

        worker.send_signal(signal.SIGTERM)
        proxy.heal()

        assert worker.wait(10) == 0
    assert live.raw.lrange(live.coordinator.keys.lane("default"), 0, -1) == [job.id for job in jobs]
    assert live.raw.hgetall(live.coordinator.keys.attempts) == {}


def test_the_first_signal_to_a_worker_that_drains_already_leaves_its_jobs_the_grace(live: Live) -> None:
    worker = live.start_worker("--concurrency", "2", "--processes", "1")
    live.enqueue("work", payload={"seconds": 1.5})
    live.until(lambda: live.history("start"))
    live.coordinator.drain(live.inspector.workers()[0].id, caller="user:1")
    live.until(lambda: "drains" in live.log(worker))

    worker.send_signal(signal.SIGTERM)

    assert worker.wait(10) == 0
    assert len(live.history("end")) == 1


def test_any_number_of_signals_leave_the_exit_code_alone(live: Live) -> None:
    live.options["SHUTDOWN_GRACE_S"] = 1
    worker = live.start_worker("--concurrency", "2", "--processes", "1")
    jobs = live.enqueue("work", 2, payload={"seconds": 60})
    live.until(lambda: len(live.history("start")) == 2)

    def signalled() -> bool:
        worker.send_signal(signal.SIGTERM)
        worker.send_signal(signal.SIGINT)
        return worker.poll() is not None

    live.until(signalled)

    assert worker.returncode == 0
    assert live.raw.lrange(live.coordinator.keys.lane("default"), 0, -1) == [job.id for job in jobs]


def test_a_coroutine_is_done_though_another_holds_up_the_database_thread(live: Live) -> None:
    live.start_worker("--concurrency", "2", "--processes", "1")
    live.enqueue("ask_slowly", payload={"seconds": 3})
    live.until(lambda: live.history("start"))

    (quick,) = live.enqueue("awaited", timeout=0.5, max_attempts=1)

    live.until(lambda: live.inspector.job(quick.id) is None, 2)


def test_who_waits_behind_a_coroutine_that_blocks_is_not_blamed_for_it(live: Live) -> None:
    live.start_worker("--concurrency", "2", "--processes", "1")
    live.enqueue("block_the_loop", payload={"seconds": 3}, max_attempts=1)
    live.until(lambda: live.history("start"))

    live.enqueue("awaited", timeout=0.5, max_attempts=1)

    live.until(lambda: live.inspector.stats().lanes["default"].acked == 2)
    assert live.inspector.stats().dead == 0


def test_who_waits_behind_a_holder_of_the_interpreter_lock_is_not_blamed_for_it(live: Live) -> None:
    live.start_worker("--concurrency", "2", "--processes", "1")
    live.enqueue("hold_the_lock", max_attempts=1)
    live.until(lambda: live.history("start"))

    live.enqueue("note", timeout=0.2, max_attempts=1)

    live.until(lambda: live.inspector.stats().lanes["default"].acked == 2, 60)
    assert live.inspector.stats().dead == 0


def test_a_program_that_a_job_started_ends_with_the_run_that_was_ended(live: Live) -> None:
    live.start_worker("--concurrency", "1", "--processes", "1")
    live.enqueue("run_program", timeout=0.3, max_attempts=1)
    live.until(lambda: live.history("start"))

    live.until(lambda: live.inspector.stats().dead == 1)

    until(lambda: not is_alive(live.history("start")[0]["program"]), 1)


def test_a_job_given_back_at_shutdown_leaves_no_program_running(live: Live) -> None:
    live.options["SHUTDOWN_GRACE_S"] = 0.2
    worker = live.start_worker("--concurrency", "1", "--processes", "1")
    live.enqueue("run_program")
    live.until(lambda: live.history("start"))

    worker.send_signal(signal.SIGTERM)

    assert worker.wait(5) == 0
    until(lambda: not is_alive(live.history("start")[0]["program"]), 1)


def test_a_language_that_a_job_speaks_is_not_spoken_in_the_next(live: Live) -> None:
    live.start_worker("--concurrency", "1", "--processes", "1")

    live.enqueue("speak", 2, payload={"language": "de"})

    live.until(lambda: len(live.history("start")) == 2)
    assert [line["language"] for line in live.history("start")] == ["en-us", "en-us"]


def test_what_a_handler_prints_is_not_lost_with_its_child(live: Live) -> None:
    live.environment["PYTHONUNBUFFERED"] = ""
    worker = live.start_worker("--concurrency", "1", "--processes", "1")
    live.enqueue("say", payload={"text": "what was said"})
    live.until(lambda: live.history("end"))

    worker.send_signal(signal.SIGTERM)
    worker.wait(5)

    assert "what was said" in live.log(worker)


def test_a_connection_that_cannot_be_closed_costs_no_slot(live: Live) -> None:
    live.start_worker("--concurrency", "1", "--processes", "1")

    live.enqueue("break_connection", 3)

    live.until(lambda: live.inspector.stats().lanes["default"].acked == 3)
    assert live.inspector.stats().lanes["default"].in_flight == 0


def test_text_that_has_no_utf_8_gets_to_the_handler_and_holds_up_nobody(live: Live) -> None:
    live.options["SIGNING_KEYS"] = []
    live.start_worker("--concurrency", "1", "--processes", "1")
    (job,) = live.enqueue("say", delay_ms=3_600_000, payload={"text": "broken"})
    envelope = job.encode().encode().replace(b"broken", b"\xff")
    live.client.hset(live.coordinator.keys.jobs, job.id, envelope)  # type: ignore[arg-type]
    live.client.rpush(live.coordinator.keys.lane("default"), job.id)

    live.enqueue("work", 2)

    live.until(lambda: len(live.history("end")) == 2)


def test_a_worker_and_its_children_keep_no_files_and_threads_of_children_that_left(live: Live) -> None:
    worker = live.start_worker("--concurrency", "1", "--processes", "1", "--max-jobs", "1")
    live.enqueue("work")
    live.until(lambda: live.inspector.stats().lanes["default"].acked == 1)

    def held() -> tuple[int, int]:
        return len(os.listdir(f"/proc/{worker.pid}/fd")), len(os.listdir(f"/proc/{worker.pid}/task"))

    before = live.until(lambda: held() if len(live.history("end")) == 1 else None)

    live.enqueue("work", 8)
    live.until(lambda: live.inspector.stats().lanes["default"].acked == 9, 40)

    live.until(lambda: held() <= before, 5)
