"""The job, its envelope, and when it is due."""

import json
import math
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priqueue import jobs
from priqueue.exceptions import InvalidCaller, InvalidDelay
from priqueue.jobs import Job, NewerEnvelope, due, from_ms, new_id, to_ms

NOW = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
TEN_YEARS_S = 3_653 * 86_400


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch):
    monkeypatch.setattr(jobs.clock, "wall_ms", lambda: to_ms(NOW))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.sampled_from([',"payload":', '"payload":{', "}", '"']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.just("payload"), inner),
    max_leaves=10,
)
words = st.text(
    st.characters(exclude_categories=["C", "Z"], exclude_characters='"\\'), min_size=1, max_size=200
) | st.just(",payload:")
moments = st.integers(0, to_ms(datetime(2400, 1, 1, tzinfo=UTC))).map(from_ms)


@given(
    st.builds(
        Job,
        name=words,
        payload=st.dictionaries(st.text(max_size=9), json_values, max_size=3),
        lane=words,
        delay_ms=st.none() | st.integers(0, 10**12),
        run_at=moments,
        max_attempts=st.integers(0, 10**6),
        timeout=st.integers(1, 10**6) | st.floats(0.001, 1e9),
        caller=words,
        correlation_id=st.just("") | words,
        enqueued_at=moments,
    )
)
def test_an_envelope_holds_the_whole_job_byte_for_byte(job):
    envelope = job.encode()

    decoded = Job.decode(job.id, envelope)

    estimate = job.enqueued_at + timedelta(milliseconds=job.delay_ms or 0)
    assert decoded == replace(job, run_at=job.run_at if job.delay_ms is None else estimate)
    assert decoded.encode() == envelope
    assert decoded.payload_text() == job.payload_text()
    assert envelope.isprintable() or "\n" not in envelope


@pytest.mark.parametrize(
    "payload_json",
    [
        "{}",
        '{"a":",\\"payload\\":"}',
        '{"payload":{"payload":1}}',
        '{ "kept" : 1.50, "as": "\\u00fc" }',
        '{"a":1e2,"b":-0.0,"c":18446744073709551616}',
        '{"ü":"🐍"}',
    ],
)
def test_the_payload_is_cut_out_of_the_envelope_and_never_encoded_again(payload_json):
    job = Job(name="n", payload=json.loads(payload_json), payload_json=payload_json)

    decoded = Job.decode(job.id, job.encode())

    assert decoded.payload_json == payload_json
    assert decoded.payload == json.loads(payload_json)


def test_the_head_of_an_envelope_comes_in_a_fixed_order():
    job = Job(
        id="j1",
        name="shop.send",
        payload={"a": [1, "ü"]},
        lane="high",
        delay_ms=1500,
        max_attempts=3,
        timeout=30,
        caller="user:42",
        correlation_id="c1",
        enqueued_at=from_ms(1_700_000_000_123),
    )

    assert job.encode() == (
        '{"v":1,"name":"shop.send","caller":"user:42","correlation_id":"c1","lane":"high","delay_ms":1500'
        ',"max_attempts":3,"timeout_s":30,"enqueued_at_ms":1700000000123,"payload":{"a":[1,"ü"]}}'
    )


def test_an_absolute_time_stands_in_the_envelope_instead_of_the_delay():
    job = Job(id="j1", name="n", payload={}, delay_ms=None, run_at=from_ms(5))

    assert ',"run_at_ms":5,' in job.encode()
    assert "delay_ms" not in job.encode()


ENVELOPE = Job(id="j1", name="n", payload={"a": 1}).encode()


@pytest.mark.parametrize(
    "envelope",
    [
        ENVELOPE.replace('"v":1', '"v":2'),
        '{"v":2,"payload":{}}',
        '{"v":3,"sealed":"…"}',
    ],
)
def test_the_envelope_of_a_newer_version_is_told_apart(envelope):
    with pytest.raises(NewerEnvelope, match=r"envelope version \d, this code knows 1"):
        Job.decode("j1", envelope)


@pytest.mark.parametrize(
    "envelope",
    [
        "",
        "junk",
        "null",
        "[]",
        "5",
        "{}",
        '{"v":1}',
        '{"v":"1","payload":{}}',
        '{"v":null,"payload":{}}',
        '{"v":1,"payload":{}}',
        '[1,"payload":{}]',
        ENVELOPE[:-1],
        ENVELOPE[:-2],
        ENVELOPE + "x",
        ENVELOPE + "}",
        ENVELOPE.replace('"a":1', '"a":'),
        ENVELOPE.replace('"name":"n",', ""),
        ENVELOPE.replace('"n"', '"a b"'),
        ENVELOPE.replace('"n"', "5"),
        ENVELOPE.replace('"delay_ms":0', '"delay_ms":"0"'),
        ENVELOPE.replace('"delay_ms":0', '"delay_ms":1e300'),
        ENVELOPE.replace('"delay_ms":0', '"other":0'),
        ENVELOPE.replace('{"a":1}', "[" * 100_000),
        "[" * 100_000,
    ],
    ids=lambda envelope: envelope[:60],
)
def test_what_is_no_envelope_is_a_value_error(envelope):
    with pytest.raises(ValueError):  # noqa: PT011 (any of its kind)
        Job.decode("j1", envelope)


@pytest.mark.parametrize("field", ["name", "lane", "caller", "correlation_id"])
@pytest.mark.parametrize("word", ['a"b', "a b", "a\\", "\x00", "\ud800", "a" * 201])
def test_no_head_field_holds_what_would_break_the_envelope(field, word):
    with pytest.raises(InvalidCaller, match=f"^{field}: "):
        Job(**{"name": "n", "payload": {}, field: word})


def test_a_job_without_a_delay_needs_a_run_at():
    with pytest.raises(ValueError, match="a job without delay_ms needs a run_at"):
        Job(name="n", payload={}, delay_ms=None)


def test_a_job_is_frozen():
    with pytest.raises(FrozenInstanceError):
        Job(name="n", payload={}).lane = "high"


def test_ids_sort_by_the_order_in_which_they_were_made():
    ids = [new_id() for _ in range(10_000)]

    assert ids == sorted(set(ids))


@given(st.integers(-(10**13), to_ms(datetime(9000, 1, 1, tzinfo=UTC))))
def test_milliseconds_survive_the_way_over_a_datetime(ms):
    assert to_ms(from_ms(ms)) == ms


@pytest.mark.parametrize(
    ("delay", "delay_ms"),
    [
        (None, 0),
        (0, 0),
        (-0.0, 0),
        (2, 2_000),
        (0.0005, 1),
        (30.001, 30_001),
        (1.9999, 2_000),
        (1e-300, 0),
        (timedelta(0), 0),
        (timedelta(seconds=1.5), 1_500),
        (timedelta(microseconds=1_999), 2),
        (timedelta(milliseconds=2**31), 2**31),
        (TEN_YEARS_S, TEN_YEARS_S * 1_000),
        (timedelta(days=3_653), TEN_YEARS_S * 1_000),
    ],
)
def test_a_delay_is_whole_milliseconds_from_now_and_never_less_than_asked(delay, delay_ms):
    assert due(delay, None) == (delay_ms, NOW + timedelta(milliseconds=delay_ms))


@given(st.floats(0, TEN_YEARS_S))
def test_any_delay_up_to_ten_years_is_kept_to_the_millisecond(delay):
    assert abs(due(delay, None)[0] - delay * 1_000) <= 1


RANGE = "delay: use a number of seconds from 0 to ten years"


@pytest.mark.parametrize(
    ("delay", "message"),
    [
        (-1, RANGE),
        (-0.001, RANGE),
        (-1e18, RANGE),
        (1e18, RANGE),
        (2**53 + 1, RANGE),
        (10**400, RANGE),
        (1e308, RANGE),
        (math.nan, RANGE),
        (math.inf, RANGE),
        (-math.inf, RANGE),
        (TEN_YEARS_S + 1, RANGE),
        (timedelta(-1), RANGE),
        (timedelta(microseconds=-1), RANGE),
        (timedelta(days=3_653, microseconds=1), RANGE),
        (timedelta.max, RANGE),
        (True, "delay: use seconds or a timedelta, not bool"),
        (False, "delay: use seconds or a timedelta, not bool"),
        ("5", "delay: use seconds or a timedelta, not str"),
        (b"5", "delay: use seconds or a timedelta, not bytes"),
        ([5], "delay: use seconds or a timedelta, not list"),
        (NOW, "delay: use seconds or a timedelta, not datetime"),
        (5j, "delay: use seconds or a timedelta, not complex"),
    ],
)
def test_any_other_delay_is_refused_by_name(delay, message):
    with pytest.raises(InvalidDelay) as refusal:
        due(delay, None)

    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("run_at", "due_at"),
    [
        (NOW, NOW),
        (NOW + timedelta(hours=1), NOW + timedelta(hours=1)),
        (NOW + timedelta(microseconds=1_999), NOW + timedelta(milliseconds=1)),
        (NOW - timedelta(days=1), NOW - timedelta(days=1)),
        (NOW + timedelta(days=3_653), NOW + timedelta(days=3_653)),
        (datetime(1, 1, 1, tzinfo=UTC), from_ms(0)),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), from_ms(0)),
        (datetime(2026, 7, 1, 5, 45, tzinfo=ZoneInfo("Asia/Kathmandu")), datetime(2026, 7, 1, tzinfo=UTC)),
        (datetime(2026, 7, 1, tzinfo=timezone(timedelta(hours=-12))), datetime(2026, 7, 1, 12, tzinfo=UTC)),
    ],
)
def test_a_run_at_is_an_exact_instant_and_one_in_the_past_is_left_to_the_servers_clock(run_at, due_at):
    assert due(None, run_at) == (None, due_at)


AHEAD = "is more than ten years ahead"


@pytest.mark.parametrize(
    ("run_at", "message"),
    [
        (datetime(2026, 7, 1), "run_at: a datetime without a time zone; make it aware"),
        (NOW + timedelta(days=3_653, milliseconds=1), f"run_at: 2036-03-29T00:30:00.001000+00:00 {AHEAD}"),
        (datetime(9999, 12, 31, 23, 59, tzinfo=UTC), f"run_at: 9999-12-31T23:59:00+00:00 {AHEAD}"),
        (
            datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
            f"run_at: 9999-12-31T23:59:59.999999-14:00 {AHEAD}",
        ),
        (True, "run_at: use an aware datetime, not bool"),
        (5, "run_at: use an aware datetime, not int"),
        (math.nan, "run_at: use an aware datetime, not float"),
        ("2026-07-01T00:00:00Z", "run_at: use an aware datetime, not str"),
        (date(2026, 7, 1), "run_at: use an aware datetime, not date"),
        (timedelta(1), "run_at: use an aware datetime, not timedelta"),
    ],
)
def test_any_other_run_at_is_refused_by_name(run_at, message):
    with pytest.raises(InvalidDelay) as refusal:
        due(None, run_at)

    assert str(refusal.value) == message


@pytest.mark.parametrize("delay", [0, 5, math.nan])
def test_a_delay_and_a_run_at_together_are_refused(delay):
    with pytest.raises(InvalidDelay, match=r"^delay and run_at: give one of them, not both$"):
        due(delay, NOW)
