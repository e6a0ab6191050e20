"""Contenders: who is measured, and by which command lines their workers start.

A worker is named by how many jobs it runs at a time: ``c1``, ``c8``, ``c64``; with children, if it knows any.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SECRET_KEY = "only for benchmarks, and no secret at all"
_BIN = Path(sys.executable).parent
_DJANGO = (sys.executable, "-m", "django")


@dataclass(frozen=True)
class Worker:
    """A command line, in which ``{url}`` stands for the server, and how many jobs keep it busy for some seconds."""

    command: Sequence[str]
    jobs: int = 0


@dataclass(frozen=True)
class Contender:
    """One queue. Its module has ``enqueue``, ``enqueue_in`` and, where the queue knows such, ``enqueue_many``."""

    name: str
    module: str
    workers: Mapping[str, Worker]
    #: what runs delayed jobs, where that takes more than a worker, or another one
    for_delays: Sequence[Worker] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def usual(self) -> Worker:
        """The worker that is measured while it waits for work."""
        return self.workers.get("c8") or next(iter(self.workers.values()))


def _ours(concurrency: int, processes: int, jobs: int) -> Worker:
    options = ("--concurrency", str(concurrency), "--processes", str(processes), "--verbosity", "0")
    return Worker((*_DJANGO, "runworker", *options), jobs)


def _tool(name: str, *options: str, jobs: int = 0) -> Worker:
    return Worker((str(_BIN / name), *options), jobs)


OURS = Contender(
    "priqueue",
    "tests.benchmarks.jobs",
    {
        "c1": _ours(1, 1, 8000), "c8": _ours(8, 1, 20_000), "c64": _ours(64, 1, 40_000),
        "c1 in threads": _ours(1, 0, 8000), "c8 in threads": _ours(8, 0, 20_000),
        "c64 in threads": _ours(64, 0, 40_000),
    },
    for_delays=(_ours(8, 1, 0), Worker((*_DJANGO, "runticker", "--verbosity", "0"))),
    environment={"DJANGO_SETTINGS_MODULE": "tests.benchmarks.settings"},
)  # fmt: skip
UNAUDITED = Contender("priqueue without audit", OURS.module, {}, environment={**OURS.environment, "BENCH_AUDIT": "off"})

_CELERY = ("-A", "tests.benchmarks.peers.with_celery", "worker", "--loglevel", "WARNING")
_DRAMATIQ = ("tests.benchmarks.peers.with_dramatiq", "--processes", "1", "--threads")
_HUEY = ("tests.benchmarks.peers.with_huey.queue", "--quiet", "--worker-type", "thread", "--workers")
_RQ = ("worker", "--quiet", "--worker-class", "rq.SimpleWorker", "--url", "{url}", "bench")

PEERS = (
    Contender(
        "Celery", "tests.benchmarks.peers.with_celery",
        {
            "c1": _tool("celery", *_CELERY, "-c", "1", jobs=3000),
            "c8": _tool("celery", *_CELERY, "-c", "8", jobs=3000),
            "c64": _tool("celery", *_CELERY, "-P", "threads", "-c", "64", jobs=3000),
        },
    ),
    Contender(
        "RQ", "tests.benchmarks.peers.with_rq",
        {"c1": _tool("rq", *_RQ, jobs=800)},
        for_delays=(_tool("rq", *_RQ, "--with-scheduler"),),
    ),
    Contender(
        "Dramatiq", "tests.benchmarks.peers.with_dramatiq",
        {
            "c1": _tool("dramatiq", *_DRAMATIQ, "1", jobs=1500), "c8": _tool("dramatiq", *_DRAMATIQ, "8", jobs=8000),
            "c64": _tool("dramatiq", *_DRAMATIQ, "64", jobs=8000),
        },
    ),
    Contender(
        "Huey", "tests.benchmarks.peers.with_huey",
        {
            "c1": _tool("huey_consumer", *_HUEY, "1", jobs=8000), "c8": _tool("huey_consumer", *_HUEY, "8", jobs=8000),
            "c64": _tool("huey_consumer", *_HUEY, "64", jobs=8000),
        },
    ),
)  # fmt: skip
