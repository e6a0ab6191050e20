"""The addresses of a project with the HTTP door and the admin."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [path("api/", include("priqueue.api.urls")), path("admin/", admin.site.urls)]
