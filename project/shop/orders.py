"""Placing an order: the row and its jobs, in one transaction. No commit, no jobs."""

from django.db import transaction

import priqueue
from project.shop import jobs
from project.shop.models import Order

REPORT_MONTH = "2026-10"


def place(order: Order, declines: int) -> None:
    """Save ``order`` and enqueue its jobs. Raises PriqueueError, and saves nothing, if they are refused."""
    with transaction.atomic():
        order.save()
        about = {"caller": "shop", "correlation_id": order.number}
        number = {"number": order.number}
        priqueue.enqueue(jobs.charge_card, {**number, "declines": declines}, **about)
        priqueue.enqueue(jobs.send_receipt, number, **about)
        priqueue.enqueue(jobs.write_invoice, number, **about)
        priqueue.enqueue(jobs.send_reminder, number, delay=jobs.REMINDER_AFTER, **about)
        priqueue.enqueue(jobs.sales_report, {"month": REPORT_MONTH}, **about)
