"""Runs: a requeue or purge of many letters in steps, which somebody's open page drives.

It begins with a bound, a time: what is buried later is never touched, so it ends. Whoever may do what it does may let
it go on, and stop it; any number may do so at once, and each letter is taken once.
"""

from priqueue import callers, events, wiring
from priqueue.clock import monotonic_s
from priqueue.coordinator import Run, Runs
from priqueue.coordinator.runs import DONE, GOING, STOPPED

_SIGNALS = {"requeue": events.jobs_requeued, "purge": events.jobs_purged}


def begin(run: Run) -> bool:
    """Let a new run begin; return False when one of its id has begun already.

    Raises ValueError without a reason, or for an action that is neither "requeue" nor "purge".
    """
    if run.action not in _SIGNALS:
        raise ValueError(f"action: {run.action!r:.60} is neither requeue nor purge")
    if not run.reason.strip():
        raise ValueError("reason: say why; it is kept with the change")
    return wiring.coordinator().steer(run, GOING, caller=callers.acting().caller)


def stop(run: Run) -> bool:
    """Let a run do no further step; return False when it does none already."""
    return wiring.coordinator().steer(run, STOPPED, caller=callers.acting().caller)


def go_on(run: Run) -> bool:
    """Let a run that was stopped go on; return False for one that was not."""
    return wiring.coordinator().steer(run, GOING, caller=callers.acting().caller)


def work(run: Run, reader: Runs, lasts_s: float = 0.25) -> Run:
    """Take steps of a run for about so long, and return how far it is then.

    Where it has to wait by its rate, or others take its steps, this does less, or nothing. The run ends with its last
    letter.
    """
    give_up_at_s = monotonic_s() + lasts_s
    for ids, cursor in reader.ahead(run):
        if run.state != GOING or monotonic_s() >= give_up_at_s or _has_to_wait(run, reader):
            return run
        run = _step(run, ids, cursor, reader)
        if run.cursor != cursor:  # somebody else took a step meanwhile
            return run
    if run.state == GOING:
        wiring.coordinator().steer(run, DONE, caller=callers.acting().caller)
    return reader.run(run.id) or run


def _has_to_wait(run: Run, reader: Runs) -> bool:
    return bool(run.per_s) and reader.now_ms() < run.next_ms


def _step(run: Run, ids: list[str], cursor: str, reader: Runs) -> Run:
    done = wiring.coordinator().step(run, ids, cursor, caller=callers.acting().caller)
    if done:
        events.send(_SIGNALS[run.action], job_ids=done, reason=run.reason)
    return reader.run(run.id) or run
