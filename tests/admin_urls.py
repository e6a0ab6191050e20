"""The admin's addresses, for the tests of our pages in it."""

from django.contrib import admin
from django.urls import path

urlpatterns = [path("admin/", admin.site.urls)]
