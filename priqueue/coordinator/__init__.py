"""The only code that knows Redis. ``Coordinator`` changes the queue, ``Inspector`` and ``Letters`` read it."""

from priqueue.coordinator.inspection import Inspector
from priqueue.coordinator.letters import Letters
from priqueue.coordinator.transitions import Coordinator

__all__ = ["Coordinator", "Inspector", "Letters"]
