"""Which values travel as JSON, and as what they arrive."""

import dataclasses
import enum
import json
import math
import uuid
from collections import OrderedDict, namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.utils.functional import lazystr
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from priqueue.exceptions import InvalidPayload, PayloadTooLarge
from priqueue.handlers import Handler, loads, loads_strict


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1


class Word(enum.StrEnum):
    YES = "yes"


@dataclasses.dataclass
class Line:
    sku: str
    price: Decimal
    at: datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    number: int


class Order(BaseModel):
    lines: list[Line]
    placed: datetime
    note: Any = None


class SubOrder(Order):
    extra: int = 0


class Aliased(BaseModel):
    number: int = Field(alias="no")


Point = namedtuple("Point", "x y")


def handler_of(annotation):
    def take(x):
        return x

    take.__annotations__["x"] = annotation
    return Handler(take, name="take")


def travelled(annotation, value):
    """Return the text that travels and the argument that arrives."""
    handler = handler_of(annotation)
    text = handler.accept({"x": value}, 1_000_000)
    return text, handler.arguments(text)["x"]


def anything(x):
    return x


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


LONDON = ZoneInfo("Europe/London")
FOLD = datetime(2025, 10, 26, 1, 30, tzinfo=LONDON, fold=1)


def contains_itself(kind):
    value = kind()
    value.append(value)
    value.append(value)
    return value


def object_in_itself():
    line = Line("a", Decimal(1))
    line.sku = [line, line]
    return line


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (math.nan, "x: a number that JSON cannot hold"),
        ([1, {"y": math.inf}], "x.1.y: a number that JSON cannot hold"),
        ({"y": -math.inf}, "x.y: a number that JSON cannot hold"),
        (1e400, "x: a number that JSON cannot hold"),
        (10**5_000, "x: a number that JSON cannot hold"),
        ({"y": [1, {2: 3}]}, "x.y.1.2: a key that is no text"),
        ({True: 1}, "x.True: a key that is no text"),
        ({("a", "b"): 1}, r"x\.\('a', 'b'\): a key that is no text"),
        ({"a": "\udfff"}, "x.a: holds a lone surrogate"),
        ({"\udfff": 1}, r"x.'\\udfff' \(a key\): holds a lone surrogate"),
        (contains_itself(list), "x.0: contains itself"),
        (object_in_itself(), "x.sku.0: contains itself"),
        (nested(101), "nested deeper than 100"),
        (nested(100_000), "nested deeper than 100"),
        (b"bytes", "x: bytes cannot travel as JSON; pass text, for example base64"),
        (bytearray(b"bytes"), "x: bytearray cannot travel"),
        ((1, 2), "x: a tuple would arrive as list"),
        ([1, (2, 3)], "x.1: a tuple would arrive as list"),
        ({1, 2}, "x: a set would arrive as list"),
        ({"y": frozenset()}, "x.y: a frozenset would arrive as list"),
        (datetime(2026, 1, 1, tzinfo=UTC), "x: a datetime would arrive as str"),
        (date(2026, 1, 1), "x: a date would arrive as str"),
        (timedelta(1), "x: a timedelta would arrive as str"),
        ({"price": Decimal("1.10")}, "x.price: a Decimal would arrive as str"),
        (uuid.uuid4(), "x: a UUID would arrive as str"),
        (Path("/tmp"), "x: a PosixPath would arrive as str"),
        (Colour.RED, "x: a Colour would arrive as str"),
        (Line("a", Decimal(1)), "x: a Line would arrive as dict"),
        (Order(lines=[], placed=datetime(2026, 1, 1, tzinfo=UTC)), "x: a Order would arrive as dict"),
        (User(pk=7), r"x: a model instance \(User\); pass its pk"),
        ([User(pk=7)], r"x.0: a model instance \(User\); pass its pk"),
        (gettext_lazy("yes"), r"x: a lazy string or an object that renders itself; pass str\(value\)"),
        (lazystr("yes"), r"x: a lazy string or an object that renders itself; pass str\(value\)"),
        (object(), "x: builtins.object cannot travel as JSON"),
        (Fraction(1, 3), "x: fractions.Fraction cannot travel as JSON"),
        (1j, "x: builtins.complex cannot travel as JSON"),
        (int, "x: builtins.type cannot travel as JSON"),
        (Line, "x: builtins.type cannot travel as JSON"),
        (range(3), "x: builtins.range cannot travel as JSON"),
        (..., "x: builtins.ellipsis cannot travel as JSON"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value[:40],
)
def test_without_an_annotation_only_plain_json_is_accepted(value, reason):
    with pytest.raises(InvalidPayload, match=reason):
        Handler(anything).accept({"x": value})


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -1,
        2**53 + 1,
        2**63,
        -(2**64),
        10**4_000,
        0.1,
        1.0,
        -0.0,
        5e-324,
        1.7976931348623157e308,
        "",
        "\x00",
        "\u2028",
        "🐍",
        "/</script>",
        "NaN",
        [],
        {},
        [[]],
        {"": {}},
        {"1": 1, "01": 2},
        [None, {"a": [{}]}],
        dict.fromkeys(map(str, range(10_000))),
        nested(99),
    ],
    ids=lambda value: f"{value!r:.30}",
)
def test_plain_json_arrives_as_it_was(value):
    text, arrived = travelled(Any, value)

    assert repr(arrived) == repr(value)
    assert text == '{"x":' + json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "}"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_any_json_arrives_exactly_and_is_never_changed_by_a_second_trip(payload):
    handler = handler_of(dict)
    text = handler.accept({"x": payload})

    arrived = handler.arguments(text)

    assert repr(arrived) == repr({"x": payload})
    assert handler.accept(arrived) == text
    assert loads_strict(text) == loads(text) == json.loads(text)


ROUND_TRIPS = [
    (datetime, datetime(2026, 1, 1, 12, 30, 0, 123456, tzinfo=UTC), '"2026-01-01T12:30:00.123456+00:00"'),
    (
        datetime,
        datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=45))),
        '"2026-01-01T00:00:00+05:45"',
    ),
    (datetime, datetime(2026, 1, 1), '"2026-01-01T00:00:00"'),
    (date, date(9999, 12, 31), '"9999-12-31"'),
    (time, time(1, 2, 3, 4), '"01:02:03.000004"'),
    (timedelta, timedelta(days=1, microseconds=1), '"P1DT0.000001S"'),
    (Decimal, Decimal("1.10"), '"1.10"'),
    (
        Decimal,
        Decimal("0.1234567890123456789012345678901234567890"),
        '"0.1234567890123456789012345678901234567890"',
    ),
    (Decimal, Decimal("1E+2"), '"1E+2"'),
    (uuid.UUID, uuid.UUID(int=7), '"00000000-0000-0000-0000-000000000007"'),
    (Path, Path("/tmp/ü"), '"/tmp/ü"'),
    (Colour, Colour.BLUE, '"blue"'),
    (Size, Size.SMALL, "1"),
    (Word, Word.YES, '"yes"'),
    (list[datetime], [datetime(2026, 1, 1, tzinfo=UTC)], '["2026-01-01T00:00:00+00:00"]'),
    (tuple[int, str], (1, "a"), '[1,"a"]'),
    (tuple[float, ...], (1, 2.5), "[1,2.5]"),
    (set[int], {7}, "[7]"),
    (frozenset[uuid.UUID], frozenset({uuid.UUID(int=7)}), '["00000000-0000-0000-0000-000000000007"]'),
    (dict[str, Decimal], {"a": Decimal("1.0")}, '{"a":"1.0"}'),
    (Line, Line("a", Decimal("1.10")), '{"sku":"a","price":"1.10","at":null}'),
    (Slotted, Slotted(7), '{"number":7}'),
    (Aliased, Aliased(no=7), '{"no":7}'),
    (
        Order,
        Order(lines=[Line("a", Decimal("2.00"))], placed=datetime(2026, 1, 1, tzinfo=UTC)),
        '{"lines":[{"sku":"a","price":"2.00","at":null}],"placed":"2026-01-01T00:00:00+00:00","note":null}',
    ),
    (Decimal | None, Decimal("1.5"), '"1.5"'),
    (Literal["a", "b"], "a", '"a"'),
    (Annotated[int, Field(gt=3)], 4, "4"),
    (float, 0.1, "0.1"),
]


@pytest.mark.parametrize(("annotation", "value", "json_text"), ROUND_TRIPS)
def test_a_value_of_the_annotated_type_travels_as_json_and_arrives_equal(annotation, value, json_text):
    text, arrived = travelled(annotation, value)

    assert text == f'{{"x":{json_text}}}'
    assert (arrived, type(arrived)) == (value, type(value))
    assert str(arrived) == str(value) or isinstance(value, tuple | list | BaseModel)


@pytest.mark.parametrize(("annotation", "value", "json_text"), ROUND_TRIPS)
def test_the_same_payload_as_json_from_outside_is_accepted_and_arrives_the_same(annotation, value, json_text):
    text, arrived = travelled(annotation, loads_strict(json_text))

    assert text == f'{{"x":{json_text}}}'
    assert (arrived, type(arrived)) == (value, type(value))


@pytest.mark.parametrize(
    ("annotation", "strategy"),
    [
        (
            datetime,
            st.datetimes(timezones=st.just(UTC) | st.just(timezone(timedelta(hours=-3, minutes=-30)))),
        ),
        (datetime, st.datetimes()),
        (date, st.dates()),
        (time, st.times()),
        (timedelta, st.timedeltas()),
        (Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
        (uuid.UUID, st.uuids()),
        (float, st.floats(allow_nan=False, allow_infinity=False)),
        (int, st.integers()),
        (str, st.text()),
        (tuple[int, ...], st.lists(st.integers()).map(tuple)),
        (set[str], st.sets(st.text())),
    ],
)
def test_every_value_of_a_type_arrives_exactly(annotation, strategy):
    handler = handler_of(annotation)

    @given(strategy)
    def arrives(value):
        arrived = handler.arguments(handler.accept({"x": value}))["x"]
        assert (arrived, type(arrived)) == (value, type(value))
        assert isinstance(value, set) or str(arrived) == str(value)

    arrives()


@pytest.mark.parametrize("value", [FOLD, Line("a", Decimal(1), FOLD)], ids=["datetime", "dataclass"])
def test_a_datetime_of_a_repeated_hour_arrives_as_the_same_instant(value):
    arrived = travelled(type(value), value)[1]

    at = arrived.at if isinstance(arrived, Line) else arrived
    assert at.isoformat() == "2025-10-26T01:30:00+00:00"


def test_a_set_of_datetimes_of_a_repeated_hour_is_accepted():
    assert {at.isoformat() for at in travelled(set[datetime], {FOLD})[1]} == {FOLD.isoformat()}


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (str, datetime(2026, 1, 1, tzinfo=UTC)),
        (str, Decimal("1.1")),
        (str, uuid.UUID(int=7)),
        (str, Colour.RED),
        (str, b"bytes"),
        (bytes, b"bytes"),
        (int, "5"),
        (int, 5.0),
        (int, True),
        (int, Decimal(5)),
        (float, "5"),
        (float, True),
        (float, Decimal("5.5")),
        (float, math.nan),
        (bool, 1),
        (Decimal, Decimal("NaN")),
        (Decimal, Decimal("Infinity")),
        (Decimal, "NaN"),
        (datetime, 5),
        (datetime, date(2026, 1, 1)),
        (datetime, "yesterday"),
        (datetime, datetime(1800, 1, 1, tzinfo=LONDON)),
        (date, datetime(2026, 1, 1, tzinfo=UTC)),
        (time, time(1, 2, tzinfo=LONDON)),
        (uuid.UUID, "7"),
        (Colour, "green"),
        (Colour, Word.YES),
        (list[int], (1, 2)),
        (tuple[int, ...], {1, 2}),
        (set[int], frozenset({1})),
        (set, {datetime(2026, 1, 1, tzinfo=UTC)}),
        (dict[str, Any], {"a": {"b": Decimal(1)}}),
        (Order, SubOrder(lines=[], placed=datetime(2026, 1, 1, tzinfo=UTC))),
        (Order, Order(lines=[], placed=datetime(2026, 1, 1, tzinfo=UTC), note=(1, 2))),
        (Order, Order(lines=[], placed=datetime(2026, 1, 1, tzinfo=UTC), note=math.nan)),
        (Line, {"sku": "a", "price": Decimal(1)}),
        (Line, {"sku": "a"}),
    ],
    ids=repr,
)
def test_what_would_arrive_as_something_else_is_refused(annotation, value):
    with pytest.raises(InvalidPayload, match=r"^take: x"):
        handler_of(annotation).accept({"x": value})


@pytest.mark.parametrize(
    ("annotation", "value", "arrived"),
    [
        (float, 1, 1.0),
        (str, mark_safe("<b>"), "<b>"),
        (Any, mark_safe("<b>"), "<b>"),
        (Any, [mark_safe("<b>")], ["<b>"]),
        (str, Word.YES, "yes"),
        (int, Size.SMALL, 1),
        (dict, OrderedDict(a=1), {"a": 1}),
        (tuple[int, int], Point(1, 2), (1, 2)),
        (set[int], [1, 1], {1}),
        (bytes, "text", b"text"),
    ],
)
def test_a_value_becomes_the_plain_one_that_its_annotation_says(annotation, value, arrived):
    result = travelled(annotation, value)[1]

    assert (result, type(result)) == (arrived, type(arrived))


@pytest.mark.parametrize(
    "value",
    [
        "x" * 1_000,
        [0] * 1_000,
        {str(n): n for n in range(500)},
        [[[0] * 40] * 40] * 40,
        tuple(range(1_000)),
        ((0,) * 40,) * 40,
    ],
    ids=["text", "list", "dict", "shared lists", "tuple", "shared tuples"],
)
def test_a_payload_over_the_limit_is_refused_whatever_it_is_made_of(value):
    with pytest.raises(PayloadTooLarge):
        Handler(anything).accept({"x": value}, 999)


def test_shared_values_that_unfold_to_billions_are_refused_at_once():
    value = [0]
    for _ in range(50):
        value = [value] * 10

    with pytest.raises(PayloadTooLarge):
        Handler(anything).accept({"x": value}, 65_536)


def test_floats_are_measured_in_their_shortest_text():
    handler, payload = Handler(anything), {"x": [1e-05] * 10_000}

    text = handler.accept(payload, 65_536)

    assert handler.arguments(text) == payload
    assert handler.arguments(handler.accept(payload, 1_000_000)) == payload
