"""Views: the metrics, for who shows the token or is signed in as staff."""

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from priqueue import wiring
from priqueue.metrics.collector import QueueCollector

_registry = CollectorRegistry()
_registry.register(QueueCollector(wiring.door_inspector))


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Return every metric, in the format that the scraper asks for."""
    if not _may_see(request):
        return HttpResponse(
            "Send the token of METRICS_TOKEN as a bearer token, or sign in as staff.\n",
            status=401, content_type="text/plain", headers={"WWW-Authenticate": 'Bearer realm="metrics"'},
        )  # fmt: skip
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(_registry), content_type=content_type)


def _may_see(request: HttpRequest) -> bool:
    token = wiring.settings().metrics_token
    scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
    if token and scheme.lower() == "bearer" and constant_time_compare(shown.strip(), token):
        return True
    user = getattr(request, "user", None) or AnonymousUser()
    return bool(user.is_active and user.is_staff)
