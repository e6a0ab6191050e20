"""The test project with this app: a deploy that knows more handlers than the usual one; its database comes along."""

import json
import os

from tests.process_settings import *  # noqa: F403
from tests.process_settings import DATABASES as USUAL_DATABASES
from tests.process_settings import INSTALLED_APPS as USUAL_APPS

INSTALLED_APPS = [*USUAL_APPS, "tests.faults.endings"]
DATABASES = json.loads(os.environ["TEST_DATABASES"]) if "TEST_DATABASES" in os.environ else USUAL_DATABASES
