"""The smallest project that the tests need. Nothing answers at its queue: who wants one starts one."""

from secrets import token_hex

SECRET_KEY = token_hex(32)
USE_TZ = True
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "priqueue",
    "tests.shop",
]
PRIQUEUE = {"URL": "redis://127.0.0.1:1/0"}
