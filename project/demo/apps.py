"""The demo's place among the installed apps."""

from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "project.demo"
