"""Lanes are paused and resumed, jobs cancelled, workers drained: after a question, and once."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from priqueue import wiring
from priqueue.jobs import now
from priqueue.views import reading
from tests.support.queues import Queue
from tests.support.visiting import ADMIN, EVERYTHING, OWN, pages_of, sent, text, token, visitor

pytestmark = pytest.mark.django_db
MOUNTS = (ADMIN, OWN)


@pytest.fixture
def queue(real_queue: Queue) -> Iterator[Queue]:
    """A queue on a real server, shown by the pages of both mounts."""
    with pages_of(real_queue):
        yield real_queue


# ── lanes ──


@pytest.mark.parametrize("mount", MOUNTS)
def test_a_lane_is_paused_with_reason_and_end_and_everybody_sees_it(queue: Queue, mount: str) -> None:
    client = visitor(*EVERYTHING)

    page = sent(client, f"{mount}lanes/low/pause/", reason="bank\nmaintenance", end="900")

    pause = queue.inspector.paused()["low"]
    assert (pause.reason, pause.until - pause.since) == ("bank maintenance", timedelta(minutes=15))
    assert pause.caller == f"user:{User.objects.get().pk}"
    assert "Lane low is paused until" in text(page)
    told = f"low is paused by {User.objects.get().username} ({pause.caller}), 15 m left"
    for path in ("", "lanes/low/", "workers/"):
        assert told in text(client.get(mount + path))


def test_a_pause_may_have_no_end_or_a_time_of_ones_own(queue: Queue) -> None:
    queue.clock.now_ms = round(now().timestamp() * 1000)
    client, until = visitor(*EVERYTHING), now() + timedelta(hours=3)

    sent(client, f"{OWN}lanes/low/pause/", reason="x", end="open")
    without = queue.inspector.paused()["low"].until
    sent(client, f"{OWN}lanes/low/pause/", reason="x", end="until", until=f"{until:%Y-%m-%dT%H:%M}")

    assert without is None
    assert abs(queue.inspector.paused()["low"].until - until) < timedelta(minutes=2)


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"reason": "", "end": "900"}, "required"), ({"reason": " \n ", "end": "900"}, "required"),
        ({"reason": "x" * 501, "end": "900"}, "at most 500"), ({"reason": "x", "end": "1e9"}, "valid choice"),
        ({"reason": "x", "end": "until"}, "time that is to come"),
        ({"reason": "x", "end": "until", "until": "2020-01-01T00:00"}, "time that is to come"),
        ({"reason": "x", "end": "until", "until": "9999-01-01T00:00"}, "within a year"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said_at_its_field_and_nothing_is_done(
    queue: Queue, fields: dict[str, str], fault: str
) -> None:
    client, where = visitor(*EVERYTHING), f"{OWN}lanes/low/pause/"

    page = sent(client, where, **fields)

    assert page.status_code == 422
    assert fault in text(page)
    assert queue.inspector.paused() == {}


def test_a_pause_is_ended_by_resume(queue: Queue) -> None:
    queue.coordinator.pause("low", caller="user:ana", reason="bank")
    client = visitor(*EVERYTHING)

    asked = text(client.get(f"{OWN}lanes/low/resume/"))
    sent(client, f"{OWN}lanes/low/resume/", reason="over")

    assert "user:ana paused it: bank" in asked
    assert queue.inspector.paused() == {}


def test_resuming_what_somebody_else_resumed_says_so(queue: Queue) -> None:
    page = sent(visitor(*EVERYTHING), f"{OWN}lanes/low/resume/", reason="over")

    assert "Lane low was not paused any more. Nothing was changed." in text(page)


def test_a_lane_that_left_the_configuration_is_shown_with_its_jobs(queue: Queue) -> None:
    queue.enqueue(number=2, lane="low")
    fewer = Queue(queue.client, _with_lanes(queue, "high", "default"), queue.clock)

    with wiring.override(fewer.coordinator):
        page = visitor(*EVERYTHING).get(f"{OWN}lanes/low/")
        reading.desk().close()

    assert "This lane left the configuration with 2 jobs in it." in text(page)


def test_an_unknown_lane_is_not_found_in_the_frame(queue: Queue) -> None:
    page = visitor(*EVERYTHING).get(f"{OWN}lanes/nope/")

    assert page.status_code == 404
    assert "There is no lane nope" in text(page)


# ── jobs and workers ──


def test_a_waiting_job_is_cancelled(queue: Queue) -> None:
    ready, kept = queue.enqueue(number=2, lane="low")

    page = sent(visitor(*EVERYTHING), f"{OWN}jobs/{ready.id}/cancel/", reason="not needed")

    assert queue.places() == {kept.id: "ready"}
    assert f"Job {ready.id} is cancelled: not needed" in text(page)


def test_it_is_too_late_to_cancel_what_a_worker_has_claimed(queue: Queue) -> None:
    (claim,) = queue.claimed()

    page = sent(visitor(*EVERYTHING), f"{OWN}jobs/{claim.job.id}/cancel/", reason="x")

    assert "Too late: worker has claimed it. Nothing was changed." in text(page)
    assert queue.places() == {claim.job.id: "in flight"}


def test_a_worker_is_asked_to_drain(queue: Queue) -> None:
    queue.claimed(number=3)
    client = visitor(*EVERYTHING)

    asked = text(client.get(f"{OWN}workers/worker/drain/"))
    sent(client, f"{OWN}workers/worker/drain/", reason="new version")

    assert "worker claims no more jobs, finishes 3 jobs and leaves." in asked
    assert [worker.draining for worker in queue.inspector.workers()] == [True]


# ── once ──


def test_a_form_sent_twice_acts_once_and_shows_the_first_outcome(queue: Queue) -> None:
    client, where = visitor(*EVERYTHING), f"{OWN}lanes/low/resume/"
    queue.coordinator.pause("low", caller="user:ana", reason="bank")
    form = {"token": token(client.get(where)), "reason": "over"}

    client.post(where, form)
    queue.coordinator.pause("low", caller="user:ben", reason="again")
    again = client.post(where, form, follow=True)

    assert "Lane low is resumed: over This was sent before; it was done once." in text(again)
    assert queue.inspector.paused()["low"].caller == "user:ben"


@pytest.mark.parametrize("forged", ["", "x", "1|/queue/lanes/low/pause/|abc", "1|/|abc:1vP7:sig"])
def test_a_form_without_a_token_of_ours_changes_nothing(queue: Queue, forged: str) -> None:
    page = visitor(*EVERYTHING).post(f"{OWN}lanes/low/pause/", {"token": forged, "reason": "x", "end": "900"})

    assert page.status_code == 422
    assert "too old" in text(page)
    assert queue.inspector.paused() == {}


def test_a_token_is_good_for_its_own_page_and_visitor_only(queue: Queue) -> None:
    one, other = visitor(*EVERYTHING), visitor(*EVERYTHING)
    taken = token(one.get(f"{OWN}lanes/low/pause/"))

    statuses = [
        client.post(f"{OWN}lanes/{lane}/pause/", {"token": taken, "reason": "x", "end": "900"}).status_code
        for client, lane in ((other, "low"), (one, "high"), (one, "low"))
    ]

    assert statuses == [422, 422, 302]


@pytest.mark.parametrize("mount", MOUNTS)
def test_a_form_without_the_csrf_token_is_refused(queue: Queue, mount: str) -> None:
    client, where = visitor(*EVERYTHING, enforce_csrf_checks=True), f"{mount}lanes/low/pause/"

    page = client.post(where, {"token": token(client.get(where)), "reason": "x", "end": "900"})

    assert page.status_code == 403
    assert queue.inspector.paused() == {}


def _with_lanes(queue: Queue, *names: str) -> Any:
    lanes = tuple(lane for lane in queue.settings.lanes if lane.name in names)
    return type(queue.settings)(**{**_fields(queue.settings), "lanes": lanes})


def _fields(settings: Any) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.__dataclass_fields__}
