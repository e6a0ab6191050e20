"""What happened to lanes and workers is marked in the charts and told beside them; no page waits for the log of it."""

import re
from threading import Event
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client

from priqueue.clock import monotonic_s
from priqueue.coordinator import DENIED, INTENDED, Note
from priqueue.exceptions import QueueUnavailable
from priqueue.views import marking
from tests.support.auditing import store
from tests.support.queues import START_MS, Queue
from tests.support.visiting import ADMIN, OWN, pages_of, stored_queue, text, visitor

pytestmark = pytest.mark.django_db
queue = stored_queue
BOTH = pytest.mark.parametrize("mount", [ADMIN, OWN])


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a page see what is in the log now, however busy this machine is."""
    monkeypatch.setattr(marking, "PATIENCE_S", 20.0)
    monkeypatch.setattr(marking, "_REST_S", 0.0)


@pytest.fixture
def person(queue: Queue) -> Client:
    return visitor("view_queue")


def marks(page: Any) -> list[tuple[int, str, str]]:
    """Return the marks that a page tells of: seconds after the start, kind, and text."""
    found = re.findall(
        r'data-mark="(\d+)" data-kind="(\w+)".*?data-what>(.*?)</span>', page.content.decode(), re.DOTALL
    )
    return [(int(at_s) - START_MS // 1000, kind, " ".join(told.split())) for at_s, kind, told in found]


@BOTH
def test_pauses_and_workers_of_the_hour_are_told_the_newest_first(queue: Queue, person: Client, mount: str) -> None:
    ana = f"user:{User.objects.create_user('ana').pk}"
    queue.register("web1:311:abc")
    queue.clock.advance(60)
    queue.coordinator.pause("low", caller=ana, reason="bank maintenance", lasts_s=60)
    queue.clock.advance(60)
    queue.coordinator.resume("low", caller="ticker", reason="its time is over", if_over=True)
    queue.clock.advance(60)
    queue.coordinator.drain("web1:311:abc", caller=ana, reason="new version")
    queue.clock.advance(60)
    queue.coordinator.leave("web1:311:abc")
    queue.clock.advance(60)
    store(queue)

    page = person.get(mount)

    assert marks(page) == [
        (240, "leave", "web1:311 left"),
        (180, "drain", f"web1:311 asked to drain by ana ({ana}): “new version”"),
        (120, "resume", "low resumed by ticker: “its time is over”"),
        (60, "pause", f"low paused by ana ({ana}): “bank maintenance”"),
        (0, "start", "web1:311 started"),
    ]
    assert "5 marks in the charts" in text(page)


def test_what_is_in_force_is_marked_before_the_log_has_it_and_once_when_it_has(queue: Queue, person: Client) -> None:
    queue.register("web1:311:abc")
    queue.coordinator.pause("low", caller="key:billing", reason="x")
    before = marks(person.get(OWN))
    store(queue)

    after = marks(person.get(OWN))

    assert before == [(0, "start", "web1:311 started"), (0, "pause", "low paused by key:billing: “x”")]
    assert after == before


def test_without_the_log_the_page_marks_what_redis_tells_and_says_that_it_is_not_all(
    queue: Queue, person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OperationalError("no connection")

    queue.coordinator.pause("low", caller="key:billing", reason="x")
    monkeypatch.setattr(marking.pages, "page", fail)

    page = person.get(OWN)

    assert page.status_code == 200
    assert [kind for _, kind, _ in marks(page)] == ["pause"]
    assert "the audit log does not answer (OperationalError)" in text(page)


@pytest.mark.parametrize(
    ("audit", "why"), [("off", "no audit log is kept"), ("callers", "the audit log is kept of callers only")]
)
def test_where_less_is_audited_the_page_says_what_is_not_marked(real_queue: Queue, audit: str, why: str) -> None:
    less = real_queue.with_settings(AUDIT=audit)
    less.register("web1:311:abc")
    with pages_of(less):
        page = visitor("view_queue").get(OWN)

    assert marks(page) == [(0, "start", "web1:311 started")]
    assert why in text(page)


def test_what_is_older_than_the_charts_is_of_another_queue_or_was_only_tried_is_no_mark(
    queue: Queue, person: Client
) -> None:
    queue.register("old:1:x")
    queue.coordinator.pause("high", caller="user:1", reason="long ago")
    queue.clock.advance(3601)
    other = queue.with_settings()
    other.coordinator.pause("low", caller="user:1", reason="elsewhere")
    for outcome in (INTENDED, DENIED, "Lane low is paused"):
        queue.coordinator.note(Note(action="pause", caller="user:1", outcome=outcome, lane="low", reason="x"))
    store(queue)
    store(other)

    assert marks(person.get(OWN)) == []


def test_workers_that_start_together_are_one_mark(queue: Queue, person: Client) -> None:
    for number in range(12):
        queue.register(f"web{number:02}:1:x")
    queue.clock.advance(31)
    queue.register("late:1:x")

    assert [(kind, told) for _, kind, told in marks(person.get(OWN))] == [
        ("start", "late:1 started"), ("start", "12 workers started: web00:1, web01:1, web02:1 and 9 more"),
    ]  # fmt: skip


def test_a_page_tells_of_some_dozens_of_marks_at_most(queue: Queue, person: Client) -> None:
    for number in range(60):
        queue.clock.advance(1)
        queue.coordinator.pause("low", caller="user:1", reason=f"turn {number} " + "x" * 490)
    store(queue)

    found = marks(person.get(OWN))

    assert (len(found), found[0][0], len(person.get(f"{OWN}data/").content) < 40_000) == (30, 60, True)


def test_the_document_brings_the_marks_when_it_brings_points(queue: Queue, person: Client) -> None:
    queue.register("web1:311:abc")

    first = person.get(f"{OWN}data/").json()
    then = person.get(f"{OWN}data/?since={first['points'][-1]['t'] * 1000}").json()

    assert "web1:311 started" in first["parts"]["marks"]
    assert ("marks" in then["parts"], then["points"]) == (False, [])


def test_no_page_waits_for_a_log_that_hangs_and_only_one_asks_it(
    queue: Queue, person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, goes_on = [], Event()

    def hang(*_: Any) -> marking.pages.Page:
        asked.append(1)
        goes_on.wait(30)
        return marking.pages.Page([])

    monkeypatch.setattr(marking, "PATIENCE_S", 0.1)
    monkeypatch.setattr(marking.pages, "page", hang)
    queue.register("web1:311:abc")
    began_s = monotonic_s()

    pages = [person.get(OWN) for _ in range(3)]

    took_s, tries = monotonic_s() - began_s, len(asked)
    goes_on.set()
    assert ([page.status_code for page in pages], tries) == ([200] * 3, 1)
    assert took_s < 5
    assert [marks(page) for page in pages] == [[(0, "start", "web1:311 started")]] * 3
    assert "the audit log is still being read" in text(pages[0])


def test_a_process_that_can_start_no_thread_shows_its_pages(
    queue: Queue, person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    queue.register("web1:311:abc")
    monkeypatch.setattr(marking.Thread, "start", fail)

    page = person.get(OWN)

    assert (page.status_code, marks(page)) == (200, [(0, "start", "web1:311 started")])


def test_a_fault_in_reading_the_log_is_logged_and_costs_the_other_marks_nothing(
    queue: Queue, person: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    queue.register("web1:311:abc")
    monkeypatch.setattr(marking.privacy, "hide", lambda _: 1 / 0)
    store(queue)

    page = person.get(OWN)

    assert (page.status_code, marks(page)) == (200, [(0, "start", "web1:311 started")])
    assert "Some may be missing: the audit log could not be read." in text(page)
    assert "the marks of the charts could not be read" in caplog.text


def test_while_redis_does_not_answer_nothing_is_marked(
    queue: Queue, person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.register("web1:311:abc")
    person.get(OWN)
    queue.client.close()
    monkeypatch.setattr("priqueue.coordinator.inspection.Inspector._read", _away)

    page = person.get(OWN)

    assert (page.status_code, marks(page)) == (503, [])


def _away(*_: Any, **__: Any) -> None:
    raise QueueUnavailable("the queue did not answer: TimeoutError")
