"""Addresses of the HTTP door: ``path("api/", include("priqueue.api.urls"))``. Needs ``pip install "priqueue[api]"``.

They end with one that matches whatever is left: what else lives beneath the same prefix goes before them.
"""

from django.urls import path

from priqueue.api.document import made

api = made()
urlpatterns = [path("", api.urls)]
