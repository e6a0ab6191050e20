"""Calls: every transition as a value, ready to be sent, and its answer read back.

Kept apart from the Coordinator so that several transitions can travel in one round trip.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from priqueue import signing
from priqueue.conf import Settings
from priqueue.coordinator.keys import hashed
from priqueue.coordinator.scripts import Call
from priqueue.jobs import Claim, Failure, Job, to_ms
from priqueue.limits import Rule

T = TypeVar("T")
_INPUT_BYTES = 2048
_BATCH = 100
#: in the place of a rule and of MAX_READY
_ADMITTED = ("",) * 6


def admit(first: Job, lanes: Mapping[str, int], number: int, settings: Settings, rule: Rule | None) -> Call:
    """Return the call that asks whether ``number`` jobs of one caller may come in, so many for each lane."""
    args: list[str | int] = [first.id, *_rule(first.caller, rule), number]
    for lane, wanted in lanes.items():
        args += (wanted, _most_ready(lane, settings))
    return Call("admit", args, tuple(lanes), says_repeat=True)


def _rule(caller: str, rule: Rule | None) -> tuple[str | int, ...]:
    """Return a rule as scripts take it: caller, its hash, microseconds per job, burst, policy."""
    if rule is None or rule.limit is None:
        return ("",) * 5
    return caller, hashed(caller), repr(rule.limit.interval_us), rule.limit.burst, rule.policy


def _most_ready(lane: str, settings: Settings) -> str | int:
    most = settings.max_ready_of(lane)
    return "" if most is None else most


def mark(caller: str, key: str, content: str) -> str:
    """Return the mark of an idempotency key of a caller and of what was sent with it."""
    return f"{hashed(caller)}:{hashed(key)} {hashlib.sha256(content.encode()).hexdigest()[:32]}"


def enqueue(jobs: Sequence[Job], settings: Settings) -> Call:
    """Return the call that takes in jobs of one lane, which were admitted before."""
    args = [word for job in jobs for word in _words(job, settings)]
    return Call("enqueue", (*_ADMITTED, *args), (jobs[0].lane,))


def enqueue_once(jobs: Sequence[Job], marks: Mapping[str, str], settings: Settings, rule: Rule | None) -> Call:
    """Return the call that takes in those jobs of one lane that the limits admit; ``marks`` are by job id."""
    args = [word for job in jobs for word in _words(job, settings, marks[job.id])]
    limits = (*_rule(jobs[0].caller, rule), _most_ready(jobs[0].lane, settings))
    return Call("enqueue", (*limits, *args), (jobs[0].lane,))


def _words(job: Job, settings: Settings, mark: str = "") -> tuple[str | int, ...]:
    absolute = job.delay_ms is None and job.run_at is not None
    due = ("", to_ms(job.run_at)) if absolute else (job.delay_ms or 0, "")  # type: ignore[arg-type]
    envelope = signing.sign(settings.signing_keys, job.id, job.encode())
    return job.id, envelope, *due, audit_input(job, settings), mark


def by_lane(jobs: Sequence[Job]) -> list[list[Job]]:
    """Return a batch of jobs in groups of one lane each, in their order within it."""
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.lane, []).append(job)
    return list(groups.values())


def batches(words: Sequence[T], size: int = _BATCH) -> Iterator[Sequence[T]]:
    """Cut a sequence into pieces that keep every script short."""
    for start in range(0, len(words), size):
        yield words[start : start + size]


def audit_input(job: Job, settings: Settings) -> str:
    """Return what the audit log keeps of a payload: the text up to 2 KiB, above that its size and SHA-256."""
    if settings.audit == "off":
        return ""
    text = job.payload_text()
    if settings.audit_redact:
        masked = _masked(job.payload, frozenset(settings.audit_redact))
        text = json.dumps(masked, ensure_ascii=False, separators=(",", ":"))
    encoded = text.encode()
    if len(encoded) <= _INPUT_BYTES:
        return text
    return f"{len(encoded)} bytes, sha256 {hashlib.sha256(encoded).hexdigest()}"


def _masked(value: Any, redacted: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {key: "***" if key in redacted else _masked(item, redacted) for key, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, redacted) for item in value]
    return value


def claim(worker_id: str, claim_id: str, limit: int, settings: Settings) -> Call:
    """Return the call that claims up to ``limit`` jobs for a worker."""
    weights = ",".join(str(lane.weight) for lane in settings.lanes)
    lease_ms = round(settings.lease_s * 1000)
    return Call("claim", (worker_id, claim_id, limit, lease_ms, weights), settings.lane_names)


def read_claim(row: Sequence[Any], worker_id: str, token: str, settings: Settings) -> Claim:
    """Return the claim of one row of the claim script's answer.

    Raises signing.BadSignature before anything is decoded, NewerEnvelope, or ValueError for what is no envelope.
    """
    job_id, stored, lane, attempt, crashes, deadline_ms, ready_since_ms, suspect = row
    job = Job.decode(job_id, signing.verify(settings.signing_keys, job_id, stored or ""))
    return Claim(
        job=job, token=token, worker_id=worker_id, lane=lane, attempt=int(attempt), crashes=int(crashes),
        deadline_ms=int(deadline_ms), ready_since_ms=int(ready_since_ms or born_ms(job_id)),
        suspect=bool(suspect),
    )  # fmt: skip


def unreadable(row: Sequence[Any], worker_id: str, token: str) -> Claim:
    """Return a claim by which an envelope that cannot be trusted is settled; its job is a stand-in."""
    job_id, _, lane, attempt, crashes, deadline_ms, _, _ = row
    return Claim(
        job=Job(id=job_id, name="unreadable", payload={}, lane=lane), token=token, worker_id=worker_id, lane=lane,
        attempt=int(attempt), crashes=int(crashes), deadline_ms=int(deadline_ms), ready_since_ms=0,
    )  # fmt: skip


def born_ms(job_id: str) -> int:
    """Return the time inside a UUIDv7, its first 48 bits; 0 for an id that is none."""
    try:
        return int(job_id[:8] + job_id[9:13], 16)
    except ValueError:
        return 0


def leases(claims: Iterable[Claim]) -> list[str | int]:
    """Return id and token of each claim, as the settling scripts take them."""
    return [word for claim in claims for word in (claim.job.id, claim.token)]


def ack(claims: Sequence[Claim]) -> Call:
    """Return the call that acks many claims."""
    args = [word for claim in claims for word in (claim.job.id, claim.token, _run_ms(claim))]
    return Call("ack", args, says_repeat=True)


def release(claims: Sequence[Claim], reason: str, delay_ms: int) -> Call:
    """Return the call that gives many claims back, unrun."""
    return Call("release", [reason, delay_ms, *leases(claims)], says_repeat=True)


def retry(claim: Claim, failure: Failure, delay_ms: int) -> Call:
    """Return the call that puts a failed job behind a wait."""
    args = (claim.job.id, claim.token, delay_ms, *_trail(claim, failure), _run_ms(claim))
    return Call("retry", args, (claim.lane,), says_repeat=True)


def bury(claim: Claim, failure: Failure) -> Call:
    """Return the call that puts a failed job to the dead letters."""
    args = (claim.job.id, claim.token, failure.error, *_trail(claim, failure), _run_ms(claim))
    return Call("bury", args, says_repeat=True)


def crash(claim: Claim, failure: Failure, deaths: int, max_crashes: int) -> Call:
    """Return the call that counts deaths of a process against the job that was alone in it."""
    record = json.dumps({**_record(claim, failure), "crash": True, "traceback": ""}, ensure_ascii=False)
    args = (claim.job.id, claim.token, deaths, max_crashes, record, _reason(failure))
    return Call("crash", args, says_repeat=True)


def _run_ms(claim: Claim) -> str | int:
    return "" if claim.run_ms is None else claim.run_ms


def _record(claim: Claim, failure: Failure) -> dict[str, Any]:
    return {
        "error": failure.error, "message": failure.message, "crash": False,
        "attempt": claim.attempt, "worker": claim.worker_id,
    }  # fmt: skip


def _reason(failure: Failure) -> str:
    return f"{failure.error}: {failure.message}"[:500]


def _trail(claim: Claim, failure: Failure) -> tuple[str, str, str, str]:
    record = _record(claim, failure)
    digest = hashlib.sha256(failure.traceback.encode()).hexdigest()[:16]
    full = json.dumps({**record, "traceback": failure.traceback}, ensure_ascii=False)
    short = json.dumps({**record, "traceback": "the same as of the attempt before"}, ensure_ascii=False)
    return digest, full, short, _reason(failure)
