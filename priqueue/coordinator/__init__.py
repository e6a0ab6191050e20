"""The only code that knows Redis.

``Coordinator`` changes the queue, ``Inspector``, ``Letters`` and ``Census`` read it, ``Outbox`` hands on its audit
events.
"""

from priqueue.coordinator.census import Census
from priqueue.coordinator.inspection import Inspector
from priqueue.coordinator.letters import Letters
from priqueue.coordinator.operations import DENIED, INTENDED, Note, Refusal
from priqueue.coordinator.outbox import Batch, Entry, Outbox
from priqueue.coordinator.runs import Run, Runs
from priqueue.coordinator.transitions import Coordinator, Turn

__all__ = [
    "DENIED", "INTENDED", "Batch", "Census", "Coordinator", "Entry", "Inspector", "Letters", "Note", "Outbox",
    "Refusal", "Run", "Runs", "Turn",
]  # fmt: skip
