"""The smallest project that the tests need. Nothing answers at its queue: who wants one starts one."""

import os
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir

SECRET_KEY = token_hex(32)
USE_TZ = True
# A file: Django never closes a database in memory, and newer Pythons warn of that.
_FILE = str(Path(gettempdir()) / f"priqueue-tests-{os.getpid()}.sqlite3")
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:", "TEST": {"NAME": _FILE}}}
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "priqueue",
    "tests.shop",
]
PRIQUEUE = {"URL": "redis://127.0.0.1:1/0"}
