"""The project's addresses: shop, log-in, admin, the queue's pages and its door, and what probes and scrapers ask."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path

from project.shop import views

urlpatterns = [
    path("", views.front, name="front"),
    path("orders/<slug:number>/", views.order, name="order"),
    path("login/", auth.LoginView.as_view(), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("", include("priqueue.probes")),
    path("", include("priqueue.metrics.urls")),
    path("queue/", include("priqueue.urls")),
    path("api/", include("priqueue.api.urls")),
]
