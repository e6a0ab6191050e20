"""Lanes: what waits in one, and to stop and start it."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.http import HttpResponse
from django.utils import timezone

from priqueue import operations
from priqueue.coordinator.overview import Snapshot
from priqueue.jobs import now
from priqueue.views.board import LaneRow, board
from priqueue.views.confirming import Outcome, Question, ReasonForm, confirmed
from priqueue.views.visit import Visit
from priqueue.words import amount, count, rate

_SHOWN = 50
_OPEN, _UNTIL = "open", "until"
_LONGEST = timedelta(days=365)


class PauseForm(ReasonForm):
    """Why, and for how long."""

    end = forms.ChoiceField(
        label="It ends", initial="3600", widget=forms.RadioSelect,
        choices=[
            ("900", "in 15 minutes"), ("3600", "in 1 hour"), (_UNTIL, "at …"), (_OPEN, "when somebody resumes it"),
        ],
    )  # fmt: skip
    until = forms.DateTimeField(
        required=False, label="At",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )  # fmt: skip

    def clean(self) -> dict[str, Any]:
        """Hold the two fields of the end together."""
        said = super().clean() or self.cleaned_data
        until = said.get("until")
        if said.get("end") == _UNTIL and not self.errors and (until is None or until <= now()):
            self.add_error("until", "Say a time that is to come.")
        if until is not None and until > now() + _LONGEST:
            self.add_error("until", "Say a time within a year.")
        return said

    def lasts_s(self) -> float | None:
        """Return how long, from now on; None is until it is resumed. Only of a form that is valid."""
        end = self.cleaned_data["end"]
        if end == _UNTIL:
            until: datetime = self.cleaned_data["until"]
            return max(1.0, (until - now()).total_seconds())
        return None if end == _OPEN else float(end)


def lane(visit: Visit, lane: str) -> HttpResponse:
    """Show a lane: its figures, its head and what is due next."""
    snapshot = visit.now()
    if not _is_known(lane, snapshot):
        return _unknown(visit, lane, snapshot)
    with visit.desk.breaker.trying():
        head, due = visit.desk.lanes.head(lane, _SHOWN), visit.desk.lanes.next_due(lane, _SHOWN)
    row = _row(lane, snapshot, visit)
    visit.people.expect(job.caller for job in (*head, *due))
    context = {
        "row": row, "name": lane, "head": head, "due": due, "left_behind": snapshot.stats.left_behind.get(lane),
        "forecast": row and _forecast(row), "shown": _SHOWN, "paused": row and row.stats.paused,
    }  # fmt: skip
    return visit.render("lane.html", f"Lane {lane}", context)


def pause(visit: Visit, lane: str) -> HttpResponse:
    """Pause a lane, or give its pause another end."""
    snapshot = visit.now()
    row = _row(lane, snapshot, visit)
    if row is None:
        return _unknown(visit, lane, snapshot)
    form = PauseForm(visit.request.POST or None, initial=_known_pause(row))
    others = [other for other in snapshot.stats.lanes if other != lane]
    question = Question(
        title=f"Change the pause of {lane}?" if row.stats.paused else f"Pause {lane}?",
        facts=[
            f"New claims from {lane} stop. {amount(row.stats.in_flight, 'job')} in flight will finish.",
            f"Enqueueing goes on: {amount(row.stats.ready, 'job is', 'jobs are')} ready{_growing(row)}.",
            *([f"Its share goes to {' and '.join(others)}."] if others else []),
            "Resume undoes it at any time.",
        ],
        button="Change the pause" if row.stats.paused else f"Pause {lane}",
        back=visit.url("lane", lane=lane), form=form, crumbs=[(f"Lane {lane}", visit.url("lane", lane=lane))],
    )  # fmt: skip

    def act(said: dict[str, Any]) -> Outcome:
        lasts_s = form.lasts_s()
        operations.pause(lane, said["reason"], lasts_s)
        end = "until somebody resumes it"
        if lasts_s is not None:
            end = f"until {_local(now() + timedelta(seconds=lasts_s))}"
        return Outcome(f"Lane {lane} is paused {end}: {said['reason']}", question.back)

    return confirmed(visit, question, act)


def resume(visit: Visit, lane: str) -> HttpResponse:
    """End the pause of a lane."""
    snapshot = visit.now()
    row = _row(lane, snapshot, visit)
    ready = row.stats.ready if row else snapshot.stats.left_behind.get(lane, 0)
    pause = row.stats.paused if row else None
    question = Question(
        title=f"Resume {lane}?",
        facts=[
            *([f"{visit.people.told(pause.caller)} paused it: {pause.reason}"] if pause else []),
            f"Workers take from {lane} again at once: {amount(ready, 'job is', 'jobs are')} ready.",
            "It can be paused again at any time.",
        ],
        button=f"Resume {lane}", back=visit.url("lane", lane=lane), form=ReasonForm(visit.request.POST or None),
        crumbs=[(f"Lane {lane}", visit.url("lane", lane=lane))],
    )  # fmt: skip

    def act(said: dict[str, Any]) -> Outcome:
        if operations.resume(lane, said["reason"]):
            return Outcome(f"Lane {lane} is resumed: {said['reason']}", question.back)
        return Outcome(f"Lane {lane} was not paused any more. Nothing was changed.", question.back, "warning")

    return confirmed(visit, question, act)


def _unknown(visit: Visit, lane: str, snapshot: Snapshot) -> HttpResponse:
    context = {"name": lane, "names": list(snapshot.stats.lanes)}
    return visit.render("no_lane.html", "No such lane", context, status=404)


def _is_known(lane: str, snapshot: Snapshot) -> bool:
    return lane in snapshot.stats.lanes or lane in snapshot.stats.left_behind


def _row(lane: str, snapshot: Snapshot, visit: Visit) -> LaneRow | None:
    rows = board(snapshot, visit.desk.settings).lanes
    return next((row for row in rows if row.name == lane), None)


def _known_pause(row: LaneRow) -> dict[str, Any]:
    pause = row.stats.paused
    if pause is None:
        return {}
    end = {"end": _UNTIL, "until": timezone.localtime(pause.until)} if pause.until else {"end": _OPEN}
    return {"reason": pause.reason, **end}


def _growing(row: LaneRow) -> str:
    return f", and {rate(row.in_per_s)} a second come in" if row.in_per_s else ""


def _forecast(row: LaneRow) -> str:
    """Return how many will be ready when a pause ends, if as many come in as in the last minute."""
    pause = row.stats.paused
    if pause is None or pause.until is None or not row.in_per_s:
        return ""
    left_s = max(0.0, (pause.until - now()).total_seconds())
    return f"about {count(row.stats.ready + round(row.in_per_s * left_s))} ready by {_local(pause.until)}"


def _local(at: datetime) -> str:
    return f"{timezone.localtime(at):%H:%M %Z}"
