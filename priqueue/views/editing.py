"""Editing: an edited copy of a dead job is enqueued; the letter stays, and says so."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpResponse, QueryDict

from priqueue import dead_letters
from priqueue.coordinator.letters import OpenedLetter
from priqueue.exceptions import InvalidPayload, UnknownHandler
from priqueue.handlers import loads_strict, registry
from priqueue.jobs import new_id
from priqueue.views import taken
from priqueue.views.confirming import Outcome, Question, ReasonForm, confirmed
from priqueue.views.letter import letter as show_letter
from priqueue.views.letter import pretty
from priqueue.views.visit import Visit
from priqueue.views.way import way
from priqueue.words import short_id


class EditForm(ReasonForm):
    """The payload as it shall be, and why."""

    payload = forms.CharField(
        strip=False,
        widget=forms.Textarea(attrs={"rows": 16, "spellcheck": "false", "class": "pq-code", "autofocus": True}),
        help_text="JSON. It is held to the arguments of the handler before anything is enqueued.",
    )  # fmt: skip
    field_order = ("payload", "reason")

    def __init__(self, *args: Any, handler: str, max_bytes: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self._handler, self._max_bytes = handler, max_bytes
        self.fields["reason"].widget.attrs.pop("autofocus", None)

    def clean_payload(self) -> dict[str, Any]:
        """Return the payload, if the handler takes it; each fault names its argument."""
        try:
            payload = loads_strict(self.cleaned_data["payload"])
            registry.get(self._handler).accept(payload, max_bytes=self._max_bytes)
        except (InvalidPayload, UnknownHandler) as fault:
            raise ValidationError(str(fault).removeprefix(f"{self._handler}: ").split("; ")) from fault
        return dict(payload)


def edit(visit: Visit, job: str) -> HttpResponse:
    """Edit the payload of a dead job, and enqueue that as a new job."""
    with visit.desk.breaker.trying():
        opened = visit.desk.letters.open(job)
    if opened is None:
        return show_letter(visit, job)
    came = way(visit)
    back = came.to("letter", job)
    crumbs = [("Dead letters", came.listed(job)), (short_id(job), back)]
    if opened.letter.replaced_by and visit.request.method != "POST":
        by, _ = taken.told(visit, [job])
        why = f"Job {opened.letter.replaced_by} was enqueued in its place already. {by}".rstrip()
        context = {"why": why, "letters": [opened.letter], "back": came.listed(job)}
        return visit.render("letters_refused.html", "Replaced already", context, crumbs=crumbs, status=409)
    form = EditForm(
        visit.request.POST or None, initial={"payload": pretty(opened.job)}, handler=opened.job.name,
        max_bytes=visit.desk.settings.max_payload_bytes,
    )  # fmt: skip
    question = Question(
        title="Edit and requeue?", facts=_facts(opened), button="Enqueue the edited job", back=back, form=form,
        crumbs=crumbs, template="edit.html", more={"original": pretty(opened.job)},
    )  # fmt: skip

    def act(said: dict[str, Any]) -> Outcome:
        copy_id = new_id()
        found = dead_letters.replace(job, said["payload"], reason=said["reason"], copy_id=copy_id)
        if found == copy_id:
            text = f"Enqueued {copy_id}, the edited copy. The letter stays, and says so."
            return Outcome(text, came.on() if came.here else _where(visit, copy_id))
        by, _ = taken.told(visit, [job])
        why = f"Somebody was faster: {found} was enqueued in its place." if found else "It is no dead letter any more."
        noted = f"{why} Nothing was changed."
        return Outcome(f"{why} {by} Nothing was changed." if by else noted, back, "error", noted)

    return confirmed(visit, question, act)


def _facts(opened: OpenedLetter) -> list[str]:
    return [
        f"A new {opened.job.name} goes to the end of {opened.job.lane}, with all its attempts before it.",
        "This letter stays as it is, marked as replaced, and cannot be requeued any more.",
        "The new job can be cancelled while it waits.",
    ]


def _where(visit: Visit, job_id: str) -> str:
    query = QueryDict(mutable=True)
    query["id"] = job_id
    return f"{visit.url('jobs')}?{query.urlencode()}"
