"""The test project as a web server's processes see it: the HTTP door alone, at the root."""

from tests.process_settings import *  # noqa: F403
from tests.process_settings import LOGGING as USUAL_LOGGING

LOGGING = {**USUAL_LOGGING, "disable_existing_loggers": False}  # those of the web server
ROOT_URLCONF = "priqueue.api.urls"
ALLOWED_HOSTS = ["127.0.0.1"]
WSGI_APPLICATION = "tests.door_wsgi.application"
