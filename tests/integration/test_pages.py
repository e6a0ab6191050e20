"""The queue's pages: overview, lanes, workers; who may see and do what; and that nothing is done twice."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from priqueue import wiring
from priqueue.coordinator.series import POINT_MS
from priqueue.exceptions import QueueUnavailable
from priqueue.jobs import Failure, now
from priqueue.views import reading
from priqueue.views.routes import QUEUE, Route
from tests.support.queues import HANDLER, START_MS, Queue
from tests.support.reviewing import client_of
from tests.support.visiting import ADMIN, EVERYTHING, OWN, pages_of, sent, text, token, visitor

pytestmark = pytest.mark.django_db
MOUNTS = (ADMIN, OWN)
MARKER = "<img/src=x/onerror=alert(1)>'{{7*7}}"


@pytest.fixture
def queue(real_queue: Queue) -> Iterator[Queue]:
    """A queue on a real server, shown by the pages of both mounts."""
    with pages_of(real_queue):
        yield real_queue


def address(route: Route, mount: str, **parts: str) -> str:
    usual = {"lane": "low", "worker": "worker", "job": "some-job", **parts}
    return mount + re.sub(r"<\w+:(\w+)>", lambda found: usual[found[1]], route.path)


# ── who may ──


@pytest.mark.parametrize("mount", MOUNTS)
@pytest.mark.parametrize("route", QUEUE, ids=lambda route: route.name)
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_page_opens_only_to_who_has_its_permission(queue: Queue, route: Route, mount: str, method: str) -> None:
    where, before = address(route, mount), queue.state()
    others = [name for name in EVERYTHING if name not in (route.permission, "view_queue")]
    opened = {"get": {200, 404}, "post": {405} if route.permission == "view_queue" else {404, 422}}[method]

    def status(client: Client) -> int:
        return getattr(client, method)(where).status_code

    assert status(Client()) == 302
    assert status(visitor(*others)) == 403
    assert status(visitor("view_queue", *others)) == (403 if route.permission != "view_queue" else min(opened))
    assert status(visitor("view_queue", route.permission)) in opened
    assert status(client_of(User.objects.create_superuser("root"))) in opened
    assert queue.state() == before


@pytest.mark.parametrize("mount", MOUNTS)
def test_who_may_not_is_told_which_permission_is_missing_in_the_frame(queue: Queue, mount: str) -> None:
    page = visitor("view_queue").get(f"{mount}lanes/low/pause/")

    assert page.status_code == 403
    assert "“Can pause and resume lanes”" in text(page)
    assert "breadcrumbs" in page.content.decode()


def test_a_denied_try_leaves_an_audit_event(queue: Queue) -> None:
    client = visitor("view_queue")

    client.post(f"{OWN}lanes/low/pause/", {"reason": "x"})

    event = queue.event()
    assert {name: event[name] for name in ("action", "outcome", "input", "reason")} == {
        "action": "pause", "outcome": "denied", "input": f"{OWN}lanes/low/pause/",
        "reason": "needs priqueue.pause_lane",
    }  # fmt: skip
    assert event["caller"] == f"user:{User.objects.get().pk}"


def test_figures_are_not_shown_to_who_may_not_see_the_queue(queue: Queue) -> None:
    queue.enqueue(number=7, lane="high")

    shown = text(visitor("pause_lane").get(f"{OWN}lanes/high/pause/"))

    assert "Trouble" not in shown
    assert "7" not in shown


@pytest.mark.parametrize("mount", MOUNTS)
def test_an_action_is_not_offered_to_who_may_not_do_it(queue: Queue, mount: str) -> None:
    queue.register()
    queue.enqueue(lane="low")

    offered = [
        {name for name in ("/pause/", "/drain/", "/cancel/") if name in body}
        for body in (
            "".join(client.get(f"{mount}{path}").content.decode() for path in ("", "lanes/low/", "workers/"))
            for client in (visitor("view_queue"), visitor(*EVERYTHING))
        )
    ]

    assert offered == [set(), {"/pause/", "/drain/", "/cancel/"}]


def test_somebody_unknown_is_led_to_the_log_in_and_back(queue: Queue) -> None:
    with override_settings(LOGIN_URL="/somewhere/"):
        assert Client().get(f"{OWN}workers/").url == f"/somewhere/?next={OWN}workers/"


@pytest.mark.parametrize("mount", MOUNTS)
def test_no_answer_is_kept_framed_or_lets_anything_in_be_run(queue: Queue, mount: str) -> None:
    page = visitor(*EVERYTHING).get(mount)

    assert (page["Cache-Control"], page["X-Frame-Options"]) == ("no-store", "DENY")
    body = page.content.decode()
    assert not re.search(
        r"<script(?![^>]*(src=|application/json))|<style|\sstyle=|\son\w+=|javascript:|(src|href)=.(https?:)?//", body
    )


def test_our_own_mount_says_what_it_may_load(queue: Queue) -> None:
    assert "default-src 'self'" in visitor("view_queue").get(OWN)["Content-Security-Policy"]


def test_the_admins_index_leads_to_the_pages_only_who_may_see_them(queue: Queue) -> None:
    listed = visitor("view_queue").get("/admin/priqueue/")

    assert {ADMIN, "/admin/priqueue/deadletter/"} <= set(re.findall(r'href="([^"]+)"', listed.content.decode()))
    assert visitor("pause_lane").get("/admin/priqueue/").status_code == 404


# ── the overview ──


@pytest.mark.parametrize("mount", MOUNTS)
def test_the_overview_begins_with_what_is_wrong(queue: Queue, mount: str) -> None:
    queue.coordinator.promote()
    queue.coordinator.reclaim()
    queue.enqueue(number=3, lane="high")

    page = visitor("view_queue").get(mount)

    assert "Trouble : no worker is registered, and 3 jobs are ready" in text(page)


def test_a_lane_says_what_is_in_it_and_how_long_the_oldest_waits(queue: Queue) -> None:
    queue.enqueue(number=2, lane="low")
    queue.enqueue(number=1, lane="low", delay_ms=9_000)
    queue.clock.now_ms = now_ms() + 2_000

    row = _row(visitor("view_queue").get(OWN), "low")

    assert row["Ready"] == "2"
    assert row["Delayed"] == "1"
    assert row["Oldest"].startswith("2.")
    assert row["Share"].startswith("\u2013")


def test_the_share_is_shown_beside_what_the_weight_promises_once_enough_picks_were_made(queue: Queue) -> None:
    key = queue.keys.series(START_MS - 10_000)
    queue.raw.hset(key, mapping={"picks_full:high": 59, "picks_full:default": 31, "picks_full:low": 10})

    page = visitor("view_queue").get(OWN)

    assert _row(page, "high")["Share"] == "59.0 %"
    assert 'aria-label="59.0 %, promised 60.0 %"' in page.content.decode()


def test_charts_have_their_points_and_tables_that_say_the_same(queue: Queue) -> None:
    for after_s in (0, 10, 20):
        key = queue.keys.series(START_MS - POINT_MS + after_s * 1000)
        queue.raw.hset(key, mapping={"acked:high": 20, "retried:low": 1, "slots": 4, "capacity": 8})

    page = visitor("view_queue").get(OWN)

    (point,) = [point for point in _json(page, "pq-points") if point["s"]]
    assert point == {
        "t": (START_MS - POINT_MS) // 1000, "s": 30, "acked": [60, 0, 0], "picks": [0, 0, 0], "failed": 3,
        "slots": 12, "capacity": 24,
    }  # fmt: skip
    assert "4.8 %" in text(page)
    assert "50.0 %" in text(page)


def test_causes_lead_to_their_letters_and_payloads_stay_hidden(queue: Queue) -> None:
    queue.buried(number=2, failure=Failure(error="shop.CardDeclined", message="secret 4242"), payload={"pin": "1234"})

    page = visitor("view_queue").get(OWN)

    assert f"2 CardDeclined {HANDLER} +2" in text(page)
    assert "4242" not in page.content.decode()
    assert "1234" not in page.content.decode()


def test_workers_show_their_slots_their_beat_and_what_they_run(queue: Queue) -> None:
    (claim,) = queue.claimed(lane="high")

    overview, workers = (text(visitor("view_queue").get(OWN + path)) for path in ("", "workers/"))

    assert "1/100" in overview
    assert "1 of 100 slots in use" in overview
    assert f"…{claim.job.id[-8:]} {HANDLER} high, from system" in workers


def test_a_worker_without_a_beat_is_late_then_gone(queue: Queue) -> None:
    queue.claimed()
    client = visitor("view_queue")

    queue.clock.advance(queue.settings.heartbeat_s + 1)
    late = text(client.get(OWN))
    queue.clock.advance(queue.settings.heartbeat_s)
    gone = text(client.get(OWN))

    assert "late, 6.0 s" in late
    assert "gone for 11 s, held 1" in gone


# ── the document that keeps it up to date ──


def test_the_document_holds_the_parts_of_the_page_and_only_new_points(queue: Queue) -> None:
    client = visitor("view_queue")

    first = client.get(f"{OWN}data/").json()
    then = client.get(f"{OWN}data/?since={first['points'][-2]['t'] * 1000}").json()

    assert set(first["parts"]) == {"status", "figures", "lanes", "dead", "workers", "services"}
    assert first["parts"]["lanes"].strip() in client.get(OWN).content.decode()
    assert (len(first["points"]), then["points"]) == (120, first["points"][-1:])


def test_an_unchanged_document_is_not_sent_again(queue: Queue) -> None:
    client = visitor("view_queue")
    first = client.get(f"{OWN}data/")

    again = client.get(f"{OWN}data/", headers={"If-None-Match": first["ETag"]})
    queue.enqueue()
    changed = client.get(f"{OWN}data/", headers={"If-None-Match": first["ETag"]})

    assert (again.status_code, again.content, again["Priqueue-As-Of"]) == (304, b"", str(queue.clock.now_ms))
    assert changed.status_code == 200


@pytest.mark.parametrize("since", ["abc", "-1", "9" * 400, "²", "1e9", ""])
def test_nonsense_for_a_time_gives_all_points_or_none(queue: Queue, since: str) -> None:
    document = visitor("view_queue").get(f"{OWN}data/", {"since": since})

    assert document.status_code == 200
    assert len(document.json()["points"]) == 120


# ── lanes ──


@pytest.mark.parametrize("mount", MOUNTS)
def test_a_lane_is_paused_with_reason_and_end_and_everybody_sees_it(queue: Queue, mount: str) -> None:
    client = visitor(*EVERYTHING)

    page = sent(client, f"{mount}lanes/low/pause/", reason="bank\nmaintenance", end="900")

    pause = queue.inspector.paused()["low"]
    assert (pause.reason, pause.until - pause.since) == ("bank maintenance", timedelta(minutes=15))
    assert pause.caller == f"user:{User.objects.get().pk}"
    assert "Lane low is paused until" in text(page)
    for path in ("", "lanes/low/", "workers/"):
        assert "low is paused by user:" in text(client.get(mount + path))


def test_a_pause_may_have_no_end_or_a_time_of_ones_own(queue: Queue) -> None:
    queue.clock.now_ms = now_ms()
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


# ── what others wrote ──


def test_nothing_that_others_wrote_becomes_a_tag(queue: Queue) -> None:
    queue.coordinator.pause("low", caller=f"user:{MARKER}", reason=MARKER)
    queue.buried(failure=Failure(error=MARKER, message=MARKER), caller=f"key:{MARKER}")
    queue.enqueue(lane="low", caller=f"key:{MARKER}")
    queue.enqueue(lane="low", caller=f"key:{MARKER}", delay_ms=9_000)
    queue.coordinator.register("w<img>", lanes=["low"], concurrency=1, version=MARKER)
    client = visitor(*EVERYTHING)

    bodies = [
        client.get(mount + path).content.decode()
        for mount in MOUNTS
        for path in (
            "",
            "lanes/low/",
            "workers/",
            "lanes/low/pause/",
            "lanes/low/resume/",
            "lanes/<img>/",
            "workers/<img>/drain/",
        )
    ]
    parts = client.get(f"{OWN}data/").json()["parts"].values()

    assert not [body for body in [*bodies, *parts] if "<img" in body]


# ── a queue that does not answer ──


@pytest.fixture
def deaf(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let every read of the overview fail from now on; the list grows with each try."""
    tries: list[str] = []

    def fail(*_: Any) -> None:
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
    assert _row(page, "low")["Ready"] == "1,234"
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

    again = client.post(where, form, follow=True)

    assert page.status_code == 503
    assert "it may or may not have been done" in text(page)
    assert "Nothing was done a second time." in text(again)
    assert queue.inspector.paused() == {}


def test_the_rest_of_the_admin_never_asks_the_queue(queue: Queue, deaf: list[str]) -> None:
    client = client_of(User.objects.create_superuser("root"))

    statuses = [client.get(path).status_code for path in ("/admin/auth/user/", "/admin/priqueue/", "/admin/login/")]

    assert (statuses, deaf) == ([200, 200, 302], [])


def _unavailable(*_: Any, **__: Any) -> None:
    raise QueueUnavailable("the queue did not answer: TimeoutError")


def now_ms() -> int:
    return round(now().timestamp() * 1000)


def _json(page: Any, name: str) -> Any:
    return json.loads(re.search(rf'<script id="{name}"[^>]*>(.*?)</script>', page.content.decode(), re.DOTALL)[1])


def _row(page: Any, lane: str) -> dict[str, str]:
    """Return the cells of a lane by their labels."""
    row = re.search(rf'<tr role="row" data-key="{lane}".*?</tr>', page.content.decode(), re.DOTALL)[0]
    cells = re.findall(r'data-label="([^"]+)"[^>]*>(.*?)</td>', row, re.DOTALL)
    return {label: " ".join(re.sub(r"<[^>]+>", " ", cell).split()) for label, cell in cells}


def _with_lanes(queue: Queue, *names: str) -> Any:
    lanes = tuple(lane for lane in queue.settings.lanes if lane.name in names)
    return type(queue.settings)(**{**_fields(queue.settings), "lanes": lanes})


def _fields(settings: Any) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.__dataclass_fields__}
