"""What the README says about commands and names is held against the code."""

import ast
import re
import subprocess
from pathlib import Path

import pytest
from django.core.management import load_command_class

import priqueue
from priqueue import exceptions
from priqueue.conf import Settings

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
COMMAND_FOLDERS = [ROOT / "priqueue", ROOT / "project" / "demo"]


def commands() -> dict[str, Path]:
    files = [path for folder in COMMAND_FOLDERS for path in (folder / "management" / "commands").glob("*.py")]
    return {path.stem: path for path in files if not path.stem.startswith("_")}


def table_rows() -> list[tuple[str, str]]:
    return re.findall(r"^\| `manage\.py (\w+)` \| (.*) \|$", README, re.MULTILINE)


def test_every_command_it_names_exists() -> None:
    assert set(re.findall(r"manage\.py (\w+)", README)) <= commands().keys()


def test_its_table_lists_every_command() -> None:
    assert {name for name, _ in table_rows()} == commands().keys()


def options(name: str) -> set[str]:
    """Return the options a command takes; the demo's cannot be loaded without its project."""
    if name == "demo":
        return set(re.findall(r'"(--[a-z-]+)"', commands()[name].read_text()))
    parser = load_command_class("priqueue", name).create_parser("manage.py", name)
    return {option for action in parser._actions for option in action.option_strings}


@pytest.mark.parametrize(("name", "text"), table_rows())
def test_the_options_of_its_table_are_options_of_the_command(name: str, text: str) -> None:
    assert set(re.findall(r"`(--[a-z-]+)`", text)) - options(name) == set()


def test_every_make_target_it_names_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert set(re.findall(r"(?:^|`)make (\w+)", README, re.MULTILINE)) <= targets


def test_its_two_commands_are_make_demo_and_make_test() -> None:
    assert re.search(r"```sh\n(.*?)```", README, re.DOTALL)[1] == "make demo\nmake test\n"


def test_every_name_of_priqueue_it_uses_is_public() -> None:
    names = set(re.findall(r"priqueue\.([a-z_]+)\b(?!\.)", README))

    assert sorted(name for name in names if name not in priqueue.__all__) == []


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_its_examples_are_python(code: str) -> None:
    ast.parse(code)


@pytest.mark.parametrize("target", re.findall(r"\]\(([^):]+)\)", README))
def test_the_files_it_links_to_exist(target: str) -> None:
    assert (ROOT / target).is_file()


def test_every_setting_it_names_is_a_setting() -> None:
    known = {name.upper() for name in Settings.__dataclass_fields__}
    named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)*)(?:`| )", README))

    assert named - known <= {"REDIS_URL", "DATABASE_URL", "PYTHON", "PRIQUEUE", "INSTALLED_APPS", "MIDDLEWARE"}


def test_the_weights_it_explains_are_the_default() -> None:
    default = Settings.__dataclass_fields__["lanes"].default
    shown = re.search(r'`(\{"high".*?\})`', README)[1]

    assert ast.literal_eval(shown) == {lane.name: lane.weight for lane in default}


def test_it_promises_at_least_once_and_never_more() -> None:
    assert "at least once" in README
    assert not re.search(r"exactly[ -]once", README, re.IGNORECASE)


def test_what_it_is_takes_five_lines() -> None:
    lead = README.split("\n\n")[1]

    assert len(lead.splitlines()) == 5


def test_adding_it_to_a_project_takes_six_steps() -> None:
    section = README.partition("## Add it to your project\n")[2].partition("\n## ")[0]

    assert re.findall(r"^(\d)\.", section, re.MULTILINE) == ["1", "2", "3", "4", "5", "6"]


def test_every_error_is_public() -> None:
    raised = {name for name, value in vars(exceptions).items() if isinstance(value, type)}

    assert raised <= set(priqueue.__all__)


def test_make_says_clearly_that_a_python_is_too_old(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)

    result = subprocess.run(
        ["make", "demo", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert result.returncode != 0
    assert "priqueue needs Python 3.11 or newer" in result.stdout
    assert not (tmp_path / "venv").exists()
