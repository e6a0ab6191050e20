"""The ticker: promotes in batches, waits for the next due time, ends timed pauses."""

import threading

from redis import Redis

from priqueue.ticker import BATCH, Ticker
from tests.support.queues import Queue, test_settings
from tests.support.waiting import until


def test_a_tick_promotes_what_is_due_and_waits_for_the_next(queue: Queue) -> None:
    (due,) = queue.enqueue(delay_ms=1000)
    (later,) = queue.enqueue(delay_ms=1400)
    queue.clock.advance(1)

    wait_s = Ticker(queue.coordinator, queue.inspector).run_once()

    assert wait_s == 0.4
    assert queue.places() == {due.id: "ready", later.id: "delayed"}


def test_a_tick_waits_no_longer_than_its_period(queue: Queue) -> None:
    queue.enqueue(delay_ms=60_000)

    assert Ticker(queue.coordinator, queue.inspector).run_once() == queue.settings.tick_s


def test_a_full_batch_is_followed_by_another_at_once(queue: Queue) -> None:
    queue.enqueue(number=BATCH + 1, delay_ms=1)
    queue.clock.advance(1)
    ticker = Ticker(queue.coordinator, queue.inspector)

    assert (ticker.run_once(), ticker.run_once()) == (0, queue.settings.tick_s)

    assert set(queue.places().values()) == {"ready"}


def test_a_tick_ends_a_pause_whose_time_is_over_and_no_other(queue: Queue) -> None:
    queue.coordinator.pause("low", caller="user:1", reason="backup", lasts_s=10)
    queue.coordinator.pause("high", caller="user:1", reason="for good")
    queue.clock.advance(10)

    Ticker(queue.coordinator, queue.inspector).run_once()

    assert list(queue.inspector.paused()) == ["high"]
    assert ("resume", "ticker", "") in queue.events()


def test_a_waiting_ticker_hears_of_an_earlier_due_time(client: Redis) -> None:
    queue = Queue(client, test_settings(TICK_S=30)).on_the_servers_clock()
    ticker = Ticker(queue.coordinator, queue.inspector)
    thread = threading.Thread(target=ticker.run)
    thread.start()

    (job,) = queue.enqueue(delay_ms=50)

    until(lambda: queue.raw.lrange(queue.keys.lane("default"), 0, -1) == [job.id], timeout_s=2)
    ticker.stop()
    thread.join(5)
    assert not thread.is_alive()
