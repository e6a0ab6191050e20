"""Rows E1 and E2: hostile JSON reaches the handler byte for byte, on every path; what is no JSON is refused at once."""

import datetime
import decimal
import enum
import json
import math
import socket
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils.functional import lazystr
from django.utils.safestring import mark_safe
from redis import Redis

import priqueue
from priqueue import orders, wiring
from priqueue.child import decode_claim, encode_claim
from priqueue.exceptions import InvalidPayload
from priqueue.handlers import Handler, loads_strict
from priqueue.jobs import Claim, Job
from tests.faults.endings.jobs import echo
from tests.support.processes import Live
from tests.support.queues import FAILURE, Queue, test_settings


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


HOSTILE = {
    "2^53+1": 2**53 + 1, "2^63": 2**63, "-2^64": -(2**64), "40 digits": 10**40, "0.1": 0.1, "1.0": 1.0, "-0.0": -0.0,
    "smallest": 5e-324, "largest": 1.7976931348623157e308, "[]": [], "{}": {}, "nested empty": [{}, [], [[]], {"": {}}],
    "empty": "", "NUL": "\x00", "control": "".join(map(chr, range(32))), "DEL": "\x7f\x80\x9f", "emoji": "👩‍👩‍👧‍👦🇦🇹",
    "slash": "/\\\"'", "separators": "\u2028\u2029", "bidi": "\u202e\ufeff", "noncharacter": "\uffff\U0010ffff",
    "number as key": {"1": 1, "01": 2}, "empty key": {"": ""}, "our own names": {"v": 1, "payload": {"payload": "}"}},
    "a head": ',"payload":{"v":2}', "Lua": "]]..redis.call('FLUSHALL')--",
    "5,000 keys": {str(n): n for n in range(5_000)},
    "depth 90": nested(90), "order": {"b": 1, "a": 2, "B": 3}, "true": [True, False, None], "long": "ä" * 30_000,
    "like a lease": "worker token 1 lane 1 0", "newlines": "a\r\nb\n",
}  # fmt: skip
REFUSED = {
    "1e400": lambda: loads_strict("1e400"),
    "NaN": lambda: math.nan,
    "infinity": lambda: -math.inf,
    "lone surrogate": lambda: "\ud800",
    "lone surrogate in a key": lambda: {"\udc00": 1},
    "depth 101": lambda: nested(101),
    "depth 1,001": lambda: nested(1_001),
    "depth 100,000": lambda: nested(100_000),
    "depth 100,000 as text": lambda: loads_strict("[" * 100_000),
    "keys twice": lambda: loads_strict('{"a": 1, "a": 2}'),
    "too long": lambda: "x" * 65_536,
    "a circle": lambda: (circle := [], circle.append(circle)) and circle,
}


@pytest.fixture
def queue(client: Redis) -> Iterator[Queue]:
    """A queue on a real server that ``priqueue.enqueue`` uses here."""
    queue = Queue(client, test_settings(MAX_CRASHES=3))
    with wiring.override(queue.coordinator):
        yield queue


def handed_over(values: Any) -> Any:
    """Return values as they arrive in a child."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        orders.Orders(ours, "orders").send(("run", values))
        ((_, arrived),) = orders.Inbox(theirs).read() or ()
    return arrived


class Life:
    """A job's whole life: every transition that can carry a payload, with what was seen at each claim."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.seen: list[str] = []
        queue.register()

    def lead(self) -> None:
        queue, coordinator = self.queue, self.queue.coordinator
        self.promoted()
        coordinator.retry(self.claimed(), FAILURE, delay_s=1)
        self.promoted()
        coordinator.release(self.claimed(), reason="shut down")
        self.claimed()
        queue.lapse()
        coordinator.crash(self.claimed(), FAILURE)
        claim = self.claimed()
        coordinator.bury(claim, FAILURE)
        coordinator.requeue([claim.job.id], caller="user:1", reason="once more")
        claim = self.claimed()
        coordinator.release(claim, delay_s=1)
        self.promoted()
        coordinator.ack(self.claimed())

    def promoted(self) -> None:
        self.queue.clock.advance(1)
        assert self.queue.coordinator.promote() == 1

    def claimed(self) -> Claim:
        (claim,) = self.queue.coordinator.pull("worker")
        in_the_child = decode_claim(handed_over(encode_claim(claim)))
        self.seen += [claim.job.payload_text(), in_the_child.job.payload_text()]
        return claim


@pytest.mark.parametrize("name", HOSTILE)
def test_e1_hostile_json_is_the_same_bytes_at_every_claim_of_a_whole_life(queue: Queue, name: str) -> None:
    payload = {"value": HOSTILE[name]}
    accepted = echo.accept(payload)
    priqueue.enqueue(echo, payload, delay=1, on_commit=False)
    life = Life(queue)

    life.lead()

    assert set(life.seen) == {accepted}
    assert len(life.seen) == 14
    arrived = echo.arguments(accepted)["value"]
    assert (arrived, json.dumps(arrived)) == (HOSTILE[name], json.dumps(HOSTILE[name]))
    assert queue.places() == {}


@pytest.mark.parametrize("name", REFUSED)
def test_e1_what_cannot_travel_is_refused_before_anything_is_written(queue: Queue, name: str) -> None:
    before = queue.everything()

    with pytest.raises(InvalidPayload):
        priqueue.enqueue(echo, {"value": REFUSED[name]()}, on_commit=False)

    assert queue.everything() == before


def test_e1_through_delay_failure_and_a_lost_child_a_handler_sees_what_was_accepted(
    live: Live, figure: Callable[..., None]
) -> None:
    live.environment["DJANGO_SETTINGS_MODULE"] = "tests.faults.endings.settings"
    values = {name: value for name, value in HOSTILE.items() if name not in ("long", "5,000 keys")}
    jobs = {}
    for name, value in values.items():
        payload = {"value": value, "failures": 1}
        text = echo.accept(payload)
        jobs[name] = Job(name=echo.name, payload=payload, payload_json=text, delay_ms=100, max_attempts=2, lane="high")
    live.coordinator.enqueue_many(list(jobs.values()))
    live.start("runticker")
    live.start_worker("--concurrency", "4")

    live.until(lambda: len(live.history("end")) == len(jobs), 40)

    seen = {
        name: [line["value"] for line in live.history("start") if line["id"] == job.id] for name, job in jobs.items()
    }
    altered = [name for name, found in seen.items() if json.dumps(found) != json.dumps([values[name]] * 2)]
    figure(
        "E1", f"payloads altered, of {len(HOSTILE)} and {len(jobs)} through children", len(altered), "= 0", not altered
    )


def test_e2_the_table_of_outcomes(queue: Queue, figure: Callable[..., None]) -> None:
    stored = 0
    for value in NO_JSON.values():
        with pytest.raises(InvalidPayload):
            priqueue.enqueue(echo, {"value": value}, on_commit=False)
        stored += len(queue.everything())

    figure("E2", f"stored of {len(NO_JSON)} values that are no JSON", stored, "= 0", stored == 0)


class Colour(enum.Enum):
    RED = "red"


NO_JSON: dict[str, Any] = {
    "set": {1}, "frozenset": frozenset(), "bytes": b"x", "bytearray": bytearray(b"x"), "complex": 1j, "range": range(2),
    "object": object(), "function": len, "class": dict, "generator": (n for n in "ab"), "model": User(),
    "key 1": {1: 2}, "key None": {None: 1}, "key True": {True: 1}, "key as tuple": {(1, 2): 3},
    "not a number": decimal.Decimal("NaN"), "Ellipsis": ...,
}  # fmt: skip
CONVERTED: dict[str, tuple[Any, Any]] = {
    "datetime": (datetime.datetime(2030, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC), datetime.datetime),
    "date": (datetime.date(2030, 1, 2), datetime.date),
    "Decimal": (decimal.Decimal("0.10"), decimal.Decimal),
    "UUID": (uuid.UUID(int=7), uuid.UUID),
    "Enum": (Colour.RED, Colour),
}


@pytest.mark.parametrize("name", NO_JSON)
def test_e2_what_is_no_json_is_refused_and_never_turned_into_text(queue: Queue, name: str) -> None:
    before = queue.everything()

    with pytest.raises(InvalidPayload):
        priqueue.enqueue(echo, {"value": NO_JSON[name]}, on_commit=False)

    assert queue.everything() == before


@pytest.mark.parametrize("name", CONVERTED)
def test_e2_a_rich_type_arrives_as_the_type_that_the_handler_declares(name: str) -> None:
    value, kind = CONVERTED[name]

    def handler(value: kind) -> None:
        pass

    declared = Handler(handler, name=name)

    arrived = declared.arguments(declared.accept({"value": value}))["value"]

    assert (arrived, type(arrived)) == (value, type(value))


@pytest.mark.parametrize("text", [mark_safe("<b>"), lazystr("<b>")], ids=["safe", "lazy"])
def test_e2_text_that_is_more_than_text_arrives_as_plain_text_or_not_at_all(queue: Queue, text: Any) -> None:
    try:
        accepted = echo.accept({"value": text})
    except InvalidPayload:
        assert queue.everything() == {}
    else:
        assert type(echo.arguments(accepted)["value"]) is str
