"""Probes: what a load balancer or an orchestrator asks of the web process. Mounted by ``include("priqueue.probes")``.

``healthz`` says that the process serves; a queue that is away is no reason to restart it. ``readyz`` says that the
configuration is valid and the queue answers. Both speak to anybody, so they tell nothing else.
"""

from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from priqueue import wiring
from priqueue.exceptions import ConfigurationError, PriqueueError


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """Return 200: who gets this answer, knows that the process serves."""
    return _plain("ok")


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """Return 200 when jobs can be taken in, else 503, within two seconds."""
    try:
        wiring.door_inspector().now_ms()
    except ConfigurationError:
        return _plain("not ready: the configuration is at fault; see manage.py check", 503)
    except PriqueueError:
        return _plain("not ready: the queue does not answer", 503)
    return _plain("ready")


def _plain(text: str, status: int = 200) -> HttpResponse:
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain")


urlpatterns = [path("healthz", healthz, name="priqueue-healthz"), path("readyz", readyz, name="priqueue-readyz")]
