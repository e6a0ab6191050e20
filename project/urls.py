"""The project's addresses: the shop, the log-in, the admin, and the queue's pages for staff without the admin."""

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
    path("queue/", include("priqueue.urls")),
]
