"""The door, and beside it a plain view that reads JSON, writes one key and answers JSON."""

import json
from uuid import uuid4

from django.http import HttpRequest, JsonResponse
from django.urls import include, path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from priqueue import wiring


@csrf_exempt
@require_POST
def plain(request: HttpRequest) -> JsonResponse:
    """Write one key to the same Redis."""
    given, name = json.loads(request.body), str(uuid4())
    wiring.coordinator().client.set(f"plain:{name}", json.dumps(given["payload"]), ex=60)
    return JsonResponse({"id": name, "job": given["job"]}, status=202)


urlpatterns = [path("plain", plain), path("", include("priqueue.api.urls"))]
