"""What the shop remembers: its orders, and the runs of its handlers."""

from decimal import Decimal

from django.db import models
from django.utils import timezone
from django.utils.crypto import get_random_string


def new_number() -> str:
    """Return an order number that nobody can guess from another one."""
    return f"O-{get_random_string(10, '23456789ABCDEFGHJKLMNPQRSTUVWXYZ')}"


class Product(models.TextChoices):
    """What is for sale."""

    TEA = "tea", "Tea, 100 g"
    COFFEE = "coffee", "Coffee, 250 g"
    COCOA = "cocoa", "Cocoa, 200 g"


PRICES = {Product.TEA: Decimal("7.50"), Product.COFFEE: Decimal("9.90"), Product.COCOA: Decimal("4.20")}


class Order(models.Model):
    """One order, and when each of its jobs did its work: a job that runs again finds it done."""

    number = models.CharField(max_length=20, unique=True, default=new_number, editable=False)
    email = models.EmailField("e-mail")
    product = models.CharField(max_length=10, choices=Product.choices, default=Product.TEA)
    quantity = models.PositiveSmallIntegerField(default=1)
    created_at = models.DateTimeField(default=timezone.now, editable=False, db_index=True)
    charged_at = models.DateTimeField(null=True, editable=False)
    receipt_at = models.DateTimeField(null=True, editable=False)
    invoice_at = models.DateTimeField(null=True, editable=False)
    reminder_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(quantity__gte=1, quantity__lte=99), name="order_quantity_from_1_to_99"
            )
        ]

    def __str__(self) -> str:
        return self.number

    @property
    def total(self) -> Decimal:
        """Return the price of the whole order."""
        return PRICES[Product(self.product)] * self.quantity


class Run(models.Model):
    """One run of a handler, written by the handler itself: what the demo counts and measures."""

    job_id = models.CharField(max_length=40, db_index=True)
    attempt = models.PositiveSmallIntegerField()
    worked = models.BooleanField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["started_at", "id"]

    def __str__(self) -> str:
        return f"{self.job_id} attempt {self.attempt}: {'worked' if self.worked else 'failed'}"
