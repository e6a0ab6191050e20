"""The project's settings: safe without any environment, and complete for a deployment with one."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from project import datafolder

ROOT = Path(__file__).parents[2]
SHOW = """
import json, sys
from project import settings
print(json.dumps({name: getattr(settings, name) for name in sys.argv[1:]}, default=str))
"""


def run_python(*argv: str, data: Path, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {"PATH": os.environ["PATH"], "DATA_DIR": str(data), "DJANGO_SETTINGS_MODULE": "project.settings"}
    return subprocess.run(
        [sys.executable, *argv],
        cwd=cwd,
        env={**kept, "PYTHONPATH": str(cwd), **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def read_settings(*names: str, data: Path, cwd: Path = ROOT, **env: str) -> dict[str, Any]:
    result = run_python("-c", SHOW, *names, data=data, cwd=cwd, **env)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_without_an_environment_the_settings_are_those_of_a_safe_trial_run(tmp_path: Path) -> None:
    found = read_settings("DEBUG", "ALLOWED_HOSTS", "PRIQUEUE", "EMBEDDED_SERVER", "HTTPS", data=tmp_path)

    assert found == {
        "DEBUG": False,
        "ALLOWED_HOSTS": ["127.0.0.1", "localhost", "[::1]"],
        "PRIQUEUE": {"URL": f"unix://{datafolder.socket_path(tmp_path)}"},
        "EMBEDDED_SERVER": True,
        "HTTPS": False,
    }


def test_the_default_database_is_sqlite_in_wal_mode_in_the_data_folder(tmp_path: Path) -> None:
    database = read_settings("DATABASES", data=tmp_path)["DATABASES"]["default"]

    assert database["ENGINE"] == "django.db.backends.sqlite3"
    assert database["NAME"] == str(tmp_path / "shop.sqlite3")
    assert "journal_mode = WAL" in database["OPTIONS"]["init_command"]


def test_redis_url_and_database_url_are_used_when_set(tmp_path: Path) -> None:
    found = read_settings(
        "PRIQUEUE",
        "EMBEDDED_SERVER",
        "DATABASES",
        data=tmp_path,
        REDIS_URL="rediss://queue:secret@redis.example.org:6380/2",
        DATABASE_URL="postgres://shop:secret@db.example.org/shop",
    )

    assert found["PRIQUEUE"]["URL"] == "rediss://queue:secret@redis.example.org:6380/2"
    assert found["EMBEDDED_SERVER"] is False
    database = found["DATABASES"]["default"]
    assert (database["HOST"], database["NAME"]) == ("db.example.org", "shop")
    assert database["ENGINE"] == "django.db.backends.postgresql"
    assert "OPTIONS" not in database or "init_command" not in database["OPTIONS"]


def test_the_queues_settings_come_from_the_environment(tmp_path: Path) -> None:
    found = read_settings(
        "PRIQUEUE",
        data=tmp_path,
        REDIS_URL="redis://127.0.0.1/0",
        PRIQUEUE_NAMESPACE="shop",
        PRIQUEUE_LANES="urgent=5,rest=1",
        PRIQUEUE_MAX_READY="urgent=500",
        PRIQUEUE_RATE_LIMIT="key:billing=500/s, user:=30/min burst 60,worker:=none,*=100/s",
        PRIQUEUE_CONCURRENCY="3",
        PRIQUEUE_MAX_ATTEMPTS="7",
        PRIQUEUE_TIMEOUT_S="1.5",
        PRIQUEUE_HEARTBEAT_S="2",
        PRIQUEUE_SHUTDOWN_GRACE_S="9",
    )

    assert found["PRIQUEUE"] == {
        "URL": "redis://127.0.0.1/0",
        "NAMESPACE": "shop",
        "LANES": {"urgent": 5, "rest": 1},
        "MAX_READY": {"urgent": 500},
        "RATE_LIMIT": {"key:billing": "500/s", "user:": "30/min burst 60", "worker:": None, "*": "100/s"},
        "CONCURRENCY": 3,
        "MAX_ATTEMPTS": 7,
        "TIMEOUT_S": 1.5,
        "HEARTBEAT_S": 2.0,
        "SHUTDOWN_GRACE_S": 9.0,
    }


def test_a_limit_for_all_is_a_text_or_a_number(tmp_path: Path) -> None:
    given = {"PRIQUEUE_MAX_READY": "10000", "PRIQUEUE_RATE_LIMIT": "100/s burst 500"}

    found = read_settings("PRIQUEUE", data=tmp_path, **given)["PRIQUEUE"]

    assert (found["MAX_READY"], found["RATE_LIMIT"]) == (10_000, "100/s burst 500")


def test_all_processes_share_one_drawn_secret_key_that_only_the_owner_may_read(tmp_path: Path) -> None:
    first = read_settings("SECRET_KEY", data=tmp_path)
    second = read_settings("SECRET_KEY", data=tmp_path)

    assert first == second
    assert len(first["SECRET_KEY"]) >= 50
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600


def test_a_given_secret_key_is_used_and_none_is_written(tmp_path: Path) -> None:
    found = read_settings("SECRET_KEY", data=tmp_path, SECRET_KEY="given")

    assert found == {"SECRET_KEY": "given"}
    assert list(tmp_path.iterdir()) == []


def test_of_two_processes_that_draw_a_key_at_once_the_first_wins(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("first")

    datafolder._keep_first(tmp_path / "secret_key", "second")

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"secret_key": "first"}


def test_the_data_folder_is_for_its_user_alone(tmp_path: Path) -> None:
    datafolder.secret_key(tmp_path / "data")

    assert (tmp_path / "data").stat().st_mode & 0o077 == 0


def test_the_socket_of_a_deep_folder_moves_to_where_its_path_is_short_enough(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["folder"] * 20)

    path = datafolder.socket_path(deep)

    assert len(os.fsencode(path)) <= datafolder.LONGEST_SOCKET_PATH
    assert path == datafolder.socket_path(deep)
    assert path != datafolder.socket_path(deep / "other")


def test_a_dot_env_file_is_read_and_the_environment_wins_over_it(tmp_path: Path) -> None:
    checkout, data = tmp_path / "checkout", tmp_path / "data"
    shutil.copytree(ROOT / "project", checkout / "project", ignore=shutil.ignore_patterns("__pycache__"))
    (checkout / ".env").write_text("SECRET_KEY=from-the-file\nLOG_LEVEL=error\nALLOWED_HOSTS=shop.test\n")

    found = read_settings("LOG_LEVEL", "ALLOWED_HOSTS", data=data, cwd=checkout, LOG_LEVEL="warning")

    assert found == {"LOG_LEVEL": "WARNING", "ALLOWED_HOSTS": ["shop.test"]}


def test_https_switches_on_what_a_deployment_needs(tmp_path: Path) -> None:
    argv = ["manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    result = run_python(*argv, data=tmp_path, HTTPS="true")

    assert result.returncode == 0, result.stderr
    assert "no issues" in result.stdout


def test_collected_static_files_get_a_hash_in_their_names(tmp_path: Path) -> None:
    result = run_python("manage.py", "collectstatic", "--noinput", data=tmp_path, STATIC_ROOT=str(tmp_path / "static"))

    assert result.returncode == 0, result.stderr
    assert list((tmp_path / "static" / "shop").glob("shop.*.css"))


def test_no_migration_of_the_project_is_missing(tmp_path: Path) -> None:
    result = run_python("manage.py", "makemigrations", "--check", "--dry-run", data=tmp_path)

    assert result.returncode == 0, result.stdout + result.stderr


def names_in_settings() -> set[str]:
    source = (ROOT / "project" / "settings.py").read_text()
    read = set(re.findall(r"env(?:\.\w+)?\(\s*\"([A-Z_]+)\"", source))
    queue = re.search(r"_READERS = \{(.*?)\n\}", source, re.DOTALL)
    return read | {f"PRIQUEUE_{name}" for name in re.findall(r'"([A-Z_]+)":', queue[1])}


def test_the_example_file_explains_every_name_the_settings_read_and_no_other() -> None:
    lines = (ROOT / ".env.example").read_text().splitlines()
    explained = {line[1:].partition("=")[0] for line in lines if re.match(r"#[A-Z_]+=", line)}

    assert explained == names_in_settings()


@pytest.mark.parametrize("line", (ROOT / ".env.example").read_text().splitlines())
def test_the_example_file_sets_nothing_by_itself(line: str) -> None:
    assert not line or line.startswith("#")


LOG = r"""
import django, logging
django.setup()
logging.getLogger("priqueue").warning("half\u202e\nforged", extra={"job_id": "j1"})
"""


def test_in_production_a_record_is_one_json_object_a_line(tmp_path: Path) -> None:
    result = run_python("-c", LOG, data=tmp_path, REDIS_URL="redis://127.0.0.1:1/0")

    (line,) = result.stderr.splitlines()
    document = json.loads(line)
    assert document.items() >= {"level": "WARNING", "logger": "priqueue", "job_id": "j1"}.items()
    assert (document["message"], line.isascii()) == ("half\u202e\nforged", True)
    assert re.match(r"\d{4}-\d\d-\d\dT", document["timestamp"])


@pytest.mark.parametrize("env", [{"LOG_FORMAT": "line", "REDIS_URL": "redis://127.0.0.1:1/0"}, {}])
def test_in_a_trial_or_when_asked_for_a_record_is_a_line_for_people(tmp_path: Path, env: dict[str, str]) -> None:
    result = run_python("-c", LOG, data=tmp_path, **env)

    (line,) = result.stderr.splitlines()
    assert line.endswith("WARNING priqueue half\\u202e\\x0aforged [job j1]")
