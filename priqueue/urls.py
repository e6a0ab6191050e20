"""Addresses of the pages by themselves, for staff without the admin: ``path("queue/", include("priqueue.urls"))``."""

from django.urls import include, path

from priqueue.views.mount import OwnMount
from priqueue.views.routes import LETTERS, QUEUE

app_name = "priqueue"
_mount = OwnMount()
urlpatterns = [*_mount.paths(QUEUE), path("dead/", include(_mount.paths(LETTERS)))]
