"""The queue's pages: who is told what, the overview, and the document that keeps it up to date."""

import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from priqueue.coordinator.series import POINT_MS
from priqueue.jobs import Failure, now
from priqueue.views import noting
from tests.support.queues import HANDLER, START_MS, Clock, Queue
from tests.support.trips import trips_of
from tests.support.visiting import ADMIN, EVERYTHING, OWN, lane_row, shown_queue, text, visitor

pytestmark = pytest.mark.django_db
queue = shown_queue
MOUNTS = (ADMIN, OWN)


# ── who may ──


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


def test_a_caller_is_denied_in_the_audit_log_once_a_minute_for_each_kind_of_page_and_else_in_the_log(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    minutes = Clock(0)
    monkeypatch.setattr(noting, "wall_ms", minutes)
    one, other = visitor("view_queue"), visitor("view_queue")
    pause, cancel, purge = f"{OWN}lanes/low/pause/", f"{OWN}jobs/{{}}/cancel/", f"{OWN}dead/purge/x%0aCRITICAL/"

    for client, where in ((one, pause), (one, purge), (one, purge), (other, pause)):
        client.get(where)
    for number in range(3):
        assert one.get(cancel.format(number)).status_code == 403
    minutes.advance(60)
    one.get(cancel.format(3))

    rows = [event for _, event in queue.raw.xrange(queue.keys.audit)]
    assert [(row["caller"], row["input"]) for row in rows] == [
        (_name(0), pause), (_name(0), f"{OWN}dead/purge/x\nCRITICAL/"), (_name(1), pause), (_name(0), cancel.format(0)),
        (_name(0), cancel.format(3)),
    ]  # fmt: skip
    assert [record.getMessage() for record in caplog.records if record.name.startswith("priqueue")] == [
        f"denied again within a minute: {_name(0)} at {where}: needs priqueue.{missing}"
        for where, missing in (
            (f"{OWN}dead/purge/x\\x0aCRITICAL/", "purge_letter"), (cancel.format(1), "cancel_job"),
            (cancel.format(2), "cancel_job"),
        )
    ]  # fmt: skip


def _name(number: int) -> str:
    """Return the caller of the visitor who was made as the ``number``-th."""
    return f"user:{User.objects.order_by('pk')[number].pk}"


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
    queue.clock.now_ms = round(now().timestamp() * 1000) + 2_000

    row = lane_row(visitor("view_queue").get(OWN), "low")

    assert row["Ready"] == "2"
    assert row["Delayed"] == "1"
    assert row["Oldest"].startswith("2.")
    assert row["Share"].startswith("\u2013")


def test_the_share_is_shown_beside_what_the_weight_promises_once_enough_picks_were_made(queue: Queue) -> None:
    key = queue.keys.series(START_MS - 10_000)
    queue.raw.hset(key, mapping={"picks_full:high": 59, "picks_full:default": 31, "picks_full:low": 10})

    page = visitor("view_queue").get(OWN)

    assert lane_row(page, "high")["Share"] == "59.0 %"
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

    assert set(first["parts"]) == {"status", "figures", "lanes", "dead", "workers", "services", "marks"}
    assert first["parts"]["lanes"].strip() in client.get(OWN).content.decode()
    assert (len(first["points"]), then["points"]) == (120, first["points"][-1:])


def test_an_unchanged_document_is_not_sent_again(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    # The server's memory is everybody's: another test may have it grow between two looks.
    monkeypatch.setattr("priqueue.coordinator.inspection.memory_of", lambda _: (1024, 0))
    client = visitor("view_queue")
    first = client.get(f"{OWN}data/")

    again = client.get(f"{OWN}data/", headers={"If-None-Match": first["ETag"]})
    queue.enqueue()
    changed = client.get(f"{OWN}data/", headers={"If-None-Match": first["ETag"]})

    assert (again.status_code, again.content, again["Priqueue-As-Of"]) == (304, b"", str(queue.clock.now_ms))
    assert changed.status_code == 200


def test_a_poll_is_two_round_trips_and_one_more_when_there_are_points(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = visitor("view_queue")
    last = client.get(f"{OWN}data/").json()["points"][-1]["t"] * 1000
    trips = trips_of(monkeypatch)

    client.get(f"{OWN}data/?since={last}")
    polled = len(trips)
    client.get(f"{OWN}data/?since={last - POINT_MS}")

    assert (polled, len(trips) - polled) == (2, 3)


@pytest.mark.parametrize("since", ["abc", "-1", "9" * 400, "²", "1e9", ""])
def test_nonsense_for_a_time_gives_all_points_or_none(queue: Queue, since: str) -> None:
    document = visitor("view_queue").get(f"{OWN}data/", {"since": since})

    assert document.status_code == 200
    assert len(document.json()["points"]) == 120


def _json(page: Any, name: str) -> Any:
    return json.loads(re.search(rf'<script id="{name}"[^>]*>(.*?)</script>', page.content.decode(), re.DOTALL)[1])
