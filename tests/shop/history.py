"""What handlers did, written by themselves: one line of JSON each, appended to the file in TEST_HISTORY."""

import json
import os
import time
from pathlib import Path
from typing import Any

import priqueue


def write(what: str, **more: Any) -> None:
    """Append one line; a single O_APPEND write, so that lines of many processes never mix."""
    run = priqueue.current_job()
    assert run is not None
    line = {"what": what, "id": run.id, "attempt": run.attempt, "pid": os.getpid(), "at": time.time(), **more}
    file = os.open(os.environ["TEST_HISTORY"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (json.dumps(line) + "\n").encode())
    os.close(file)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
