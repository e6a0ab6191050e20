"""Tending: to requeue or purge letters: one, those that were selected, or all that match a filter."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpResponse

from priqueue import dead_letters
from priqueue.coordinator.letters import Letter
from priqueue.dead_letters import Selection
from priqueue.views import bulk, taken
from priqueue.views.confirming import Outcome, Question, ReasonForm, confirmed
from priqueue.views.visit import Visit
from priqueue.views.way import Way, way
from priqueue.words import amount, short_id

_MOST = 100
_SAMPLES = 5


@dataclass(frozen=True, slots=True)
class Deed:
    """What is done to letters, and how it is told."""

    verb: str
    past: str
    do: Callable[..., int]
    facts: Sequence[str]
    danger: bool


REQUEUE = Deed(
    "requeue", "Requeued", dead_letters.requeue, [
        "Each goes to the end of its lane, with a fresh count of attempts.",
        "It may repeat what its attempts already did.",
        "This is not undone, but each can be cancelled while it waits.",
    ], danger=False,
)  # fmt: skip
PURGE = Deed(
    "purge", "Purged", dead_letters.purge, [
        "Payloads and traces are removed for good. This cannot be undone.", "The rows of the audit log stay.",
    ], danger=True,
)  # fmt: skip


class ChosenForm(ReasonForm):
    """Why, and when the letters were looked at: what is buried later is left alone."""

    until_ms = forms.IntegerField(widget=forms.HiddenInput, min_value=0, max_value=2**53)

    def clean_until_ms(self) -> int:
        """Return it; a time to come would mean letters that nobody has seen."""
        return min(int(self.cleaned_data["until_ms"]), int(self.initial["until_ms"]))


def requeue(visit: Visit, job: str | None = None) -> HttpResponse:
    """Requeue one letter, those selected, or all that match."""
    return _tend(visit, REQUEUE, job)


def purge(visit: Visit, job: str | None = None) -> HttpResponse:
    """Purge one letter, those selected, or all that match."""
    return _tend(visit, PURGE, job)


def _tend(visit: Visit, deed: Deed, job: str | None) -> HttpResponse:
    ids = [job] if job else list(dict.fromkeys(visit.request.GET.getlist("id")))[: _MOST + 1]
    if not ids:
        return bulk.matching(visit, deed.verb, deed.facts)
    if len(ids) > _MOST:
        context = {"why": f"At most {_MOST} letters can be selected. Use a filter for more."}
        return visit.render("letters_refused.html", "Too many selected", context, status=400)
    return _chosen(visit, deed, ids, one=bool(job))


def _chosen(visit: Visit, deed: Deed, ids: Sequence[str], *, one: bool) -> HttpResponse:
    with visit.desk.breaker.trying():
        now_ms, letters = visit.desk.letters.now_ms(), visit.desk.letters.among(ids)
    fit = [letter for letter in letters if deed is PURGE or not letter.replaced_by]
    form = ChosenForm(visit.request.POST or None, initial={"until_ms": now_ms})
    came = way(visit)
    sent = visit.request.method == "POST"
    if not fit and not sent:
        context = {"why": _why_none(visit, ids, letters), "letters": letters, "back": came.listed()}
        return visit.render("letters_refused.html", f"Nothing to {deed.verb}", context, status=409)
    question = Question(
        title=f"{deed.verb.capitalize()} {amount(len(fit), 'dead letter')}?",
        facts=[*_left_out(visit, ids, letters, fit), *deed.facts],
        button=f"{deed.verb.capitalize()} {amount(len(fit), 'letter')}", form=form, danger=deed.danger,
        back=came.to("letter", ids[0]) if one else came.listed(),
        about="" if one else f"{amount(len(ids), 'letter')}: {', '.join(ids)}",
        template="tend.html", crumbs=_crumbs(came, ids[0] if one else ""),
        more={"samples": fit[:_SAMPLES], "more_samples": max(0, len(fit) - _SAMPLES)},
    )  # fmt: skip

    def act(said: dict[str, Any]) -> Outcome:
        at_last = came.at_last_of(ids)
        done = deed.do(Selection(ids=list(ids), until_ms=said["until_ms"]), reason=said["reason"])
        if done == len(ids):
            return Outcome(f"{deed.past} {amount(done, 'letter')}: {said['reason']}.", at_last.on())
        noted = f"{deed.past} {done:,} of {amount(len(ids), 'letter')}."
        left = _not_done(visit, _without(ids, fit), len(ids) - done)
        return Outcome(f"{noted} {left}", at_last.on(), "warning" if done else "error", noted)

    return confirmed(visit, question, act)


def _without(ids: Sequence[str], letters: Sequence[Letter]) -> list[str]:
    found = {letter.id for letter in letters}
    return [job_id for job_id in ids if job_id not in found]


def _not_done(visit: Visit, left: Sequence[str], number: int) -> str:
    """Return why some were left alone: who took or replaced them, where that is known, and what else it may be."""
    text, known = taken.told(visit, left)
    if known >= number:
        return text
    others = amount(number - known, "other was", "others were")
    return f"{text} {others} gone, replaced, or buried anew meanwhile, and left alone.".lstrip()


def _why_none(visit: Visit, ids: Sequence[str], letters: Sequence[Letter]) -> str:
    text, _ = taken.told(visit, ids)
    if not letters:
        return f"None of these is a dead letter any more. {text or 'Somebody else was faster.'}"
    return f"An edited copy was enqueued in place of each of these. Requeued, both would run. {text}".rstrip()


def _left_out(visit: Visit, ids: Sequence[str], letters: Sequence[Letter], fit: Sequence[Letter]) -> list[str]:
    gone, replaced = len(ids) - len(letters), len(letters) - len(fit)
    went, copied = amount(gone, "letter is", "letters are"), amount(replaced, "letter was", "letters were")
    by, _ = taken.told(visit, _without(ids, fit))
    return [
        *([f"{went} gone meanwhile, and left out."] if gone else []),
        *([f"{copied} replaced by edited copies, and left out."] if replaced else []),
        *([by] if by else []),
    ]


def _crumbs(came: Way, job: str) -> list[tuple[str, str]]:
    listed = [("Dead letters", came.listed(job))]
    return [*listed, (short_id(job), came.to("letter", job))] if job else listed
