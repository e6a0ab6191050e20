"""The queue's pages while the queue does not answer: no false zero, nothing to press, no wait, and back again."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User

from priqueue.exceptions import QueueFull, QueueUnavailable
from priqueue.views import reading
from priqueue.views.routes import QUEUE, Route
from tests.support.queues import Queue
from tests.support.reviewing import client_of
from tests.support.visiting import ADMIN, EVERYTHING, OWN, lane_row, shown_queue, text, token, visitor

pytestmark = pytest.mark.django_db
queue = shown_queue
MOUNTS = (ADMIN, OWN)


def address(route: Route, mount: str, **parts: str) -> str:
    usual = {"lane": "low", "worker": "worker", "job": "some-job", **parts}
    return mount + re.sub(r"<\w+:(\w+)>", lambda found: usual[found[1]], route.path)


@pytest.fixture
def deaf(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let every read of the overview fail from now on; the list grows with each try."""
    tries: list[str] = []

    def fail(*_: Any, **__: Any) -> None:
        tries.append("tried")
        raise QueueUnavailable("the queue did not answer: TimeoutError")

    monkeypatch.setattr("priqueue.coordinator.inspection.Inspector._read", fail)
    return tries


@pytest.mark.parametrize("mount", MOUNTS)
@pytest.mark.parametrize("route", QUEUE, ids=lambda route: route.name)
def test_every_page_says_that_it_knows_nothing_and_offers_nothing(
    queue: Queue, deaf: list[str], route: Route, mount: str
) -> None:
    page = visitor(*EVERYTHING).get(address(route, mount))

    assert page.status_code == 503
    assert "Redis does not answer" in page.content.decode()
    assert not re.search(r"/(pause|resume|drain|cancel)/", page.content.decode().replace(page.request["PATH_INFO"], ""))


def test_the_second_viewer_does_not_wait_for_what_just_failed(queue: Queue, deaf: list[str]) -> None:
    client = visitor("view_queue")

    pages = [client.get(OWN) for _ in range(5)]

    assert [page.status_code for page in pages] == [503] * 5
    assert deaf == ["tried"]


def test_what_was_last_known_stays_with_its_time_and_nothing_is_a_zero(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.enqueue(number=1234, lane="low")
    client = visitor(*EVERYTHING)
    client.get(OWN)
    monkeypatch.setattr("priqueue.coordinator.inspection.Inspector._read", _unavailable)

    page = client.get(OWN)

    assert page.status_code == 503
    assert "these are the numbers of 08:00:00" in text(page)
    assert "Unknown : Redis does not answer" in text(page)
    assert lane_row(page, "low")["Ready"] == "1,234"
    assert "pq-stale" in page.content.decode()


def test_a_process_that_never_saw_the_queue_shows_no_number_at_all(queue: Queue, deaf: list[str]) -> None:
    shown = text(visitor("view_queue").get(OWN)).partition("Throughput")[2]

    assert not re.search(r"\b0\b", shown)


def test_the_document_says_it_too_and_the_page_recovers(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    client = visitor("view_queue")
    with monkeypatch.context() as away:
        away.setattr("priqueue.coordinator.inspection.Inspector._read", _unavailable)
        answer = client.get(f"{OWN}data/")
    monkeypatch.setattr(reading.desk().breaker, "_again_at_s", 0)

    then = client.get(OWN)

    assert answer.status_code == 503
    assert list(answer.json()["parts"]) == ["status"]
    assert then.status_code == 200


def test_a_form_that_gets_no_answer_says_that_it_may_have_been_done(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, where = visitor(*EVERYTHING), f"{OWN}lanes/low/pause/"
    form = {"token": token(client.get(where)), "reason": "x", "end": "900"}
    with monkeypatch.context() as away:
        away.setattr("priqueue.operations.pause", _unavailable)
        page = client.post(where, form)
    monkeypatch.setattr(reading.desk().breaker, "_again_at_s", 0)

    again = client.post(where, form, follow=True)

    assert page.status_code == 503
    assert "it may or may not have been done" in text(page)
    assert "Nothing was done a second time." in text(again)
    assert queue.inspector.paused() == {}


def test_what_the_queue_refuses_is_said_as_it_is(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise QueueFull("the queue's server is at its memory limit and takes no more jobs")

    client, where = visitor(*EVERYTHING), f"{OWN}lanes/low/pause/"
    form = {"token": token(client.get(where)), "reason": "x", "end": "900"}
    monkeypatch.setattr("priqueue.operations.pause", refuse)

    page = client.post(where, form)

    assert page.status_code == 503
    assert "The queue refused this: the queue's server is at its memory limit" in text(page)


@pytest.mark.parametrize("mount", ["/admin/priqueue/deadletter/", f"{OWN}dead/"])
def test_no_address_forges_a_record_of_the_log(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, mount: str
) -> None:
    monkeypatch.setattr("priqueue.coordinator.transitions.Coordinator.note", _misleading)

    visitor("view_queue").get(f"{mount}requeue/x%0d%0aCRITICAL root: gone%1b[31m%e2%80%a8/")

    (line,) = [record.getMessage() for record in caplog.records if record.name.startswith("priqueue")]
    assert f"{mount}requeue/x\\x0d\\x0aCRITICAL root: gone\\x1b[31m\\u2028/" in line
    assert line.endswith("no answer\\x0aCRITICAL root: gone")
    assert len(line.splitlines()) == 1


def test_the_rest_of_the_admin_never_asks_the_queue(queue: Queue, deaf: list[str]) -> None:
    client = client_of(User.objects.create_superuser("root"))

    statuses = [client.get(path).status_code for path in ("/admin/auth/user/", "/admin/priqueue/", "/admin/login/")]

    assert (statuses, deaf) == ([200, 200, 302], [])


def _misleading(*_: Any, **__: Any) -> None:
    raise QueueUnavailable("no answer\nCRITICAL root: gone")


def _unavailable(*_: Any, **__: Any) -> None:
    raise QueueUnavailable("the queue did not answer: TimeoutError")
