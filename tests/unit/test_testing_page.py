"""The examples of docs/testing.md are written to a project of their own and run there, as their readers would."""

import os
import re
import subprocess
import sys

import pytest

from priqueue import testing
from tests.support.pages import ROOT, blocks

PAGE = (ROOT / "docs" / "testing.md").read_text()
SETTINGS = """
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "priqueue", "shop"]
PRIQUEUE = {"URL": "redis://127.0.0.1:1/0"}
SECRET_KEY = "only for this example"
USE_TZ = True
"""


@pytest.fixture
def project(tmp_path):
    files = {"settings.py": SETTINGS, "shop/__init__.py": "", "pytest.ini": "[pytest]\nfilterwarnings = error\n"}
    for _, code in blocks("testing.md"):
        head, _, rest = code.partition("\n")
        files[head.removeprefix("# ")] = rest
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def run(project, *command):
    path = os.pathsep.join([str(project), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": "settings"}
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_examples_pass_with_pytest(project):
    done = run(project, "pytest", "-p", "no:cacheprovider", "test_greetings.py", "shop/tests.py")

    assert (done.returncode, re.findall(r"(\d+) passed", done.stdout)) == (0, ["3"]), done.stdout + done.stderr


def test_the_examples_pass_with_djangos_own_runner(project):
    done = run(project, "django", "test")

    assert (done.returncode, re.findall(r"Ran (\d+) test", done.stderr)) == (0, ["2"]), done.stdout + done.stderr


def test_the_page_names_all_that_the_queue_offers():
    offered = {name for name in dir(testing.MemoryQueue) if not name.startswith("_")} | {"coordinator"}

    assert set(re.findall(r"^\| `(\w+)", PAGE, re.MULTILINE)) == offered


def test_the_page_names_every_argument():
    arguments = {"handler", "payload", "lane", "delay", "times", "limit", "seconds"}
    table = "".join(line for line in PAGE.splitlines() if line.startswith("| `"))

    assert arguments <= set(re.findall(r"\w+", table))
