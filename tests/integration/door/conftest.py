"""What the tests of the HTTP door share: a queue behind it, and somebody with a key."""

from collections.abc import Iterator

import pytest

from tests.support.door import Holder, open_door
from tests.support.queues import Queue


@pytest.fixture
def queue(real_queue: Queue) -> Queue:
    """A queue on the real server alone: what is in question here lies before it."""
    return real_queue


@pytest.fixture(autouse=True)
def door(queue: Queue) -> Iterator[None]:
    with open_door(queue):
        yield


@pytest.fixture
def holder() -> Holder:
    return Holder()
