"""Bulk: all letters of a filter. First they are counted up to a moment, which is the bound; then a run goes through
them in steps, which its page drives. Closing the page stops it, and its address goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.core import signing
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse, QueryDict
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from priqueue import runs
from priqueue.coordinator.letters import Count, Filter, Letter
from priqueue.coordinator.runs import DONE, GOING, STOPPED, Run, said
from priqueue.jobs import from_ms, new_id
from priqueue.views.confirming import Outcome, Question, ReasonForm, confirmed
from priqueue.views.letters import FilterForm, query_of
from priqueue.views.visit import Visit
from priqueue.words import amount, count, duration

_SALT = "priqueue.count"
_GOOD_FOR_S = 3000
_SAMPLES = 5
#: what one request works for; a page asks again as soon as it has the answer
_WORK_S = 0.25


class CountedForm(ReasonForm):
    """Why. It means what was counted when its page was drawn; after a new count it has to be looked at again."""

    def __init__(self, *args: Any, is_old: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        self._is_old = is_old

    def clean(self) -> dict[str, Any]:
        """Refuse a form of an old count."""
        if self._is_old:
            raise forms.ValidationError("The letters were counted too long ago. They are counted again now.")
        return super().clean() or self.cleaned_data


class RateForm(CountedForm):
    """Why, and how fast: a requeue of thousands at once would flood a lane."""

    per_s = forms.TypedChoiceField(
        label="Rate", coerce=int, initial="100", widget=forms.RadioSelect,
        choices=[("100", "100 a second"), ("10", "10 a second"), ("0", "all at once")],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Matching:
    """What is to be done to which letters, how it is told, and where the letters are listed."""

    verb: str
    facts: Sequence[str]
    wanted: Filter
    back: str

    @property
    def about(self) -> str:
        """What a count is of: one of another is not taken for it."""
        return f"{self.verb} {said(self.wanted)}"

    def told(self, number: int, noun: str = "letter") -> str:
        """Return it with a number, as titles and buttons say it."""
        return f"{self.verb.capitalize()} {amount(number, noun)}"


def matching(visit: Visit, verb: str, facts: Sequence[str]) -> HttpResponse:
    """Ask whether all letters that match are meant; when that is confirmed, let a run begin."""
    form = FilterForm(visit.request.GET)
    if not form.is_valid():
        context = {"why": "This filter is not understood, so nothing is done."}
        return visit.render("letters_refused.html", "Which letters?", context, status=400)
    # One that was replaced has its edited copy: requeued, both would run.
    wanted = form.wanted() if verb == "purge" else replace(form.wanted(), replaced=False)
    meant = Matching(verb, facts, wanted, f"{visit.url('letters')}?{query_of(form)}")
    with visit.desk.breaker.trying():
        counted = _counted(visit, meant)
        samples = visit.desk.letters.page(_until(wanted, counted["until_ms"]), size=_SAMPLES).letters
    if counted["cursor"]:
        return _counting(visit, meant, counted)
    if not counted["number"]:
        context = {"why": f"Nothing to {verb} matches: {said(wanted)}."}
        return visit.render("letters_refused.html", f"Nothing to {verb}", context, status=409)
    return _ask(visit, meant, counted, samples)


def _ask(visit: Visit, meant: Matching, counted: dict[str, Any], samples: Sequence[Letter]) -> HttpResponse:
    """Ask for the reason; when it is given, let a run over what was counted begin."""
    number, verb = counted["number"], meant.verb
    is_old = visit.request.method == "POST" and _signed(visit.request, meant) is None
    form = (CountedForm if verb == "purge" else RateForm)(visit.request.POST or None, is_old=is_old)
    question = Question(
        title=f"{meant.told(number, 'dead letter')}?", facts=meant.facts, form=form, back=meant.back,
        button=meant.told(number), danger=verb == "purge", about=None,
        template="bulk.html", crumbs=[("Dead letters", visit.url("letters"))],
        more={
            "samples": samples, "more_samples": max(0, number - len(samples)), "filter": said(meant.wanted),
            "bound": from_ms(counted["until_ms"]), "counted": _sign(counted, meant),
        },
    )  # fmt: skip

    def act(given: dict[str, Any]) -> Outcome:
        run = Run(
            id=new_id(), action=verb, wanted=meant.wanted, reason=given["reason"], until_ms=counted["until_ms"],
            number=number, per_s=given.get("per_s", 0),
        )  # fmt: skip
        runs.begin(run)
        text = f"{verb.capitalize()} of {amount(number, 'letter')} has begun."
        return Outcome(text, visit.url(f"{verb}_run", run=run.id))

    return confirmed(visit, question, act)


def _until(wanted: Filter, until_ms: int) -> Filter:
    bound = from_ms(until_ms)
    return replace(wanted, until=bound if wanted.until is None else min(wanted.until, bound))


def _counted(visit: Visit, meant: Matching) -> dict[str, Any]:
    """Return how many letters are meant so far, of those that were buried before a moment, and where to count on.

    What was counted travels in address and form, signed with what it is of, so that a form that is sent counts nothing.
    """
    reader = visit.desk.letters
    before = _signed(visit.request, meant)
    if before is None:
        before = {"number": 0, "cursor": "", "until_ms": reader.now_ms() - 1, "ended": False}
    if before["ended"]:
        return before
    found: Count = reader.count(_until(meant.wanted, before["until_ms"]), before["cursor"])
    return {**before, "number": before["number"] + found.number, "cursor": found.cursor, "ended": not found.cursor}


def _signed(request: HttpRequest, meant: Matching) -> dict[str, Any] | None:
    try:
        text = request.POST.get("counted") or request.GET.get("counted", "")
        found = signing.loads(text, salt=_SALT, max_age=_GOOD_FOR_S)
    except signing.BadSignature:
        return None
    return dict(found["count"]) if found["about"] == meant.about else None


def _sign(counted: dict[str, Any], meant: Matching) -> str:
    return signing.dumps({"about": meant.about, "count": counted}, salt=_SALT)


def _counting(visit: Visit, meant: Matching, counted: dict[str, Any]) -> HttpResponse:
    """Say how many there are at least, and let the page ask on."""
    query = QueryDict(visit.request.GET.urlencode(), mutable=True)
    query["counted"] = _sign(counted, meant)
    following = f"?{query.urlencode()}"
    if "application/json" in visit.request.headers.get("Accept", ""):
        return JsonResponse({"number": count(counted["number"]), "next": following})
    context = {
        "number": counted["number"], "next": following, "filter": said(meant.wanted), "back": meant.back,
        "bound": from_ms(counted["until_ms"]),
    }  # fmt: skip
    title, crumbs = f"{meant.verb.capitalize()} all that match?", [("Dead letters", visit.url("letters"))]
    return visit.render("counting.html", title, context, crumbs=crumbs)


def run_of_requeue(visit: Visit, run: str) -> HttpResponse:
    """Show and drive a requeue."""
    return _run(visit, "requeue", run)


def run_of_purge(visit: Visit, run: str) -> HttpResponse:
    """Show and drive a purge."""
    return _run(visit, "purge", run)


def _run(visit: Visit, verb: str, run_id: str) -> HttpResponse:
    with visit.desk.breaker.trying():
        run = visit.desk.letters.run(run_id)
    if run is None or run.action != verb:
        why = "There is no such run, or its last step is more than a week ago. The audit log knows more."
        return visit.render("letters_refused.html", "No such run", {"why": why}, status=404)
    if visit.request.method == "POST":
        with visit.desk.changing():
            run = _drive(visit, run, visit.request.POST.get("do", ""))
        if "application/json" in visit.request.headers.get("Accept", ""):
            return JsonResponse(_told(visit, run))
        return HttpResponseRedirect(visit.request.path)
    visit.people.expect([run.steered_by])
    context: dict[str, Any] = {
        "run": run, "told": _told(visit, run), "filter": said(run.wanted), "bound": from_ms(run.until_ms),
        "audit": _audit(visit, run), "steered": from_ms(run.steered_ms),
    }  # fmt: skip
    state = {GOING: "in progress", STOPPED: "stopped", DONE: "done"}[run.state]
    title = f"{verb.capitalize()} of {amount(run.number, 'letter')}: {state}"
    return visit.render("run.html", title, context, crumbs=[("Dead letters", visit.url("letters"))])


def _drive(visit: Visit, run: Run, do: str) -> Run:
    if do == "work":
        return runs.work(run, visit.desk.letters, _WORK_S)
    if do == "stop":
        runs.stop(run)
    if do == "go on":
        runs.go_on(run)
    return visit.desk.letters.run(run.id) or run


def _told(visit: Visit, run: Run) -> dict[str, Any]:
    """Return how far a run is, for people and for the page that drives it."""
    wait_ms = max(0, run.next_ms - visit.desk.letters.now_ms()) if run.per_s and run.state == GOING else 0
    gone = run.number - run.done - run.alone if run.state == DONE else 0
    parts = [f"{run.action}d {run.done:,} of {run.number:,}"]
    parts += [f"left {run.alone:,} alone"] if run.alone else []
    parts += [f"{gone:,} were gone already"] if gone > 0 else []
    parts += [f"{run.left:,} left"] if run.left else []
    parts += [f"about {duration(run.left / run.per_s)} to go"] if run.left and run.per_s and run.state == GOING else []
    done = run.done + run.alone if run.state != DONE else run.number
    return {
        "state": run.state, "text": ", ".join(parts), "done": min(done, run.number), "number": run.number,
        "wait_ms": wait_ms,
    }  # fmt: skip


def _audit(visit: Visit, run: Run) -> dict[str, str] | None:
    """Return where the audit log has a run's own rows, and those of its letters; None where nobody may look."""
    if not visit.may("view_auditevent"):
        return None
    try:
        log = reverse("admin:priqueue_auditevent_changelist")
    except NoReverseMatch:  # a project without the admin
        return None
    own, rows = QueryDict(mutable=True), QueryDict(mutable=True)
    own["correlation_id"] = run.id
    end_ms = run.steered_ms if run.state != GOING else visit.desk.letters.now_ms()
    rows.update({
        "action": run.action, "caller": run.steered_by, "since": _second(run.begun_ms),
        "until": _second(end_ms + 1000),
    })  # fmt: skip
    return {"own": f"{log}?{own.urlencode()}", "rows": f"{log}?{rows.urlencode()}"}


def _second(ms: int) -> str:
    return f"{timezone.localtime(from_ms(ms)):%Y-%m-%dT%H:%M:%S}"
