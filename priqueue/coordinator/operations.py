"""Operations: what people do to the queue, as the coordinator does it, and what is noted of it beside the changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uuid_utils import uuid4

from priqueue import signing
from priqueue.callers import check_word
from priqueue.conf import Settings
from priqueue.coordinator import calls
from priqueue.coordinator.runs import NEW, Run
from priqueue.coordinator.scripts import Call, Scripts
from priqueue.exceptions import InvalidLane
from priqueue.jobs import Job

INTENDED, DENIED = "intended", "denied"
_INPUT_CHARS, _OUTCOME_CHARS = 2048, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """An audit event that is no change of the queue. Notes of one act share a correlation id.

    The outcome is INTENDED before an act, DENIED where a right is missing, and after an act what came of it.
    """

    #: what is done: the name of a transition, "view" or "export"; of an API key "create", "change" or "revoke"
    action: str
    caller: str
    outcome: str
    lane: str = ""
    job: str = ""
    handler: str = ""
    #: what it is done to, where that is no job: a filter, a worker, a page
    input: str = ""
    reason: str = ""
    correlation_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a job was not cancelled: it is "in flight" with a worker, "dead", or "gone"."""

    state: str
    worker: str = ""


class Operations:
    """The transitions that a person asks for, all under the person's name."""

    settings: Settings
    _scripts: Scripts

    def note(self, note: Note) -> None:
        """Leave an audit event beside those of the transitions. Raises InvalidCaller."""
        check_word("caller", note.caller)
        self._once(
            "note", note.action, note.caller, note.lane, note.job, note.handler, note.input[:_INPUT_CHARS],
            note.outcome[:_OUTCOME_CHARS], note.reason, note.correlation_id,
        )  # fmt: skip

    def requeue(self, job_ids: Sequence[str], *, caller: str, reason: str, until_ms: int | None = None) -> list[str]:
        """Give dead jobs all their attempts again, at the tail of their lanes; return the ids this was done to.

        ``until_ms`` leaves alone what was buried later, so that a letter that dies again is not taken twice.
        """
        return self._letters("requeue", job_ids, caller, reason, until_ms)

    def purge(self, job_ids: Sequence[str], *, caller: str, reason: str, until_ms: int | None = None) -> list[str]:
        """Delete dead jobs for good; return the ids this was done to. ``until_ms`` as for ``requeue``."""
        return self._letters("purge", job_ids, caller, reason, until_ms)

    def _letters(self, script: str, ids: Sequence[str], caller: str, reason: str, until_ms: int | None) -> list[str]:
        until = "" if until_ms is None else until_ms
        answers = (self._once(script, caller, reason, until, "", "", "", *batch) for batch in calls.batches(ids))
        return [job_id for answer in answers for job_id in answer]

    def replace(self, job_id: str, copy: Job, *, caller: str, reason: str) -> str:
        """Make an edited copy of a dead job ready, and let the letter say so; return the id it is replaced by now.

        That is the copy's own, for a repeat too; another one's where somebody was faster; "" where there is no letter.
        Raises QueueFull at the memory limit.
        """
        envelope = signing.sign(self.settings.signing_keys, copy.id, copy.encode())
        args = (job_id, copy.id, envelope, caller, reason, calls.audit_input(copy, self.settings))
        return str(self._one(Call("replace", args, (copy.lane,))))

    def steer(self, run: Run, state: str, *, caller: str) -> bool:
        """Let a run begin or go on ("going"), stop ("stopped") or end ("done"); return False when nothing changed."""
        words = [word for pair in run.fields().items() for word in pair] if run.state == NEW else []
        return bool(self._once("steer", run.id, state, caller, *words))

    def step(self, run: Run, job_ids: Sequence[str], cursor: str, *, caller: str) -> list[str]:
        """Do to some letters what a run is for, and let it stand at ``cursor``; return the ids this was done to.

        100 ids at most. Nothing happens when the run stands elsewhere than ``run`` says, or has to wait.
        """
        args = (caller, run.reason, run.until_ms, run.id, run.cursor, cursor)
        return list(self._once(run.action, *args, *job_ids))

    def cancel(self, job_id: str, *, lane: str, caller: str, reason: str = "") -> bool:
        """Delete a ready or delayed job; return False when it is in flight, dead or not there."""
        return self.try_to_cancel(job_id, lane=lane, caller=caller, reason=reason) is None

    def try_to_cancel(self, job_id: str, *, lane: str, caller: str, reason: str = "") -> Refusal | None:
        """Delete a ready or delayed job and return None; or return why nothing was changed."""
        state, *worker = self._once("cancel", job_id, caller, reason, lane=lane)
        return None if state == "done" else Refusal(state=state, worker="".join(worker))

    def pause(self, lane: str, *, caller: str, reason: str, lasts_s: float | None = None) -> None:
        """Let the picker skip a lane, for ``lasts_s`` or until it is resumed. Raises InvalidLane."""
        if lane not in self.settings.lane_names:
            raise InvalidLane(f"lane {lane!r}: choose from {', '.join(self.settings.lane_names)}")
        lasts_ms = "" if lasts_s is None else round(lasts_s * 1000)
        self._once("pause", lane, caller, reason, lasts_ms, lane=lane)

    def resume(self, lane: str, *, caller: str, reason: str = "", if_over: bool = False) -> bool:
        """Let the picker take from a lane again; return False when it was not paused.

        ``if_over`` ends only a pause whose time is over.
        """
        return bool(self._once("resume", lane, caller, reason, int(if_over), lane=lane))

    def drain(self, worker_id: str, *, caller: str, reason: str = "") -> bool:
        """Ask a worker to claim no more and to leave; return False when there is no such worker."""
        return bool(self._once("drain", worker_id, caller, reason))

    def _one(self, call: Call, repeat: bool = False) -> Any:
        return self._scripts.run(call, repeat=repeat)[0]

    def _once(self, script: str, *args: str | int, lane: str = "") -> Any:
        """Run a script that keeps its answer under a call id, and gives it again to a repeat of this call."""
        return self._one(Call(script, (str(uuid4()), *args), (lane,) if lane else ()))
