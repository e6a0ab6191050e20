"""Declaring, registering and binding handlers."""

import asyncio
import copy
import functools
import math
import pickle
from datetime import timedelta

import pytest

from priqueue import handlers
from priqueue.exceptions import InvalidCaller, InvalidLane, PriqueueError, UnknownHandler
from priqueue.handlers import Bound, Handler, Registry, job


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    fresh = Registry()
    monkeypatch.setattr(handlers, "registry", fresh)
    return fresh


@pytest.fixture
def enqueued(monkeypatch):
    """Bind what only notes how it was called."""
    calls = []

    def note(handler, payload, **options):
        calls.append((handler, payload, options))
        return len(calls)

    monkeypatch.setattr(handlers, "_enqueue", None)
    handlers.bind(note)
    return calls


def add(left: int, right: int = 1) -> int:
    """Add two numbers."""
    return left + right


async def add_later(left: int) -> int:
    return left + 1


def generate():
    yield 1


async def generate_later():
    yield 1


class Shop:
    def method(self, order_id): ...

    @classmethod
    def of_class(cls, order_id): ...

    @staticmethod
    def static(order_id): ...

    def __call__(self, order_id): ...


def positional(order_id, /): ...


def starred(*order_ids): ...


async def wait_later(attempt, exception): ...


@job
def plain(order_id: int) -> int:
    """Do nothing."""
    return order_id


PLACE = "tests.unit.test_handlers"


def options_of(handler):
    names = ("name", "lane", "max_attempts", "timeout", "backoff", "aliases", "api")
    return tuple(getattr(handler, name) for name in names)


def test_a_bare_declaration_leaves_everything_to_the_settings(registry):
    handler = job(add)

    assert options_of(handler) == (f"{PLACE}.add", None, None, None, None, (), False)
    assert handler.function is add
    assert registry.get(f"{PLACE}.add") is handler


def test_a_declaration_with_options_keeps_them(registry):
    handler = job(
        name="add",
        lane="high",
        max_attempts=3,
        timeout=30,
        backoff=[1, 10],
        aliases=["plus", "sum"],
        api=True,
    )(add)

    assert options_of(handler) == ("add", "high", 3, 30, (1, 10), ("plus", "sum"), True)
    assert [registry.get(name) for name in ("add", "plus", "sum")] == [handler] * 3


def test_a_declaration_with_empty_parentheses_is_a_bare_one(registry):
    assert registry.get(job()(add).name).function is add


def test_calling_a_handler_runs_the_function_here_and_now():
    assert job(add)(1, right=2) == 3
    assert asyncio.run(job(add_later)(1)) == 2


def test_a_handler_knows_whether_it_has_to_be_awaited():
    assert (job(add).is_async, job(add_later).is_async) == (False, True)


def test_a_handler_looks_like_its_function():
    handler = job(add)

    assert (handler.__name__, handler.__qualname__, handler.__module__) == ("add", "add", PLACE)
    assert (handler.__doc__, handler.__wrapped__) == ("Add two numbers.", add)
    assert repr(handler) == f"<Handler {PLACE}.add>"


def test_attributes_of_the_function_do_not_replace_those_of_the_handler():
    def odd(): ...

    odd.name = odd.lane = "odd"

    assert options_of(job(name="even")(odd))[:2] == ("even", None)


def test_a_handler_is_hashable_and_pickled_and_copied_by_where_it_is_found():
    assert {plain: 1}[plain] == 1
    assert pickle.loads(pickle.dumps(plain)) is plain
    assert copy.deepcopy(plain) is copy.copy(plain) is plain


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (generate, "a generator function cannot be a handler"),
        (generate_later, "a generator function cannot be a handler"),
        (Shop.method, "a method cannot be a handler"),
        (Shop.of_class, "a handler is a function"),
        (Shop().method, "a handler is a function"),
        (Shop(), "a handler is a function"),
        (Shop, "a handler is a function"),
        (functools.partial(add, 1), "a handler is a function"),
        (print, "a handler is a function"),
        ("add", "a handler is a function"),
        (plain, "a handler is a function"),
        (lambda order_id: None, "give a lambda a name of its own"),
        (positional, "order_id: a payload names its arguments"),
        (starred, r"\*order_ids: a payload names its arguments"),
    ],
)
def test_what_cannot_be_a_handler_is_refused_at_declaration(registry, function, reason):
    with pytest.raises(TypeError, match=reason):
        job(function)

    assert list(registry) == []


def test_a_static_function_and_a_named_lambda_can_be_handlers():
    assert job(Shop.static).name == f"{PLACE}.Shop.static"
    assert job(name="named")(lambda order_id: order_id)(7) == 7


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"name": "two words"}, InvalidCaller, "name: "),
        ({"name": 'a"b'}, InvalidCaller, "name: "),
        ({"name": "n" * 201}, InvalidCaller, "name: "),
        ({"name": 5}, InvalidCaller, "name: "),
        ({"aliases": "plus"}, TypeError, "aliases: use a tuple of names"),
        ({"aliases": {"plus"}}, TypeError, "aliases: use a tuple of names"),
        ({"aliases": ["a b"]}, InvalidCaller, "aliases: "),
        ({"aliases": [None]}, InvalidCaller, "aliases: "),
        ({"lane": "High"}, InvalidLane, "lane: 'High'"),
        ({"lane": "high\n"}, InvalidLane, "lane: "),
        ({"lane": ""}, InvalidLane, "lane: "),
        ({"lane": 1}, InvalidLane, "lane: 1"),
        ({"max_attempts": -1}, ValueError, "max_attempts: use a whole number"),
        ({"max_attempts": 1.0}, ValueError, "max_attempts: use a whole number"),
        ({"max_attempts": True}, ValueError, "max_attempts: use a whole number"),
        ({"max_attempts": "3"}, ValueError, "max_attempts: use a whole number"),
        ({"max_attempts": 10**9}, ValueError, "max_attempts: use a whole number"),
        ({"timeout": 0}, ValueError, "timeout: use a number of seconds"),
        ({"timeout": -1}, ValueError, "timeout: use a number of seconds"),
        ({"timeout": math.nan}, ValueError, "timeout: use a number of seconds"),
        ({"timeout": math.inf}, ValueError, "timeout: use a number of seconds"),
        ({"timeout": True}, ValueError, "timeout: use a number of seconds"),
        ({"timeout": "30"}, ValueError, "timeout: use a number of seconds"),
        ({"backoff": -1}, ValueError, "backoff: use a number of seconds"),
        ({"backoff": math.nan}, ValueError, "backoff: use a number of seconds"),
        ({"backoff": "5"}, ValueError, "backoff: use seconds"),
        ({"backoff": b"5"}, ValueError, "backoff: use seconds"),
        ({"backoff": True}, ValueError, "backoff: use seconds"),
        ({"backoff": []}, ValueError, "backoff: the sequence is empty"),
        ({"backoff": [1, None]}, ValueError, "backoff: use seconds"),
        ({"backoff": wait_later}, TypeError, "backoff: use a plain function"),
        ({"api": 1}, TypeError, "api: use True or False"),
        ({"lanes": "high"}, TypeError, "lanes"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_at_declaration_by_name(registry, options, error, reason):
    with pytest.raises(error, match=reason):
        job(**options)(add)

    assert list(registry) == []


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"max_attempts": 0}, 0),
        ({"max_attempts": 1}, 1),
        ({"timeout": 0.5}, 0.5),
        ({"backoff": 0}, 0),
        ({"backoff": timedelta(minutes=1)}, timedelta(minutes=1)),
        ({"backoff": add}, add),
        ({"aliases": ()}, ()),
        ({"lane": "low_2-b"}, "low_2-b"),
    ],
)
def test_an_option_at_the_edge_of_sense_is_kept(options, kept):
    assert getattr(job(**options)(add), next(iter(options))) == kept


def other(left: int): ...


@pytest.mark.parametrize("options", [{"name": "add"}, {"name": "x", "aliases": ["add"]}, {"name": "sum"}])
def test_a_name_that_belongs_to_another_function_is_refused_naming_both(registry, options):
    first = job(name="add", aliases=["sum"])(add)

    with pytest.raises(ValueError, match=rf"{PLACE}.other: the name '\w+' already belongs to {PLACE}.add"):
        job(**options)(other)

    assert list(registry) == [first]


def test_the_same_function_again_takes_the_place_of_the_former_with_all_its_names(registry):
    job(name="add", aliases=["sum", "plus"])(add)

    again = job(name="add", aliases=["total"])(add)

    assert list(registry) == [again]
    assert registry.get("total") is again
    with pytest.raises(UnknownHandler):
        registry.get("plus")


def test_one_function_may_be_two_handlers(registry):
    one, two = job(name="one")(add), job(name="two")(add)

    assert list(registry) == [one, two]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "shop.send_reciept",
            "no handler is registered under 'shop.send_reciept'; did you mean 'shop.send_receipt'?",
        ),
        ("zzz", "no handler is registered under 'zzz'"),
        ("", "no handler is registered under ''"),
        (None, "no handler is registered under 'None'"),
        (["shop"], "no handler is registered under \"['shop']\""),
        ("os.system", "no handler is registered under 'os.system'"),
        ("x" * 10**6, f"no handler is registered under '{'x' * 200}'"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_ones(name, message):
    job(name="shop.send_receipt")(add)

    with pytest.raises(UnknownHandler) as refusal:
        handlers.registry.get(name)

    assert str(refusal.value) == message


def test_enqueue_hands_the_payload_to_what_is_bound(enqueued):
    handler = job(add)

    assert handler.enqueue(left=1, right=2) == 1
    assert enqueued == [(handler, {"left": 1, "right": 2}, {})]


def test_options_travel_apart_from_a_payload_with_the_same_names(enqueued):
    handler = job(add)

    handler.using(lane="low", delay=30).enqueue(lane="payload", self=1, handler=2)

    assert enqueued == [(handler, {"lane": "payload", "self": 1, "handler": 2}, {"lane": "low", "delay": 30})]


def test_using_again_adds_to_a_copy(enqueued):
    first = job(add).using(lane="low", delay=30)

    second = first.using(lane="high", on_commit=False)

    assert first.options == {"lane": "low", "delay": 30}
    assert second.options == {"lane": "high", "delay": 30, "on_commit": False}
    assert first == Bound(first.handler, {"lane": "low", "delay": 30}) != second
    assert {first, second} == {second, first}


def test_an_option_that_does_not_exist_is_refused_with_the_nearest_one():
    with pytest.raises(TypeError, match=r"using\(\) has no option 'lanes'; did you mean 'lane'\?"):
        job(add).using(lanes="low")


def test_enqueueing_before_anything_is_bound_says_what_to_do(monkeypatch):
    monkeypatch.setattr(handlers, "_enqueue", None)

    with pytest.raises(PriqueueError, match=r"INSTALLED_APPS"):
        job(add).enqueue(left=1)


def test_a_handler_made_by_hand_is_not_registered(registry):
    Handler(add)

    assert list(registry) == []
