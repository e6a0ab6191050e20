"""Urls: what a project includes: ``path("", include("priqueue.metrics.urls"))``."""

from django.urls import path

from priqueue.metrics.views import metrics

urlpatterns = [path("metrics", metrics, name="priqueue-metrics")]
