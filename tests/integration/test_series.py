"""The series read back: points of thirty seconds, gaps, and what is made of them."""

import pytest

from priqueue.coordinator.overview import Overview
from priqueue.coordinator.series import HOUR_MS, POINT_MS, Sums, merged
from tests.support.queues import START_MS, Queue


@pytest.fixture
def series(queue: Queue) -> Overview:
    return Overview(queue.client, queue.settings, queue.clock)


@pytest.fixture(autouse=True)
def _closed(series: Overview) -> object:
    yield
    series.close()


def _bucket(queue: Queue, after_s: int, **fields: int) -> None:
    key = queue.keys.series(START_MS + after_s * 1000)
    queue.raw.hset(key, mapping={name.replace("__", ":"): number for name, number in fields.items()})


def test_a_point_is_the_sum_of_its_buckets(queue: Queue, series: Overview) -> None:
    _bucket(queue, 0, acked__high=10, acked__low=1, retried__high=2, slots=4, capacity=8)
    _bucket(queue, 10, acked__high=20, buried__high=1, picks_full__low=3, enqueued__low=5, slots=8, capacity=8)
    _bucket(queue, 20, acked__high=30, slots=0, capacity=8)

    points = series.points(START_MS - POINT_MS, START_MS + POINT_MS)

    assert points == [
        Sums(
            at_ms=START_MS, known_s=30, acked={"high": 60, "low": 1}, failed={"high": 3}, picks_full={"low": 3},
            enqueued={"low": 5}, slots=12, capacity=24,
        )
    ]  # fmt: skip
    assert (points[0].per_s("high"), points[0].error_rate, points[0].utilisation) == (2.0, 3 / 64, 0.5)


def test_what_nobody_sampled_is_unknown_and_not_zero(queue: Queue, series: Overview) -> None:
    (gap,) = series.points(START_MS - POINT_MS, START_MS + POINT_MS)

    assert (gap.known_s, gap.per_s(), gap.error_rate, gap.utilisation, gap.share("high")) == (0, None, None, None, None)


def test_a_measured_nothing_is_zero(queue: Queue, series: Overview) -> None:
    _bucket(queue, 0, slots=0, capacity=8, ready__high=0)

    (quiet,) = series.points(START_MS - POINT_MS, START_MS + POINT_MS)

    assert (quiet.per_s(), quiet.utilisation, quiet.error_rate) == (0.0, 0.0, None)


def test_the_point_that_still_fills_is_left_out(queue: Queue, series: Overview) -> None:
    _bucket(queue, 0, acked__high=1)

    assert series.points(START_MS - POINT_MS, START_MS + POINT_MS - 1) == []


def test_only_points_after_the_last_one_known_are_given_and_of_an_hour_at_most(queue: Queue, series: Overview) -> None:
    now_ms = START_MS + HOUR_MS

    whole, fresh = (
        [point.at_ms for point in series.points(since_ms, now_ms)] for since_ms in (0, now_ms - 2 * POINT_MS)
    )

    assert (whole[0], whole[-1], len(whole)) == (START_MS, now_ms - POINT_MS, HOUR_MS // POINT_MS)
    assert fresh == [now_ms - POINT_MS]


def test_a_reader_from_the_future_is_given_nothing(queue: Queue, series: Overview) -> None:
    assert series.points(2**53, START_MS) == []


def test_the_last_minute_is_six_whole_buckets(queue: Queue, series: Overview) -> None:
    for after_s in range(-70, 10, 10):
        _bucket(queue, after_s, acked__high=1)

    queue.clock.advance(5)
    recent = series.snapshot().recent

    assert (recent.at_ms, recent.known_s, recent.acked) == (START_MS - 60_000, 60, {"high": 6})


def test_coarser_rows_are_sums_of_points(queue: Queue, series: Overview) -> None:
    _bucket(queue, 0, acked__high=3, slots=1, capacity=2)
    _bucket(queue, 60, acked__high=5, retried__high=2, slots=1, capacity=2)

    rows = merged(series.points(START_MS - POINT_MS, START_MS + 120_000), 300_000)

    assert rows == [Sums(at_ms=START_MS, known_s=20, acked={"high": 8}, failed={"high": 2}, slots=2, capacity=4)]


def test_a_foreign_value_in_a_bucket_hides_only_itself(queue: Queue, series: Overview) -> None:
    _bucket(queue, 0, acked__high=3)
    queue.raw.hset(queue.keys.series(START_MS), "acked:low", "many")
    queue.raw.set(queue.keys.series(START_MS + 10_000), "foreign")

    (point,) = series.points(START_MS - POINT_MS, START_MS + POINT_MS)

    assert point.acked == {"high": 3}


def test_the_last_minute_knows_how_long_jobs_waited(queue: Queue, series: Overview) -> None:
    _bucket(queue, -10, wait_le_100__high=9, wait_le_2500__high=1, wait_ms__high=2_000, slots=0)
    _bucket(queue, -20, wait_le_100__high=10, wait_ms__high=500)

    waits = series.snapshot().recent.waits

    assert [waits["high"].at_most_ms(part) for part in (0.5, 0.95, 0.99)] == [100, 100, 2_500]
    assert waits["low"].at_most_ms(0.5) is None
