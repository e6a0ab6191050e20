"""The project of a benchmark: its queue is on the bench's own server, audited and signed as by default."""

import os
from pathlib import Path
from tempfile import gettempdir

from tests.benchmarks import contenders

SECRET_KEY = contenders.SECRET_KEY
USE_TZ = True
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "priqueue", "tests.benchmarks"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(Path(gettempdir()) / "bench.sqlite3")}}
PRIQUEUE = {"URL": os.environ["BENCH_URL"], "NAMESPACE": "bench", "AUDIT": os.environ.get("BENCH_AUDIT", "all")}
