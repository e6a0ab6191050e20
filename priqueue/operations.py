"""Operations: what a person does to a running queue. ``callers`` says who it is; why has to be given."""

from priqueue import callers, events, wiring
from priqueue.coordinator import Refusal
from priqueue.exceptions import InvalidLane
from priqueue.jobs import wait


def pause(lane: str, reason: str, lasts_s: float | None = None) -> None:
    """Let the workers skip a lane, for ``lasts_s`` seconds or until it is resumed; what is in flight goes on.

    Raises InvalidLane, InvalidDelay for a bad ``lasts_s``, and ValueError without a reason.
    """
    caller, reason = callers.acting().caller, _said(reason)
    if lasts_s is not None:
        wait("lasts_s", lasts_s)
    wiring.coordinator().pause(lane, caller=caller, reason=reason, lasts_s=lasts_s)
    events.send(events.lane_paused, lane=lane, caller=caller, reason=reason)


def resume(lane: str, reason: str) -> bool:
    """Let the workers take from a lane again; return False when it was not paused.

    A lane that has left the configuration can be resumed, too. Raises InvalidLane, and ValueError without a
    reason.
    """
    caller, reason = callers.acting().caller, _said(reason)
    known = wiring.coordinator().settings.lane_names
    if lane not in known and lane not in wiring.inspector().paused():
        raise InvalidLane(f"lane {lane!r:.60}: choose from {', '.join(known)}")
    done = wiring.coordinator().resume(lane, caller=caller, reason=reason)
    if done:
        events.send(events.lane_resumed, lane=lane, caller=caller, reason=reason)
    return done


def drain(worker_id: str, reason: str) -> bool:
    """Ask a worker to claim no more, settle what it holds and leave; return False when there is none.

    The worker tells of it when it hears of it. Raises ValueError without a reason.
    """
    caller, reason = callers.acting().caller, _said(reason)
    return wiring.coordinator().drain(worker_id, caller=caller, reason=reason)


def cancel(job_id: str, reason: str) -> Refusal | None:
    """Delete a job that is delayed or ready and return None; or say why nothing was changed, and who holds it.

    Raises ValueError without a reason.
    """
    caller, reason = callers.acting().caller, _said(reason)
    status = wiring.inspector().job(job_id)
    if status is None:
        return Refusal(state="gone")
    refused = wiring.coordinator().try_to_cancel(job_id, lane=status.lane, caller=caller, reason=reason)
    if refused is None:
        events.send(events.job_cancelled, job_id=job_id)
    return refused


def _said(reason: str) -> str:
    if not reason.strip():
        raise ValueError("reason: say why; it is kept with the change")
    return reason.strip()
