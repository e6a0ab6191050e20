"""API keys in the admin: made, narrowed and revoked. The token is shown once, on the page that answers its making.

It is never put where it would outlive that page: not into a message, a session or the admin's own log.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from priqueue import apikeys, callers, jobs, wiring
from priqueue.handlers import registry
from priqueue.limits import Limit
from priqueue.middleware import caller_of
from priqueue.models import ApiKey
from priqueue.views import reading

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[ApiKey]
    _Form = forms.ModelForm[ApiKey]
else:
    _Admin = admin.ModelAdmin
    _Form = forms.ModelForm

_ANY = (apikeys.ALL, "all of them")


@contextmanager
def _acting(request: HttpRequest) -> Iterator[None]:
    """Let what is done inside be done by the request's user, also in a project without our middleware.

    It is noted with the patience of a page, as the admin is to be there also while the queue is away.
    """
    who, correlation_id = caller_of(request), callers.correlation_id() or jobs.new_id()
    with callers.acting_as(who, correlation_id=correlation_id), wiring.acting_through(reading.desk().coordinator):
        yield


class ApiKeyForm(_Form):
    """What a key may use. A lane or handler that is not there any more stays chosen until somebody takes it out."""

    lanes = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple)
    handlers = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple)

    class Meta:
        """The rest is set by the code."""

        model = ApiKey
        fields = ("name", "lanes", "handlers", "rate", "expires_at")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        open_handlers = [handler.name for handler in registry if handler.api]
        for name, known in (("lanes", wiring.settings().lane_names), ("handlers", open_handlers)):
            chosen: Iterable[str] = getattr(self.instance, name)
            names = dict.fromkeys([*known, *(each for each in chosen if each != apikeys.ALL)])
            field = self.fields[name]
            assert isinstance(field, forms.MultipleChoiceField)
            field.choices = [_ANY, *((each, each) for each in names)]

    def clean_rate(self) -> str:
        """Refuse what is no limit."""
        rate: str = self.cleaned_data["rate"]
        try:
            return str(Limit.parse(rate)) if rate else ""
        except ValueError as fault:
            raise ValidationError(str(fault)) from None


@admin.register(ApiKey)
class ApiKeyAdmin(_Admin):
    """API keys, without their secrets."""

    form = ApiKeyForm
    list_display = ("name", "prefix", "rate", "created_at", "expires_at", "revoked_at", "last_used_at")
    search_fields = ("name", "prefix")
    readonly_fields = ("prefix", "created_at", "revoked_at", "last_used_at")
    actions = ("revoke",)

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> tuple[str, ...]:
        """Keep the name of a key that is made: it is the caller of its jobs."""
        return (*self.readonly_fields, "name") if obj else self.readonly_fields

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        """Give a new key its secret, and keep the token for the answer to this very request."""
        if not change:
            request._priqueue_token = apikeys.furnish(obj)  # type: ignore[attr-defined]
        super().save_model(request, obj, form, change)
        with _acting(request):
            apikeys.note(*(("change", obj, "changed") if change else ("create", obj, "created")))

    def delete_model(self, request: HttpRequest, obj: ApiKey) -> None:
        """Delete a key, which revokes it."""
        super().delete_model(request, obj)
        with _acting(request):
            apikeys.note("revoke", obj, "deleted")

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """Delete keys, which revokes them."""
        gone = list(queryset)
        super().delete_queryset(request, queryset)
        with _acting(request):
            for key in gone:
                apikeys.note("revoke", key, "deleted")

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None) -> HttpResponse:
        """Show the token."""
        context = {
            **self.admin_site.each_context(request),
            "title": "API key made", "opts": self.opts, "key": obj,
            "token": request._priqueue_token,  # type: ignore[attr-defined]
        }  # fmt: skip
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "priqueue/apikey_made.html", context)

    @admin.action(description="Revoke selected API keys", permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """Let the keys open the door no more."""
        with _acting(request):
            number = apikeys.revoke(list(queryset))
        self.message_user(request, f"{number} of {queryset.count()} keys revoked.", messages.SUCCESS)
