"""Orders and runs in the admin: to look at."""

from django.contrib import admin
from django.http import HttpRequest

from project.shop.models import Order, Run


class ReadOnlyAdmin(admin.ModelAdmin):
    """Rows are written by the shop and its handlers, never by hand."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Order)
class OrderAdmin(ReadOnlyAdmin):
    list_display = ["number", "email", "product", "quantity", "created_at", "charged_at", "receipt_at"]
    search_fields = ["number", "email"]


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    list_display = ["job_id", "attempt", "worked", "started_at", "ended_at"]
    list_filter = ["worked"]
    search_fields = ["job_id"]
