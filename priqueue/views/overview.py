"""Overview: is it healthy, and if not, where?"""

from django.http import HttpResponse

from priqueue.views.visit import Visit


def overview(visit: Visit) -> HttpResponse:
    """Show the whole queue."""
    return visit.render("overview.html", "Priqueue", {}, status=503 if visit.look and visit.look.why_not else 200)
