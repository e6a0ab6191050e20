"""Confirming: before every change a page that says what will happen; its form, sent twice, acts once.

Each page carries a new signed token. The queue's own store keeps who sent it first and what came of it, so that a
double click, the back button or a second web process meets the outcome and not a second act.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from django import forms
from django.contrib import messages
from django.core import signing
from django.http import HttpResponse, HttpResponseRedirect
from django.utils.crypto import get_random_string

from priqueue.coordinator import INTENDED
from priqueue.views.noting import note, try_to_note
from priqueue.views.visit import Crumb, Visit

_SALT = "priqueue.form"
#: shorter than outcomes are kept
_GOOD_FOR_S = 3000
_LEVELS = {"success": messages.SUCCESS, "warning": messages.WARNING, "error": messages.ERROR}


class ReasonForm(forms.Form):
    """Why. In a text of several lines, in which the enter key sends nothing."""

    reason = forms.CharField(
        max_length=500, widget=forms.Textarea(attrs={"rows": 2, "autofocus": True, "maxlength": 500}),
        help_text="Kept in the audit log, with your name.",
    )  # fmt: skip

    def clean_reason(self) -> str:
        """Return it in one line."""
        return " ".join(str(self.cleaned_data["reason"]).split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a confirmation page says and asks."""

    title: str
    #: sentences: what, how many, what happens next, whether it can be undone
    facts: Sequence[str]
    #: repeats verb and number
    button: str
    back: str
    form: forms.Form
    crumbs: Sequence[Crumb] = ()
    danger: bool = False
    #: what it is done to, for the audit log, where the address does not name it; None for what notes by itself
    about: str | None = ""
    template: str = "confirm.html"
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it, and where to go on. ``level``: success, warning (done in part) or error (nothing was done)."""

    text: str
    url: str
    level: str = "success"
    #: what the audit log keeps of it, where that is less: names of users are for pages, which look them up each time
    noted: str = ""


def confirmed(visit: Visit, question: Question, act: Callable[[dict[str, Any]], Outcome]) -> HttpResponse:
    """Ask a question; when its form is sent, act with its values, once, and go where the outcome says."""
    if visit.request.method != "POST":
        return _ask(visit, question)
    token = visit.request.POST.get("token", "")
    if not _is_ours(visit, token):
        return _ask(visit, question, fault="This page is too old. Look at it once more, and send it again.")
    if not question.form.is_valid():
        return _ask(visit, question, token=token)
    with visit.desk.breaker.trying():
        earlier = visit.desk.forms.begin(_key(token))
    if earlier is not None:
        return _again(visit, question, earlier)
    reason = question.form.cleaned_data["reason"]
    if question.about is not None:
        note(visit, INTENDED, about=question.about, reason=reason)
    with visit.desk.changing():
        outcome = act(question.form.cleaned_data)
        visit.desk.forms.finish(_key(token), json.dumps(asdict(outcome)))
    if question.about is not None:
        try_to_note(visit, outcome.noted or outcome.text, about=question.about, reason=reason)
    return _told(visit, outcome)


def _ask(visit: Visit, question: Question, *, token: str = "", fault: str = "") -> HttpResponse:
    said = {"question": question, "form": question.form, "token": token or _new(visit), "fault": fault}
    status = 422 if question.form.errors or fault else 200
    return visit.render(
        question.template, question.title, {**question.more, **said}, crumbs=question.crumbs, status=status
    )


def _again(visit: Visit, question: Question, earlier: str) -> HttpResponse:
    if not earlier:
        text = "This was sent before, and has not come to its end or got no answer. Nothing was done a second time."
        return _told(visit, Outcome(text, question.back, "warning"))
    first = Outcome(**json.loads(earlier))
    return _told(visit, Outcome(f"{first.text} This was sent before; it was done once.", first.url, first.level))


def _told(visit: Visit, outcome: Outcome) -> HttpResponse:
    """Say it on the next page; where the project has no messages, on a page of its own."""
    try:
        messages.add_message(visit.request, _LEVELS[outcome.level], outcome.text)
    except messages.MessageFailure:
        return visit.render("outcome.html", "Done" if outcome.level == "success" else "Result", {"outcome": outcome})
    return HttpResponseRedirect(outcome.url)


def _new(visit: Visit) -> str:
    return signing.TimestampSigner(salt=_SALT).sign(f"{_owner(visit)}|{get_random_string(22)}")


def _is_ours(visit: Visit, token: str) -> bool:
    """Return whether a token was given to this visitor, for this page, not long ago."""
    try:
        said = signing.TimestampSigner(salt=_SALT).unsign(token, max_age=_GOOD_FOR_S)
    except signing.BadSignature:
        return False
    return said.rpartition("|")[0] == _owner(visit)


def _owner(visit: Visit) -> str:
    return f"{visit.request.user.pk}|{visit.request.path}"


def _key(token: str) -> str:
    """Return the part of a token that no other has."""
    return token.rpartition("|")[2].partition(":")[0]
