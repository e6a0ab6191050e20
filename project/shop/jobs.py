"""The shop's handlers: urgent ones first, one that fails at times, one for later.

A job may run more than once, so each handler looks whether its work is done before it does it.
"""

from datetime import timedelta

from django.core.mail import send_mail
from django.template.loader import render_to_string
from django.utils import timezone

import priqueue
from project.shop import papers
from project.shop.models import Order
from project.shop.runs import recorded

CHARGE_ATTEMPTS = 3
REMINDER_AFTER = timedelta(seconds=30)


class CardDeclined(Exception):
    """The card gateway said no."""


@priqueue.job(lane="high", max_attempts=CHARGE_ATTEMPTS, backoff=1)
def charge_card(number: str, declines: int = 0) -> None:
    """Charge the card of an order. The pretended gateway declines the first ``declines`` attempts."""
    with recorded():
        run = priqueue.current_job()
        if (run.attempt if run else 1) <= declines:
            raise CardDeclined(f"the gateway declined the card of order {number}")
        _mark(number, "charged_at")


@priqueue.job(lane="high")
def send_receipt(number: str) -> None:
    """E-mail the receipt of an order."""
    with recorded():
        _send_once(number, "receipt_at", f"Your order {number}", "shop/receipt.txt")


@priqueue.job
def write_invoice(number: str) -> None:
    """Write the invoice of an order as a file."""
    with recorded():
        papers.write_invoice(Order.objects.get(number=number))
        _mark(number, "invoice_at")


@priqueue.job
def send_reminder(number: str) -> None:
    """Ask, some time after the order, how it was. Enqueued with a delay."""
    with recorded():
        _send_once(number, "reminder_at", f"How was your order {number}?", "shop/reminder.txt")


@priqueue.job(lane="low", api=True)
def sales_report(month: str) -> None:
    """Add up the sales of a month ("2026-10") by product and write them to a file. May be asked for over HTTP."""
    with recorded():
        papers.write_report(month)


def _send_once(number: str, done_field: str, subject: str, template: str) -> None:
    order = Order.objects.get(number=number)
    if getattr(order, done_field) is None:
        send_mail(subject, render_to_string(template, {"order": order}), None, [order.email])
        _mark(number, done_field)


def _mark(number: str, done_field: str) -> None:
    Order.objects.filter(number=number).update(**{done_field: timezone.now()})
