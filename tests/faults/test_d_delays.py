"""Row D7: a delay or time that makes no sense is refused before anything is written; what makes sense is exact."""

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from redis import Redis

import priqueue
from priqueue import wiring
from priqueue.exceptions import InvalidDelay
from priqueue.jobs import to_ms
from tests.shop.jobs import note
from tests.support.queues import START_MS, Queue, test_settings

pytestmark = pytest.mark.chaos
NAIVE = datetime(2030, 6, 1, 12)
VIENNA = ZoneInfo("Europe/Vienna")
REFUSED: dict[str, dict[str, Any]] = {
    **{
        f"delay {delay!r:.30}": {"delay": delay}
        for delay in (
            -1, -0.001, -1e18, 1e18, 2**53 + 1, 10**400, math.nan, math.inf, -math.inf, True, False, "5", b"5", [5],
            timedelta(seconds=-1), timedelta.max, timedelta.min, 1j, NAIVE,
        )
    },
    "naive": {"run_at": NAIVE},
    "year 9999": {"run_at": datetime.max.replace(tzinfo=UTC)},
    "date": {"run_at": NAIVE.date()},
    "seconds since 1970": {"run_at": 1_900_000_000},
    "text": {"run_at": "2030-06-01T12:00:00+00:00"},
    "both": {"delay": 1, "run_at": NAIVE.replace(tzinfo=UTC)},
}  # fmt: skip
INSTANTS = {
    "other zone": datetime(2030, 6, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=45))),
    "gap": datetime(2030, 3, 31, 2, 30, tzinfo=VIENNA),
    "fold 0": datetime(2030, 10, 27, 2, 30, tzinfo=VIENNA),
    "fold 1": datetime(2030, 10, 27, 2, 30, tzinfo=VIENNA, fold=1),
    "microseconds": datetime(2030, 6, 1, 12, 0, 0, 999_999, tzinfo=UTC),
}


@pytest.fixture
def queue(client: Redis) -> Iterator[Queue]:
    """A queue on a real server that ``priqueue.enqueue`` uses here."""
    queue = Queue(client, test_settings())
    with wiring.override(queue.coordinator):
        yield queue


@pytest.mark.parametrize("options", REFUSED.values(), ids=REFUSED)
def test_d7_a_time_without_sense_is_refused_and_nothing_is_stored(queue: Queue, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidDelay):
        priqueue.enqueue(note, {}, on_commit=False, **options)
    with pytest.raises(InvalidDelay):
        note.using(on_commit=False, **options).enqueue()

    assert queue.everything() == {}


@pytest.mark.parametrize("moment", INSTANTS.values(), ids=INSTANTS)
def test_d7_an_aware_time_is_its_instant_to_the_millisecond(queue: Queue, moment: datetime) -> None:
    job = priqueue.enqueue(note, {}, run_at=moment, on_commit=False)

    assert queue.state()["delayed"]["default"] == {job.id: to_ms(moment.astimezone(UTC))}


@pytest.mark.parametrize(
    ("options", "wait_ms"),
    [
        ({"delay": 0.0004}, 1),
        ({"delay": 0}, None),
        ({"delay": None}, None),
        ({"run_at": datetime(1, 1, 1, tzinfo=UTC)}, None),
        ({"run_at": datetime(2020, 1, 1, tzinfo=UTC)}, None),
        ({"delay": 0.001}, 1),
        ({"delay": timedelta(microseconds=1_999)}, 2),
        ({"delay": 2**31 / 1000}, 2**31),
        ({"delay": timedelta(days=3_653)}, 3_653 * 86_400_000),
    ],
)
def test_d7_a_wait_is_counted_from_the_servers_now_and_none_or_a_past_time_means_now(
    queue: Queue, options: dict[str, Any], wait_ms: int | None
) -> None:
    job = priqueue.enqueue(note, {}, on_commit=False, **options)

    state = queue.state()
    found = (state["ready"]["default"], state["delayed"]["default"])
    assert found == (([job.id], {}) if wait_ms is None else ([], {job.id: START_MS + wait_ms}))


def test_d7_the_table_of_outcomes(queue: Queue, figure: Callable[..., None]) -> None:
    stored = 0
    for options in REFUSED.values():
        with pytest.raises(InvalidDelay):
            priqueue.enqueue(note, {}, on_commit=False, **options)
        stored += len(queue.everything())

    figure("D7", f"stored of {len(REFUSED)} senseless times", stored, "= 0", stored == 0)
