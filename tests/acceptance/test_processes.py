"""Real processes, real signals: what a user of the commands relies on."""

import signal
from collections import Counter

from tests.support.processes import Live


def test_a_killed_workers_job_is_ready_again_after_two_missed_beats_and_one_sweep_never_before(live: Live) -> None:
    live.start("runsweeper")
    worker = live.start_worker("--concurrency", "1")
    (job,) = live.enqueue("work", payload={"seconds": 60})
    live.until(lambda: live.history("start"))

    worker.send_signal(signal.SIGKILL)
    worker.wait()
    last_beat_ms = int(live.raw.hget(live.coordinator.keys.heartbeats, live.inspector.workers()[0].id) or 0)
    live.until(lambda: live.raw.lrange(live.coordinator.keys.lane("default"), 0, -1) == [job.id])

    ready_ms = int(live.raw.hget(live.coordinator.keys.since, job.id) or 0)
    lease_ms, sweep_ms = live.settings.lease_s * 1000, live.settings.sweep_s * 1000
    assert lease_ms <= ready_ms - last_beat_ms <= lease_ms + sweep_ms + 400
    status = live.inspector.job(job.id)
    assert status is not None
    assert (status.attempt, status.crashes, [attempt.error for attempt in status.trail]) == (1, 1, ["WorkerLost"])


def test_when_every_process_restarts_jobs_in_flight_delayed_and_ready_are_all_still_there(live: Live) -> None:
    processes = [live.start("runticker"), live.start("runsweeper"), live.start_worker("--concurrency", "2")]
    in_flight = live.enqueue("work", 2, payload={"seconds": 60})
    live.until(lambda: len(live.history("start")) == 2)
    ready = live.enqueue("work", 3)
    delayed = live.enqueue("work", 2, delay_ms=3000)

    for process in processes:
        process.send_signal(signal.SIGKILL)
        process.wait()
    everything = {job.id for job in (*in_flight, *ready, *delayed)}
    assert set(live.raw.hkeys(live.coordinator.keys.jobs)) == everything
    for command in ("runticker", "runsweeper"):
        live.start(command)
    live.start_worker("--concurrency", "10")

    live.until(lambda: {line["id"] for line in live.history("end")} == {job.id for job in (*ready, *delayed)})
    live.until(lambda: Counter(line["id"] for line in live.history("start"))[in_flight[0].id] == 2)
    assert live.inspector.stats().dead == 0


def test_a_terminated_worker_finishes_its_jobs_and_leaves_with_0(live: Live) -> None:
    worker = live.start_worker("--concurrency", "2")
    live.enqueue("work", 3, payload={"seconds": 0.5})
    live.until(lambda: len(live.history("start")) == 2)

    worker.send_signal(signal.SIGTERM)

    assert worker.wait(10) == 0
    assert (len(live.history("start")), len(live.history("end"))) == (2, 2)
    assert live.inspector.workers() == []
    assert live.inspector.stats().lanes["default"].ready == 1


def test_a_second_signal_gives_the_job_back_at_once(live: Live) -> None:
    worker = live.start_worker("--concurrency", "1")
    (job,) = live.enqueue("work", payload={"seconds": 60})
    live.until(lambda: live.history("start"))

    worker.send_signal(signal.SIGINT)
    live.until(lambda: "drains" in live.log(worker))
    worker.send_signal(signal.SIGINT)

    assert worker.wait(5) == 0
    assert live.raw.lrange(live.coordinator.keys.lane("default"), 0, -1) == [job.id]


def test_ten_thousand_jobs_on_three_workers_run_once_each_and_six_three_one(live: Live) -> None:
    jobs = [job for lane in ("low", "default", "high") for job in live.enqueue("note", 3334, lane=lane)]
    workers = [live.start("runworker", "--burst", "--concurrency", "8") for _ in range(3)]

    assert [worker.wait(90) for worker in workers] == [0, 0, 0]

    entries = [entry for _, entry in live.raw.xrange(live.coordinator.keys.audit)]
    claims = [entry for entry in entries if entry["action"] == "claim"]
    acked = Counter(entry["job"] for entry in entries if entry["action"] == "ack")
    assert acked == {job.id: 1 for job in jobs}
    assert Counter(entry["job"] for entry in claims) == acked
    lanes = [entry["lane"] for entry in claims]
    busy = min(_last(lanes, lane) for lane in ("high", "default", "low")) + 1
    windows = {tuple(sorted(Counter(lanes[at : at + 10]).items())) for at in range(busy - 10)}
    assert windows == {(("default", 3), ("high", 6), ("low", 1))}
    assert busy > 5000
    assert live.raw.hlen(live.coordinator.keys.jobs) == 0


def _last(lanes: list[str], lane: str) -> int:
    return len(lanes) - 1 - lanes[::-1].index(lane)


def test_a_job_that_keeps_failing_ends_in_the_dead_letters_with_its_payload_and_trace(live: Live) -> None:
    live.start("runcoordinator")
    live.start_worker("--concurrency", "2")
    (job,) = live.enqueue("fail", payload={"message": "the card was declined"}, max_attempts=3)

    live.until(lambda: live.inspector.stats().dead == 1)

    status = live.inspector.job(job.id)
    assert status is not None
    assert (status.state, status.attempt) == ("dead", 3)
    assert status.job.payload == {"message": "the card was declined"}
    assert "the card was declined" in status.trail[0].traceback
    assert len(live.history("start")) == 3


def test_an_async_handler_runs(live: Live) -> None:
    (job,) = live.enqueue("awaited")

    worker = live.start("runworker", "--burst")

    assert worker.wait(20) == 0
    assert [line["id"] for line in live.history("start")] == [job.id]


def test_an_idle_worker_makes_at_most_one_round_trip_a_second(live: Live) -> None:
    live.options.update(HEARTBEAT_S=5, PULL_TIMEOUT_S=5, SOCKET_TIMEOUT_S=2)
    live.start_worker()
    begun_ms, before = live.inspector.now_ms(), _calls(live)

    live.until(lambda: live.inspector.now_ms() >= begun_ms + 6000)

    assert _calls(live) - before <= 6


def _calls(live: Live) -> int:
    """Return how many scripts and blocking waits the server was asked for so far."""
    told = live.client.info("commandstats")
    return sum(told.get(f"cmdstat_{command}", {}).get("calls", 0) for command in ("evalsha", "blpop"))
