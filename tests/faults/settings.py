"""The test project with one more app, whose handlers do what no handler should."""

from tests.process_settings import *  # noqa: F403
from tests.process_settings import INSTALLED_APPS as USUAL_APPS

INSTALLED_APPS = [*USUAL_APPS, "tests.faults"]
