"""What fits a handler's signature, what does not, and what is JSON at all."""

import dataclasses
from collections import OrderedDict
from types import MappingProxyType

import pytest
from django.contrib.auth.models import User

from priqueue.exceptions import InvalidPayload, PayloadTooLarge
from priqueue.handlers import Handler, loads_strict


def handler_of(annotation):
    def take(x):
        return x

    take.__annotations__["x"] = annotation
    return Handler(take, name="take")


def order(order_id: int, email: str, copies: int = 1):
    return order_id, email, copies


def anything(x):
    return x


def keywords(order_id: int, **rest):
    return rest


def counts(**numbers: int):
    return numbers


def forward(x: "Later"):
    return x


@dataclasses.dataclass
class Later:
    number: int


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"order_id": 7, "email": "a@b.c"}, '{"order_id":7,"email":"a@b.c"}'),
        ({"email": "ü 🐍 /", "order_id": 2**64}, '{"email":"ü 🐍 /","order_id":18446744073709551616}'),
        ({"order_id": -0, "email": "", "copies": 2}, '{"order_id":0,"email":"","copies":2}'),
        (MappingProxyType({"order_id": 7, "email": "a"}), '{"order_id":7,"email":"a"}'),
        (OrderedDict(email="a", order_id=7), '{"email":"a","order_id":7}'),
    ],
)
def test_the_payload_travels_as_compact_json_in_its_own_order_without_the_defaults(payload, text):
    handler = Handler(order)

    assert handler.accept(payload) == text
    assert handler.arguments(text) == dict(payload)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({"order_id": "5", "email": "a"}, "order_id: Input should be a valid integer"),
        ({"order_id": True, "email": "a"}, "order_id: Input should be a valid integer"),
        ({"order_id": 5.0, "email": "a"}, "order_id: Input should be a valid integer"),
        ({"order_id": None, "email": "a"}, "order_id: Input should be a valid integer"),
        ({"order_id": 5, "email": 5}, "email: Input should be a valid string"),
        ({"order_id": 5}, "email is missing"),
        ({}, "order_id is missing; email is missing"),
        ({"order_id": 5, "email": "a", "mail": "b"}, "mail is no argument of this handler"),
        ({"order_id": 5, "email": "a", "": "b"}, "the payload is no argument of this handler"),
        ({"order_id": 5, "email": "a", 1: "b"}, "1: a key that is no text"),
        ({"order_id": 5, "email": "a", None: "b"}, "None: a key that is no text"),
        ({"order_id": 5, "email": "\ud800"}, "email: holds a lone surrogate, which is no text"),
        ([("order_id", 5)], "the payload is a list; use a dict of arguments"),
        (None, "the payload is a NoneType; use a dict of arguments"),
        ("{}", "the payload is a str; use a dict of arguments"),
    ],
)
def test_a_payload_that_does_not_fit_is_refused_naming_the_argument_and_why(payload, reason):
    with pytest.raises(InvalidPayload) as refusal:
        Handler(order, name="shop.order").accept(payload)

    assert str(refusal.value) == f"shop.order: {reason}"


def test_of_many_faults_the_first_five_are_shown():
    with pytest.raises(InvalidPayload, match=r"; and 295 more$"):
        handler_of(list[int]).accept({"x": ["a"] * 300})


def test_what_a_handler_does_to_its_arguments_does_not_reach_the_next_attempt():
    handler = Handler(anything)
    text = handler.accept({"x": {"items": [1]}})

    handler.arguments(text)["x"]["items"].append(2)

    assert handler.arguments(text) == {"x": {"items": [1]}}


def test_keyword_arguments_take_any_json_under_any_name():
    handler = Handler(keywords)
    payload = {"order_id": 7, "": 1, "1": [2], "lane": "x", "self": None}

    assert handler.arguments(handler.accept(payload)) == payload


def test_annotated_keyword_arguments_are_held_to_their_type():
    assert Handler(counts).accept({"a": 1}) == '{"a":1}'
    with pytest.raises(InvalidPayload, match="a: Input should be a valid integer"):
        Handler(counts).accept({"a": "1"})


def test_forward_references_are_resolved_at_first_use():
    handler = Handler(forward)

    assert handler.arguments(handler.accept({"x": Later(7)})) == {"x": Later(7)}


@pytest.mark.parametrize("annotation", ["Nowhere", object(), User])
def test_an_annotation_that_cannot_be_used_is_named(annotation):
    with pytest.raises(InvalidPayload, match=r"^take: the handler's annotations cannot be used: "):
        handler_of(annotation).accept({"x": 1})


def test_a_payload_at_the_limit_is_accepted_and_one_byte_more_is_refused():
    handler = Handler(anything, name="take")
    size = len('{"x":"üü"}'.encode())

    assert handler.accept({"x": "üü"}, size) == '{"x":"üü"}'
    with pytest.raises(PayloadTooLarge) as refusal:
        handler.accept({"x": "üüa"}, size)
    assert str(refusal.value) == "take: the payload has 13 bytes of JSON, the limit is 12"


@pytest.mark.parametrize("text", ['{"x":"5"}', "{}", '{"x":5,"y":6}', "[]", "", '{"x":5', '{"x":5}{', "null"])
def test_a_text_that_no_longer_fits_the_signature_is_refused(text):
    handler = handler_of(int)
    with pytest.raises(InvalidPayload, match=r"^take: "):
        handler.arguments(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"lane":1,"lane":2}', "'lane' is given twice"),
        ('{"a":{"b":1,"b":1}}', "'b' is given twice"),
        ("[NaN]", "NaN is not JSON"),
        ("-Infinity", "-Infinity is not JSON"),
        ("[1e400]", "1e400 is beyond the largest float"),
        ("-1e400", "-1e400 is beyond the largest float"),
        ("{} junk", "not JSON: Extra data"),
        ("{}{}", "not JSON: Extra data"),
        ("", "not JSON: Expecting value"),
        ("{'a':1}", "not JSON: Expecting property name"),
        ('"\n"', "not JSON: Invalid control character"),
        ("\ufeff{}", "not JSON: "),
        ("[" * 100_000, "not JSON that can be read: nested too deeply"),
        ("1" * 5_000, "not JSON: Exceeds the limit"),
        (b"\xff\xfe", "not JSON: 'utf-8' codec"),
        ("{}".encode("utf-16"), "not JSON: 'utf-8' codec"),
        (b"\xef\xbb\xbf{}", "not JSON: "),
    ],
    ids=lambda value: f"{value!r:.25}",
)
def test_json_from_outside_that_says_no_one_thing_is_refused(text, reason):
    with pytest.raises(InvalidPayload) as refusal:
        loads_strict(text)

    assert str(refusal.value).startswith(reason)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a":"\xc3\xbc"}', {"a": "ü"}),
        (" [1, 2.5, -0.0] ", [1, 2.5, -0.0]),
        ("18446744073709551616", 2**64),
    ],
)
def test_json_from_outside_is_read_exactly(text, value):
    assert repr(loads_strict(text)) == repr(value)
