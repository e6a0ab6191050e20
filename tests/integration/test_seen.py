"""seen: the duties that have had a turn lately, by which pages and metrics tell who is alive."""

from priqueue.sweeper import Sweeper
from priqueue.ticker import Ticker
from tests.support import auditing
from tests.support.queues import START_MS, Queue


def _seen(queue: Queue) -> dict[str, str]:
    return dict(queue.raw.hgetall(queue.keys.seen))


def test_a_ticker_is_seen_with_each_turn_also_when_nothing_is_due(queue: Queue) -> None:
    Ticker(queue.coordinator, queue.inspector).run_once()

    assert _seen(queue) == {"ticker": str(START_MS)}


def test_a_sweeper_is_seen_with_each_turn(queue: Queue) -> None:
    Sweeper(queue.coordinator, queue.inspector).run_once()
    queue.clock.advance(1)

    Sweeper(queue.coordinator, queue.inspector).run_once()

    assert _seen(queue) == {"sweeper": str(START_MS + 1_000)}


def test_an_auditor_is_seen_by_the_servers_own_clock(real_queue: Queue) -> None:
    began_ms = real_queue.on_the_servers_clock().inspector.now_ms()

    auditing.outbox(real_queue).say_seen()

    assert began_ms <= int(_seen(real_queue)["auditor"]) <= real_queue.on_the_servers_clock().inspector.now_ms()


def test_a_foreign_value_in_its_place_stops_nobody(queue: Queue) -> None:
    queue.enqueue(delay_ms=1_000)
    queue.clock.advance(2)
    queue.raw.set(queue.keys.seen, "foreign")

    promoted = queue.coordinator.promote()

    assert promoted == 1
