"""The project of the door's benchmark: the middlewares of a new Django project, the door, and a plain view."""

import logging

from tests.door_settings import *  # noqa: F403
from tests.door_settings import INSTALLED_APPS as USUAL_APPS
from tests.door_settings import LOGGING as USUAL_LOGGING

INSTALLED_APPS = [*USUAL_APPS, "django.contrib.messages"]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "tests.benchmarks.door_urls"
DATABASES["default"]["CONN_MAX_AGE"] = 60  # noqa: F405
LOGGING = {**USUAL_LOGGING, "root": {"handlers": ["console"], "level": logging.WARNING}}
