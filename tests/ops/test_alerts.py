"""The alerts in docs/ops: for each, what lets it fire and what is close to that and does not. Run by ``promtool``."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.ops.files import ALERTS, RULES, shown

Series = dict[str, str]


@dataclass(frozen=True)
class Case:
    """Series, by name and labels, one value a minute; ``at`` is when they are looked at."""

    fires: Series
    quiet: Series
    at: str = "40m"


def lane(name: str, lane_name: str = "high") -> str:
    return f'{name}{{queue="q", lane="{lane_name}"}}'


def queue(name: str, **labels: str) -> str:
    told = ", ".join(f'{key}="{value}"' for key, value in {"queue": "q", **labels}.items())
    return f"{name}{{{told}}}"


def lanes(name: str, high: str, default: str, low: str) -> Series:
    return {lane(name, "high"): high, lane(name, "default"): default, lane(name, "low"): low}


def wait(name: str, within_5s: str, all_of_them: str) -> Series:
    return {
        f'{name}{{queue="q", lane="high", le="0.5"}}': within_5s,
        f'{name}{{queue="q", lane="high", le="5.0"}}': all_of_them,
        f'{name}{{queue="q", lane="high", le="+Inf"}}': all_of_them,
    }


ALIVE, LATE = queue("priqueue_workers", state="alive"), queue("priqueue_workers", state="late")
TICKER, SWEEPER = (queue("priqueue_last_turn_age_seconds", duty=duty) for duty in ("ticker", "sweeper"))
SLO_WAIT = {lane("priqueue_slo_wait_seconds"): "1x60"}
SLO_ERRORS = {queue("priqueue_slo_error_ratio"): "0.01x60"}
NOT_PAUSED, PAUSED = ({lane("priqueue_lane_paused"): f"{paused}x60"} for paused in (0, 1))
WEIGHTS = lanes("priqueue_lane_weight", "6x60", "3x60", "1x60")
OLDEST, READY = lane("priqueue_oldest_ready_seconds"), lane("priqueue_ready_jobs")
CRASHES, LATE_BEATS = lane("priqueue_crashes_total"), queue("priqueue_late_beats_total")
LEFT_BEHIND = queue("priqueue_left_behind_jobs")
ACKED, BURIED, RETRIED = (lane(f"priqueue_jobs_{name}_total") for name in ("acked", "buried", "retried"))
BACKLOG, AUDIT_AGE = queue("priqueue_audit_backlog_events"), queue("priqueue_audit_oldest_event_seconds")
MEMORY, LIMIT = queue("priqueue_redis_memory_bytes"), queue("priqueue_redis_memory_limit_bytes")
THROUGHPUT = {queue("priqueue_slo_throughput_per_second"): "10x60"}

CASES = {
    "PriqueueDown": Case({'priqueue_up{job="web"}': "0x60"}, {'priqueue_up{job="web"}': "0 1x60"}),
    "PriqueueUnseen": Case({"up": "1x60"}, {'priqueue_up{job="web"}': "0x60"}),
    "PriqueueNoWorkers": Case(
        {ALIVE: "0x60", LATE: "0x60", READY: "1x60"},
        {ALIVE: "0x60", LATE: "1x60", READY: "1x60"},
    ),
    "PriqueueNoTicker": Case({TICKER: "61x60", SWEEPER: "1x60"}, {TICKER: "59x60", SWEEPER: "9999x60"}),
    "PriqueueNoSweeper": Case({SWEEPER: "61x60", TICKER: "1x60"}, {SWEEPER: "60x60", TICKER: "9999x60"}),
    "PriqueueErrorRate": Case(
        {ACKED: "0+97x60", RETRIED: "0+2x60", BURIED: "0+1x60", **SLO_ERRORS},
        {ACKED: "0+995x60", RETRIED: "0+4x60", BURIED: "0+1x60", **SLO_ERRORS},
    ),
    "PriqueueUtilisation": Case(
        {queue("priqueue_utilisation_ratio"): "0.9x60", queue("priqueue_slo_utilisation_ratio"): "0.85x60"},
        {queue("priqueue_utilisation_ratio"): "0.8x60", queue("priqueue_slo_utilisation_ratio"): "0.85x60"},
    ),
    "PriqueueThroughput": Case(
        {ACKED: "0+540x60", BURIED: "0+30x60", READY: "5x60", **THROUGHPUT},
        {ACKED: "0+540x60", BURIED: "0+30x60", READY: "0x60", **THROUGHPUT},
    ),
    "PriqueueWait": Case(
        {**wait("priqueue_wait_seconds_bucket", "0+80x60", "0+100x60"), **SLO_WAIT, **NOT_PAUSED},
        {**wait("priqueue_wait_seconds_bucket", "0+99x60", "0+100x60"), **SLO_WAIT, **NOT_PAUSED},
    ),
    "PriqueueLateness": Case(
        {**wait("priqueue_lateness_seconds_bucket", "0+80x60", "0+100x60"), **SLO_WAIT, **NOT_PAUSED},
        {**wait("priqueue_lateness_seconds_bucket", "0+80x60", "0+100x60"), **SLO_WAIT, **PAUSED},
    ),
    "PriqueueOldestReady": Case(
        {OLDEST: "0+60x60", **SLO_WAIT, **NOT_PAUSED},
        {OLDEST: "600x60", **SLO_WAIT, **NOT_PAUSED},
    ),
    "PriqueueDeadLetters": Case(
        {queue("priqueue_dead_letters"): "100+1x60"},
        {queue("priqueue_dead_letters"): "100000x60"},
    ),
    "PriqueueShare": Case(
        {**lanes("priqueue_picks_full_total", "0+80x60", "0+10x60", "0+10x60"), **WEIGHTS},
        {**lanes("priqueue_picks_full_total", "0+60x60", "0+30x60", "0+10x60"), **WEIGHTS},
    ),
    "PriqueueAuditBacklog": Case(
        {BACKLOG: "10x60", AUDIT_AGE: "0+60x60"},
        {BACKLOG: "9000x60", AUDIT_AGE: "2x60"},
    ),
    "PriqueueRedisMemory": Case({MEMORY: "81x60", LIMIT: "100x60"}, {MEMORY: "79x60", LIMIT: "100x60"}),
    "PriqueueCrashLoop": Case({CRASHES: "0+1x60"}, {CRASHES: "0x39 3x20"}),
    "PriqueueBadSignature": Case(
        {lane("priqueue_bad_signatures_total"): "0x35 1x20"},
        {lane("priqueue_bad_signatures_total"): "7x60"},
    ),
    "PriqueueFailedPushes": Case(
        {lane("priqueue_failed_pushes_total"): "0x35 1x20"},
        {lane("priqueue_failed_pushes_total"): "0x10 1x50"},
    ),
    "PriqueueLateBeats": Case({LATE_BEATS: "0+1x60"}, {LATE_BEATS: "0x38 2x20"}),
    "PriqueueLanePaused": Case(PAUSED, {lane("priqueue_lane_paused"): "1x30 0 1x60"}, at="61m"),
    "PriqueueLeftBehind": Case({LEFT_BEHIND: "1x60"}, {LEFT_BEHIND: "0x60"}),
    "PriqueueForeignData": Case(
        {lane("priqueue_foreign_values_total"): "0+1x60", lane("priqueue_ghosts_total"): "0x60"},
        {lane("priqueue_foreign_values_total"): "5x60", lane("priqueue_ghosts_total"): "3x60"},
    ),
}  # fmt: skip


def test_every_alert_has_a_case_and_every_case_its_alert() -> None:
    assert CASES.keys() == ALERTS.keys()


def looked_at(name: str, series: Series, at: str, fires: bool) -> dict[str, object]:
    """Return one test as promtool reads it."""
    question = f'group(ALERTS{{alertname="{name}", alertstate="firing"}})'
    samples = [{"labels": "{}", "value": 1}] if fires else []
    return {
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "promql_expr_test": [{"expr": question, "eval_time": at, "exp_samples": samples}],
    }


@pytest.mark.parametrize("name", CASES)
def test_it_fires_when_it_must_and_not_when_it_must_not(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    tests = [looked_at(name, case.fires, case.at, True), looked_at(name, case.quiet, case.at, False)]
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))

    ran = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stdout + ran.stderr


def checked(file: Path) -> str:
    """Return what promtool finds wrong with a file of rules, "" for nothing."""
    ran = subprocess.run(["promtool", "check", "rules", str(file)], capture_output=True, text=True, check=False)
    return "" if ran.returncode == 0 and "SUCCESS" in ran.stdout else ran.stdout + ran.stderr


def test_the_rules_are_well_formed() -> None:
    assert checked(RULES) == ""


def test_every_query_of_the_dashboard_is_well_formed(tmp_path: Path) -> None:
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(shown())]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))

    assert checked(file) == ""
