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
    """Return the lines so far; one that is being written, and seen in part, is left for the next look."""
    return [json.loads(line) for line in path.read_text().rpartition("\n")[0].splitlines()] if path.exists() else []
