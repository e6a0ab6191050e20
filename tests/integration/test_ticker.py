"""The ticker: promotes in batches, waits for the next due time, ends timed pauses."""

import threading

import pytest
from redis import Redis

from priqueue import ticker
from priqueue.ticker import BATCH, Ticker
from tests.support.queues import Queue, test_settings
from tests.support.waiting import until


def test_a_tick_promotes_what_is_due_and_waits_for_the_next(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticker, "monotonic_s", lambda: 7.0)  # to ask takes no time
    (due,) = queue.enqueue(delay_ms=1000)
    (later,) = queue.enqueue(delay_ms=1400)
    queue.clock.advance(1)

    wait_s = Ticker(queue.coordinator, queue.inspector).run_once()

    assert wait_s == 0.4
    assert queue.places() == {due.id: "ready", later.id: "delayed"}


@pytest.mark.parametrize(("due_s", "wait_s"), [(0.4, 0.1), (0.2, 0), (0, 0.001), (-3, 0.001)])
def test_a_tick_begins_as_long_before_the_due_time_as_it_took_to_ask_for_it(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, due_s: float, wait_s: float
) -> None:
    moments_s = iter([7, 7.3])
    monkeypatch.setattr(ticker, "monotonic_s", lambda: next(moments_s))
    monkeypatch.setattr(queue.inspector, "agenda", lambda: (due_s, []))

    assert Ticker(queue.coordinator, queue.inspector).run_once() == pytest.approx(wait_s)


def test_a_tick_waits_no_longer_than_its_period(queue: Queue) -> None:
    queue.enqueue(delay_ms=60_000)

    assert Ticker(queue.coordinator, queue.inspector).run_once() == queue.settings.tick_s


def test_a_full_batch_is_followed_by_another_at_once(queue: Queue) -> None:
    queue.enqueue(number=BATCH + 1, delay_ms=1)
    queue.clock.advance(1)
    ticking = Ticker(queue.coordinator, queue.inspector)

    assert (ticking.run_once(), ticking.run_once()) == (0, queue.settings.tick_s)

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
    ticking = Ticker(queue.coordinator, queue.inspector)
    thread = threading.Thread(target=ticking.run)
    thread.start()

    (job,) = queue.enqueue(delay_ms=50)

    until(lambda: queue.raw.lrange(queue.keys.lane("default"), 0, -1) == [job.id], timeout_s=2)
    ticking.stop()
    thread.join(5)
    assert not thread.is_alive()
