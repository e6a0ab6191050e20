"""What the tests with a coordinator share."""

from collections.abc import Iterator

import pytest

from tests.support.queues import close_all


@pytest.fixture(autouse=True)
def _no_connection_stays_open() -> Iterator[None]:
    """Close what a test opened: what the garbage collector closes later is a warning in another test."""
    yield
    close_all()
