"""The systemd units, as systemd itself reads them."""

import subprocess
import sys
from pathlib import Path

from tests.ops.files import DOCS


def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    files = []
    for file in sorted((DOCS / "deploy").glob("priqueue-*")):
        text = file.read_text().replace("/srv/shop/venv/bin/python", sys.executable)
        copy = tmp_path / file.name
        copy.write_text(text.replace("/srv/shop/docs/deploy/watchdog.sh", str(DOCS / "deploy" / "watchdog.sh")))
        files.append(str(copy))

    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *files]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")
