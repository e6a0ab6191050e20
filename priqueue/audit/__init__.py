"""The audit log: from the queue's outbox into rows that nobody changes, and the proof that nobody did.

rows     an event becomes a row; what the database could not hold is made storable and marked
chain    the hash of a row, and of the row before
store    a batch goes in: under the lock, once
auditor  the loop around it
verify   walks the chain and names the first break
anchors  heads of the chain, kept elsewhere: only they tell of a cut tail
archive  takes out what is old; the chain goes on
pages    the rows that somebody asks for, page by page off an index
exports  rows as lines of CSV and JSON
rights   what the runtime's role may do to the table
"""

from priqueue.audit.auditor import Auditor

__all__ = ["Auditor"]
