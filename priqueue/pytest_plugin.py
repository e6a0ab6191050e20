"""The pytest plugin: ``pytest_plugins = ["priqueue.pytest_plugin"]`` in the topmost conftest.py.

It is asked for and does not load itself: a run that has nothing to do with jobs need not import Django for it.
"""

from collections.abc import Iterator

import pytest

from priqueue.testing import MemoryQueue, memory_queue


@pytest.fixture
def job_queue() -> Iterator[MemoryQueue]:
    """Return an empty queue in memory, which takes the configured one's place for this test."""
    with memory_queue() as queue:
        yield queue
