"""The test project as real processes see it: the queue's settings come as JSON from the environment."""

import json
import os
import sys

from tests.settings import *  # noqa: F403

if os.environ.get("TEST_BREAK_CHILDREN") and sys.argv[0] == "-c":
    raise RuntimeError("children cannot start")
PRIQUEUE = json.loads(os.environ["TEST_PRIQUEUE"])
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["TEST_DATABASE"]}}
LOGGING = {
    "version": 1,
    "filters": {"job": {"()": "priqueue.logs.JobFilter"}},
    "formatters": {
        "plain": {
            "()": "priqueue.logs.LineFormatter",
            "fmt": "%(asctime)s %(levelname)s %(threadName)s %(message)s",
        },
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain", "filters": ["job"]}},
    "root": {"handlers": ["console"], "level": "INFO"},
}
if "TEST_AUDIT_DATABASE" in os.environ:
    DATABASES["audit"] = json.loads(os.environ["TEST_AUDIT_DATABASE"])
    DATABASE_ROUTERS = ["priqueue.routers.AuditRouter"]
    PRIQUEUE["AUDIT_DATABASE"] = "audit"
