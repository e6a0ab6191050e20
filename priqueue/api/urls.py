"""Addresses of the HTTP door: ``path("api/", include("priqueue.api.urls"))``. Needs ``pip install "priqueue[api]"``."""

from django.urls import path

from priqueue.api.document import made

api = made()
urlpatterns = [path("", api.urls)]
