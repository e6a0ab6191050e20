"""The limits at ``enqueue``: asked at the call, before anything is written, on every way in; no push is refused."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction

import priqueue
from priqueue import QueueFull, QueueUnavailable, RateLimited, wiring
from tests.shop.jobs import note
from tests.support.queues import HANDLER, Queue

LIMITED = {"RATE_LIMIT": {"user:": "1/h burst 3"}, "MAX_READY": {"low": 3}}


@pytest.fixture
def limited(make_queue: Callable[..., Queue]) -> Iterator[Queue]:
    """A queue with limits that ``priqueue.enqueue`` uses here."""
    with used(make_queue(**LIMITED)) as queue:
        yield queue


@contextmanager
def used(queue: Queue) -> Iterator[Queue]:
    with wiring.override(queue.coordinator):
        yield queue


WAYS: dict[str, Callable[[], Any]] = {
    "enqueue": lambda: priqueue.enqueue(note, {}, caller="user:1", on_commit=False),
    "by name": lambda: priqueue.enqueue(HANDLER, {}, caller="user:1", on_commit=False),
    "the handler": lambda: note.using(caller="user:1", on_commit=False).enqueue(),
    "many": lambda: priqueue.enqueue_many([(note, {})], caller="user:1", on_commit=False),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_every_way_in_is_limited(limited: Queue, way: Callable[[], Any]) -> None:
    for _ in range(3):
        way()
    before = limited.state()

    with pytest.raises(RateLimited):
        way()

    assert limited.state() == before


def test_the_acting_caller_is_limited(limited: Queue) -> None:
    with priqueue.acting_as("user:1"):
        priqueue.enqueue_many([(note, {})] * 3, on_commit=False)

        with pytest.raises(RateLimited) as refused:
            note.using(on_commit=False).enqueue()

    assert refused.value.retry_after_s == 3600


def test_who_is_not_named_is_not_limited(limited: Queue) -> None:
    priqueue.enqueue_many([(note, {})] * 200, on_commit=False)

    assert len(limited.state()["ready"]["default"]) == 200


def test_many_are_admitted_or_refused_together(limited: Queue) -> None:
    with pytest.raises(RateLimited):
        priqueue.enqueue_many([(note, {})] * 4, caller="user:1", on_commit=False)

    assert limited.places() == {}


def test_a_full_lane_refuses_at_the_call(limited: Queue) -> None:
    priqueue.enqueue_many([(note, {})] * 3, lane="low", on_commit=False)
    before = limited.state()

    with pytest.raises(QueueFull, match="lane low holds 3 ready jobs"):
        priqueue.enqueue(note, {}, lane="low", on_commit=False)

    assert limited.state() == before


@pytest.mark.django_db(transaction=True)
def test_in_a_transaction_the_call_is_refused_and_not_the_commit(limited: Queue) -> None:
    with transaction.atomic():
        for _ in range(3):
            priqueue.enqueue(note, {}, caller="user:1")
        with pytest.raises(RateLimited):
            priqueue.enqueue(note, {}, caller="user:1")
        assert limited.places() == {}

    assert len(limited.places()) == 3


@pytest.mark.django_db(transaction=True)
def test_a_lane_that_has_become_full_by_the_commit_takes_what_was_admitted(limited: Queue) -> None:
    with transaction.atomic():
        priqueue.enqueue(note, {}, lane="low")
        limited.enqueue(number=3, lane="low")

    assert len(limited.state()["ready"]["low"]) == 4


def test_a_payload_that_is_wrong_costs_nothing_of_the_rate(limited: Queue) -> None:
    for _ in range(9):
        with pytest.raises(priqueue.InvalidPayload):
            priqueue.enqueue(note, {"no": "such argument"}, caller="user:1", on_commit=False)

    priqueue.enqueue_many([(note, {})] * 3, caller="user:1", on_commit=False)


def test_a_limit_that_cannot_be_asked_about_lets_nothing_in(limited: Queue) -> None:
    limited.give_up_at_once()
    limited.eat_replies()

    with pytest.raises(QueueUnavailable):
        priqueue.enqueue(note, {}, caller="user:1", on_commit=False)

    assert limited.places() == {}


def test_without_limits_nothing_is_asked(real_queue: Queue) -> None:
    with used(real_queue):
        priqueue.enqueue(note, {}, on_commit=False)
        before = real_queue.raw.info("commandstats")["cmdstat_evalsha"]["calls"]
        priqueue.enqueue(note, {}, caller="user:1", on_commit=False)
        after = real_queue.raw.info("commandstats")["cmdstat_evalsha"]["calls"]

    assert after - before == 1
