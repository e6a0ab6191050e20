"""Logs: one record for each transition, harmless to whoever reads it, with the same fields for machines each time.

    listener   hears the events and writes the records; everything else only says what happened
    masking    takes secrets out of what a record quotes
    context    gives records that a handler makes the job they belong to
    lines      escapes what could forge a line, and formats records for people

A project names ``priqueue.logs.JobFilter`` and a formatter in its LOGGING; nothing here needs either.
"""

from priqueue.logs.context import JobFilter
from priqueue.logs.lines import LineFormatter

# Not the listener: LOGGING may name what is here, and a logger that exists by then is switched off by default.
__all__ = ["JobFilter", "LineFormatter"]
