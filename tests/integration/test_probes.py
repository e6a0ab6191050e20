"""probes: whether the web process serves, and whether jobs can be taken in."""

from collections.abc import Iterator

import pytest
from django.http import HttpResponse
from django.test import RequestFactory, override_settings
from redis import Redis

from priqueue import wiring
from priqueue.probes import healthz, readyz
from tests.support.queues import Queue, test_settings


@pytest.fixture
def away() -> Iterator[Queue]:
    """A queue whose server is not there."""
    queue = Queue(Redis(port=1), test_settings())
    with wiring.override(queue.coordinator):
        yield queue
        wiring.door_inspector().close()


@pytest.fixture
def there(queue: Queue) -> Iterator[Queue]:
    with wiring.override(queue.coordinator):
        yield queue
        wiring.door_inspector().close()


def told(response: HttpResponse) -> tuple[int, str]:
    assert response["Content-Type"] == "text/plain"
    assert "no-store" in response["Cache-Control"]
    return response.status_code, response.content.decode()


def test_with_its_queue_a_process_is_alive_and_ready(there: Queue) -> None:
    request = RequestFactory().get("/")

    assert (told(healthz(request)), told(readyz(request))) == ((200, "ok\n"), (200, "ready\n"))


def test_without_its_queue_a_process_is_alive_and_not_ready_and_tells_no_address(away: Queue) -> None:
    request = RequestFactory().get("/")

    assert told(healthz(request)) == (200, "ok\n")
    assert told(readyz(request)) == (503, "not ready: the queue does not answer\n")


def test_with_a_fault_in_the_settings_a_process_is_alive_and_not_ready() -> None:
    request = RequestFactory().get("/")

    with override_settings(PRIQUEUE={"URL": "redis://:secret@127.0.0.1:1/0", "NOPE": 1}):
        answers = told(healthz(request)), told(readyz(request))

    assert answers == ((200, "ok\n"), (503, "not ready: the configuration is at fault; see manage.py check\n"))


@pytest.mark.parametrize("view", [healthz, readyz])
def test_they_are_only_for_reading(view, there: Queue) -> None:
    assert view(RequestFactory().post("/")).status_code == 405
    assert view(RequestFactory().head("/")).status_code == 200
