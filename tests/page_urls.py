"""Addresses for the tests of the queue's pages: in the admin, and by themselves."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [path("admin/", admin.site.urls), path("queue/", include("priqueue.urls"))]
