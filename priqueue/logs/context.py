"""Context: which job a record belongs to that a handler, or what it calls, has made."""

import logging

from priqueue import callers, wiring
from priqueue.exceptions import ConfigurationError
from priqueue.executor import current_job


class JobFilter(logging.Filter):
    """Gives each record the fields of the job that is run where it is made, or of the request; lets all pass.

    To be named with a handler in LOGGING: a filter of a logger does not see what its children make.
    What a record says by itself stays.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields that are known here."""
        known, run = record.__dict__, current_job()
        if run is not None:
            for name, value in run.log_fields.items():
                known.setdefault(name, value)
            known.setdefault("queue", _queue())
        elif correlation_id := callers.correlation_id():
            known.setdefault("correlation_id", correlation_id)
        return True


def _queue() -> str:
    try:
        return wiring.settings().namespace
    except ConfigurationError:  # whoever logs that must be let through
        return ""
