"""The test project as real processes see it: the queue's settings come as JSON from the environment."""

import json
import os

from tests.settings import *  # noqa: F403

PRIQUEUE = json.loads(os.environ["TEST_PRIQUEUE"])
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["TEST_DATABASE"]}}
LOGGING = {
    "version": 1,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(threadName)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": "INFO"},
}
