"""The HTTP door: what is wrong is refused by name before anything is written, whatever bytes are sent."""

import json
from typing import Any

import pytest
from django.test import RequestFactory, override_settings

from priqueue import wiring
from priqueue.api.bodies import largest_bytes
from tests.shop.jobs import note
from tests.support.door import JOB, Holder, problem
from tests.support.queues import Queue

pytestmark = pytest.mark.django_db


def refused(queue: Queue, answer: Any) -> tuple[int, str, list[str]]:
    """Return the problem; fail if anything is in the queue."""
    assert queue.everything() == {}
    return problem(answer)


GOOD = json.dumps({"job": JOB, "payload": {"n": 1}}).encode()
RAW: dict[str, bytes] = {
    "invalid UTF-8": b'{"job": "\xff"}',
    "overlong UTF-8": b'{"job": "\xc0\xaf"}',
    "an encoded surrogate": b'{"job": "\xed\xa0\x80"}',
    "UTF-16": GOOD.decode().encode("utf-16"),
    "UTF-16 without a mark": GOOD.decode().encode("utf-16-le"),
    "UTF-32": GOOD.decode().encode("utf-32"),
    "a byte order mark": b"\xef\xbb\xbf" + GOOD,
    "a name twice": GOOD[:-1] + b', "lane": "low", "lane": "high"}',
    "a name twice inside": b'{"job": "%s", "payload": {"n": 1, "n": 2}}' % JOB.encode(),
    "a name twice, once escaped": GOOD[:-1] + b', "lane": "low", "l\\u0061ne": "high"}',
    "something after it": GOOD + b"x",
    "another value after it": GOOD + GOOD,
    "NUL after it": GOOD + b"\0",
    "NaN": b'{"job": "%s", "payload": {"n": NaN}}' % JOB.encode(),
    "Infinity": b'{"job": "%s", "delay": -Infinity}' % JOB.encode(),
    "beyond a float": b'{"job": "%s", "delay": 1e400}' % JOB.encode(),
    "cut short": GOOD[:-1],
    "nested without end": b"[" * 60_000,
    "digits without end": b'{"job": "%s", "payload": {"n": %s}}' % (JOB.encode(), b"9" * 5_000),
    "single quotes": GOOD.replace(b'"', b"'"),
    "a comment": b"/* */" + GOOD,
    "white space alone": b"   ",
    "a bare word": b"job",
    "a control character": b'{"job": "a\nb"}',
}


@pytest.mark.parametrize("raw", RAW.values(), ids=RAW)
def test_what_is_not_exactly_one_json_value_in_utf_8_is_refused(queue: Queue, holder: Holder, raw: bytes) -> None:
    assert refused(queue, holder.send(raw)) == (400, "not-json", ["body"])


@pytest.mark.parametrize("raw", RAW.values(), ids=RAW)
def test_a_batch_is_read_no_less_strictly(queue: Queue, holder: Holder, raw: bytes) -> None:
    assert refused(queue, holder.send(raw, "jobs/batch"))[:2] == (400, "not-json")


SHAPES: dict[str, tuple[Any, list[str]]] = {
    "a list": ([], ["body"]),
    "a text": ("x", ["body"]),
    "null": (None, ["body"]),
    "nothing in it": ({}, ["job"]),
    "a job that is a number": ({"job": 1}, ["job"]),
    "a job that is too long": ({"job": "x" * 201}, ["job"]),
    "a payload that is a list": ({"job": JOB, "payload": []}, ["payload"]),
    "a payload that is a text": ({"job": JOB, "payload": "{}"}, ["payload"]),
    "a payload that is null": ({"job": JOB, "payload": None}, ["payload"]),
    "a lane that is a number": ({"job": JOB, "lane": 1}, ["lane"]),
    "a field that is not known": ({"job": JOB, "caller": "system"}, ["caller"]),
    "two wrong fields": ({"job": JOB, "lane": 1, "delay": "5"}, ["lane", "delay"]),
    "a name of the inside": ({"job": JOB, "max_attempts": 10**6}, ["max_attempts"]),
}


@pytest.mark.parametrize(("body", "fields"), SHAPES.values(), ids=SHAPES)
def test_what_has_another_shape_is_refused_field_by_field(
    queue: Queue, holder: Holder, body: Any, fields: list[str]
) -> None:
    assert refused(queue, holder.send(body)) == (422, "invalid-request", fields)


LANES: list[Any] = [
    "high:*", "{", "}", "high}", "{priqueue}", "High", " high", "high ", "high\n", "h\u0456gh", "", "*", "low,high",
    "hi\x00gh", "lane:high", "../high", "\ud800", "high\u200b",
]  # fmt: skip
NAMES: list[Any] = [
    "../x", "os.system", "__import__", "builtins.eval", "tests.shop.jobs", f"{JOB} ", f"{JOB}\x00", "a\r\nFLUSHALL",
    "<script>", '"', "", f"{JOB}.__globals__", JOB.replace("n", "\uff4e", 1), "\ud800", note.name,
]  # fmt: skip


@pytest.mark.parametrize("lane", LANES, ids=ascii)
def test_a_lane_is_one_of_those_configured_exactly(queue: Queue, holder: Holder, lane: str) -> None:
    assert refused(queue, holder.enqueue(lane=lane))[::2] == (422, ["lane"])


@pytest.mark.parametrize("lane", ["x" * 10**4, None, 1, True, ["high"], {"high": 1}], ids=lambda lane: f"{lane!r:.20}")
def test_a_lane_of_another_kind_is_refused(queue: Queue, holder: Holder, lane: Any) -> None:
    if lane is None:
        assert holder.enqueue(lane=None).json()["lane"] == "default"
    else:
        assert refused(queue, holder.enqueue(lane=lane))[::2] == (422, ["lane"])


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_handler_is_one_that_is_open_exactly(queue: Queue, holder: Holder, name: str) -> None:
    answer = holder.send({"job": name})

    assert refused(queue, answer)[::2] == (422, ["job"])
    assert "mean" not in answer.json()["detail"]


DELAYS: list[Any] = [
    -1, -0.001, -1e18, 1e18, 2**53 + 1, 10**400, True, False, "5", [5], {}, "", 10 * 366 * 86_400,
]  # fmt: skip
INSTANTS: list[Any] = [
    "2030-06-01T12:00:00", "9999-12-31T23:59:59Z", "2030-06-01", 1_900_000_000, "", "now", "2030-02-30T12:00:00Z",
    "2030-06-01T25:00:00Z", "2030-06-01T12:00:00+99:00", "\ud800", True, "2030-06-01T12:00:00Z\x00", [], "x" * 10**4,
    "0000-01-01T00:00:00Z", "+2030-06-01T12:00:00Z",
]  # fmt: skip


@pytest.mark.parametrize("delay", DELAYS, ids=lambda delay: f"{delay!r:.20}")
def test_a_delay_without_sense_is_refused(queue: Queue, holder: Holder, delay: Any) -> None:
    assert refused(queue, holder.enqueue(delay=delay))[::2] == (422, ["delay"])


@pytest.mark.parametrize("run_at", INSTANTS, ids=lambda run_at: f"{run_at!a:.30}")
def test_a_time_without_sense_is_refused(queue: Queue, holder: Holder, run_at: Any) -> None:
    assert refused(queue, holder.enqueue(run_at=run_at))[::2] == (422, ["run_at"])


def test_a_delay_and_a_time_are_one_too_many(queue: Queue, holder: Holder) -> None:
    answer = holder.enqueue(delay=1, run_at="2030-06-01T12:00:00Z")

    assert refused(queue, answer)[:2] == (422, "invalid-delay")


PAYLOADS: dict[str, Any] = {
    "another type": {"n": "1"},
    "a bool for a number": {"n": True},
    "a fraction for a number": {"n": 1.5},
    "an argument that is not there": {"n": 1, "m": 2},
    "a text that is no time": {"when": "soon"},
    "a lone surrogate": {"text": "\ud800"},
    "a dunder": {"__class__": 1},
    "nested too deeply": {"text": json.loads("[" * 101 + "]" * 101)},
}


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_a_payload_is_held_to_the_signature(queue: Queue, holder: Holder, payload: Any) -> None:
    assert refused(queue, holder.enqueue(payload=payload)) == (422, "invalid-payload", ["payload"])


def test_a_key_may_use_the_handlers_and_lanes_it_was_given_and_no_other(queue: Queue) -> None:
    narrow = Holder("narrow", lanes=["low"], handlers=["shop.other"])
    with_job = Holder("with-job", lanes=["low"], handlers=[JOB])

    assert refused(queue, narrow.enqueue(lane="low"))[1] == "unknown-job"
    assert refused(queue, with_job.enqueue(lane="high"))[1] == "invalid-lane"
    assert refused(queue, with_job.enqueue())[1] == "invalid-lane"
    assert with_job.enqueue(lane="low").status_code == 202


# ── size, type, length ──


def body_of(size: int) -> bytes:
    """Return a good body of this many bytes."""
    empty = json.dumps({"job": JOB, "payload": {"text": ""}}).encode()
    return empty.replace(b'""', b'"' + b"x" * (size - len(empty)) + b'"')


def limit() -> int:
    return largest_bytes(RequestFactory().post("/api/jobs"))


def test_a_payload_of_the_largest_size_comes_in_and_one_byte_more_does_not(queue: Queue, holder: Holder) -> None:
    most = wiring.settings().max_payload_bytes - len('{"text":""}')

    assert refused(queue, holder.enqueue(payload={"text": "x" * (most + 1)})) == (413, "too-large", ["payload"])
    assert holder.enqueue(payload={"text": "x" * most}).status_code == 202


def test_a_body_beyond_its_limit_is_refused_by_its_announced_length(queue: Queue, holder: Holder) -> None:
    assert refused(queue, holder.send(body_of(limit() + 1)))[:2] == (413, "too-large")
    assert refused(queue, holder.send(body_of(limit())))[::2] == (413, ["payload"])


LENGTHS = {
    "large": str(10**8), "of 20 digits": str(2**64), "of 400 digits": "9" * 400,
    "with zeros before it": "0" * 19 + "2000000", "without end": "0" * 19 + "1" + "0" * 5000,
    "of zeros without end": "0" * 5000 + "5",
}  # fmt: skip


@pytest.mark.parametrize("told", LENGTHS.values(), ids=LENGTHS)
def test_an_announced_length_beyond_the_limit_is_refused_before_a_byte_is_read(
    queue: Queue, holder: Holder, told: str
) -> None:
    answer = holder.client.generic(
        "POST", "/api/jobs", b"", headers=holder.headers, CONTENT_TYPE="application/json", CONTENT_LENGTH=told
    )

    assert refused(queue, answer)[:2] == (413, "too-large")


@pytest.mark.parametrize("told", ["-1", "1.5", "0x10", "0", "0" * 30, "\u0663", " ", "1,2"])
def test_a_length_that_is_none_is_refused(queue: Queue, holder: Holder, told: str) -> None:
    answer = holder.client.generic(
        "POST", "/api/jobs", GOOD, "application/json", headers=holder.headers, CONTENT_LENGTH=told
    )

    assert refused(queue, answer)[0] in (400, 411)


def test_a_length_that_is_too_short_leaves_json_that_is_cut(queue: Queue, holder: Holder) -> None:
    answer = holder.client.generic(
        "POST", "/api/jobs", GOOD, "application/json", headers=holder.headers, CONTENT_LENGTH="9"
    )

    assert refused(queue, answer)[0] == 400


def test_a_body_in_chunks_or_without_a_length_is_refused(queue: Queue, holder: Holder) -> None:
    for extra in ({"HTTP_TRANSFER_ENCODING": "chunked"}, {"CONTENT_LENGTH": ""}):
        answer = holder.client.generic("POST", "/api/jobs", GOOD, "application/json", headers=holder.headers, **extra)

        assert refused(queue, answer)[:2] == (411, "length-required")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "identity, gzip", "x"])
def test_what_is_compressed_is_never_unpacked(queue: Queue, holder: Holder, encoding: str) -> None:
    answer = holder.send(GOOD, Content_Encoding=encoding)

    assert refused(queue, answer)[:2] == (415, "unsupported-media-type")


@pytest.mark.parametrize(
    "content_type",
    [
        "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml",
        "application/json; charset=utf-16", "application/json; charset=latin-1", "text/json", "application/jsonp",
    ],
)  # fmt: skip
def test_what_is_not_told_to_be_json_is_not_read(queue: Queue, holder: Holder, content_type: str) -> None:
    answer = holder.send(GOOD, Content_Type=content_type)

    assert refused(queue, answer)[:2] == (415, "unsupported-media-type")


@pytest.mark.parametrize("content_type", ["application/json; charset=UTF-8", "application/json;charset=utf8"])
def test_json_may_say_that_it_is_utf_8(holder: Holder, content_type: str) -> None:
    assert holder.send(GOOD, Content_Type=content_type).status_code == 202


@override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=20)
def test_a_lower_limit_of_the_project_is_a_refusal_too(queue: Queue, holder: Holder) -> None:
    assert refused(queue, holder.send(GOOD))[:2] == (413, "too-large")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "DELETE"])
def test_other_methods_change_nothing(queue: Queue, holder: Holder, method: str) -> None:
    answer = holder.client.generic(method, "/api/jobs", GOOD, "application/json", headers=holder.headers)

    assert answer.status_code == 405
    assert queue.everything() == {}


# ── byte for byte ──

TEXTS = [
    '{"n":9007199254740993}', '{"n":-18446744073709551616}', '{"text":"\\u0000"}', '{"text":"a/b \\u2028 \U0001f600"}',
    '{"text":"\\"\\\\"}', "{}", '{"text":""}',
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_the_handler_sees_the_value_that_was_sent(queue: Queue, holder: Holder, text: str) -> None:
    job_id = holder.send(f'{{"job":"{JOB}","payload":{text}}}'.encode()).json()["id"]

    assert queue.inspector.job(job_id).job.payload == json.loads(text)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "payload",
    [
        {"text": "http://127.0.0.1:1/x"}, {"text": "!!python/object/apply:os.system ['false']"},
        {"text": '{"py/object": "os.system"}'}, {"text": "\u0080\u0003cposix\nsystem\n"},
    ],
)  # fmt: skip
def test_a_text_that_looks_like_an_order_is_a_text(queue: Queue, holder: Holder, payload: dict[str, str]) -> None:
    job_id = holder.enqueue(payload=payload).json()["id"]

    assert queue.inspector.job(job_id).job.payload == payload  # type: ignore[union-attr]
