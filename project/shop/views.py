"""The shop's pages: the front page with form and lanes, and a page per order. No JavaScript."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

import priqueue
from project.shop import orders
from project.shop.forms import OrderForm
from project.shop.models import Order


@require_http_methods(["GET", "HEAD", "POST"])
def front(request: HttpRequest) -> HttpResponse:
    """Show the shop; take an order."""
    form = OrderForm(request.POST or None)
    status = 200
    if request.method == "POST":
        if form.is_valid():
            try:
                orders.place(form.save(commit=False), form.cleaned_data["declines"])
            except priqueue.PriqueueError:
                form.add_error(None, "The shop cannot take orders right now. Nothing was ordered; please try again.")
                status = 503
            else:
                return redirect("order", form.instance.number)
        else:
            status = 422
    return render(request, "shop/front.html", {"form": form, **_lanes(), **_latest()}, status=status)


@require_safe
def order(request: HttpRequest, number: str) -> HttpResponse:
    """Show what has been done for an order so far."""
    placed = get_object_or_404(Order, number=number)
    steps = [
        ("Card charged", "high", placed.charged_at),
        ("Receipt sent", "high", placed.receipt_at),
        ("Invoice written", "default", placed.invoice_at),
        ("Reminder sent", "default", placed.reminder_at),
    ]
    return render(request, "shop/order.html", {"order": placed, "steps": steps})


def _latest() -> dict[str, object]:
    return {"latest": Order.objects.all()[:8]}


def _lanes() -> dict[str, object]:
    """Return the lanes for the table, or why there are none: an unknown number is not shown as a zero."""
    try:
        return {"stats": priqueue.stats()}
    except priqueue.PriqueueError as error:
        return {"stats": None, "stats_error": str(error)}
