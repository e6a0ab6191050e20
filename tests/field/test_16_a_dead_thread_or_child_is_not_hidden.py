"""A thread of the worker's own is dead: the process says so and ends with 1, for somebody to start a new one."""

import os
import signal
import threading
from collections.abc import Callable

import pytest
from redis import Redis

from priqueue.worker import Worker
from tests.support.processes import Live
from tests.support.queues import Queue, close_all, test_settings

TWO_BEATS_S = 1.0


def die() -> float:
    """End the thread that runs this, as ``except Exception`` does not see it."""
    raise SystemExit


KILL: dict[str, Callable[[Worker], None]] = {
    "heartbeat": lambda worker: setattr(worker._heartbeat.loop, "_run_once", die),
    "listener": lambda worker: setattr(worker._listener, "_run_once", die),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("thread", KILL)
def test_a_worker_with_a_dead_thread_of_its_own_ends_with_1_within_two_beats(client: Redis, thread: str) -> None:
    settings = test_settings(PULL_TIMEOUT_S=1, HEARTBEAT_S=0.5, SOCKET_TIMEOUT_S=0.4)
    queue = Queue(client, settings).on_the_servers_clock()
    worker = Worker(queue.coordinator, concurrency=1, processes=0)
    running = threading.Thread(target=worker.run)
    running.start()

    KILL[thread](worker)
    worker._listener.wake()
    running.join(settings.pull_timeout_s + settings.heartbeat_s + TWO_BEATS_S)

    assert (running.is_alive(), worker.exit_code) == (False, 1)
    assert queue.inspector.workers() == []
    close_all()


def test_a_child_that_is_killed_is_replaced_though_nothing_runs_in_it(live: Live) -> None:
    worker = live.start_worker("--concurrency", "1")
    live.enqueue("work")
    (first,) = live.until(lambda: live.history("end"))

    os.kill(first["pid"], signal.SIGKILL)
    live.enqueue("work")

    live.until(lambda: len(live.history("end")) == 2)
    assert (live.history("end")[1]["pid"] != first["pid"], worker.poll()) == (True, None)


def test_a_worker_whose_output_is_closed_goes_on(live: Live) -> None:
    read_end, write_end = os.pipe()
    worker = live.start("runworker", "--concurrency", "1", stdout=write_end)
    os.close(write_end)
    os.read(read_end, 1)

    os.close(read_end)
    live.enqueue("work", 3)

    live.until(lambda: len(live.history("end")) == 3)
    assert worker.poll() is None
