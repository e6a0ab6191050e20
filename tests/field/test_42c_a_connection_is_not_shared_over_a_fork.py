"""A process connects and forks: each child has a connection of its own, so no reply goes astray."""

import json
import os
import subprocess
import sys

from tests.support import forking
from tests.support.processes import ROOT, Live


def test_eight_forked_children_enqueue_eight_thousand_distinct_jobs(live: Live) -> None:
    environment = {
        **os.environ, "DJANGO_SETTINGS_MODULE": "tests.process_settings", "PYTHONPATH": str(ROOT),
        "TEST_PRIQUEUE": json.dumps(live.options), "TEST_DATABASE": ":memory:",
    }  # fmt: skip

    done = subprocess.run(
        [sys.executable, "-m", "tests.support.forking"], cwd=ROOT, env=environment, capture_output=True, text=True
    )

    stored = live.raw.hgetall(live.coordinator.keys.jobs)
    numbers = [live.inspector.job(job_id).job.payload["n"] for job_id in stored]
    assert (done.returncode, "ERROR" in done.stderr, "Traceback" in done.stderr) == (0, False, False)
    assert sorted(numbers) == [-1, *range(forking.CHILDREN * forking.EACH)]
    assert sorted(live.raw.lrange(live.coordinator.keys.lane("default"), 0, -1)) == sorted(stored)
