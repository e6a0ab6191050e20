"""Keys: the only place that builds the name of a key.

All begin with the namespace as a hash tag, so that every script touches one slot of a cluster.
What each holds:

    audit       stream   audit events on their way to the database
    epoch       string   names this incarnation of the stream: drawn with its first event
    counters    hash     totals per event and lane; waits and runs by range (prelude/histograms.lua)
    jobs        hash     id → envelope, immutable
    attempts    hash     id → "failures crashes", only for jobs that have failed or crashed
    since       hash     id → server ms at which it became ready, where that is not the id's own time; what was
                         delayed has the ms at which it was due behind it
    inflight    hash     id → "worker token deadline_ms lane attempt crashes": the truth about what is in flight
    deadlines   zset     id by deadline ms: an index of inflight, which wins where they differ
    slots       hash     worker → leases held; changes only together with inflight
    claims      hash     worker → its last claim id and the job ids it gave, to answer a repeat
    workers     hash     worker → what it registered, as JSON
    heartbeats  hash     worker → last beat, server ms
    sweep       string   "last_reclaim_ms hold_until_ms", for the grace
    picker      hash     "pool:lane" → credits left
    paused      hash     lane → who, why, since, until, as JSON
    wake:ticker list     at most one token: "there is an earlier due time"
    dead        list     dead job ids, newest first: the order; requeue and purge leave holes
    letters     hash     id → lane, cause, handler, caller, buried_at_ms as JSON: the truth about what is dead
    causes      hash     cause → number of its letters
    holes       hash     id → entries of ``dead`` that no longer stand for a letter: the oldest of its entries
    kept        list     while ``dead`` is trimmed: the older part of it, read already; it follows on ``dead``
    trim        string   while ``dead`` is trimmed: how many of its oldest entries are still to be read
    seen        hash     duty (ticker, sweeper, auditor) → its last turn that came to its end, server ms
    refusals    zset     caller by the server ms of the first refusal that no audit event tells of yet
    refused     hash     caller → number of those refusals

and, by name: lane:<lane> (list, FIFO), delayed:<lane> (zset by due ms), wake:<lane> (list, at most one token),
trail:<id> (list, newest last), cause:<cause> (zset by time), series:<bucket> (hash, totals and gauges of ten seconds),
run:<id> (hash, for a week: a requeue or purge of many letters, and how far it is),
answer:<call id> (string, for five minutes: what a call answered, for its repeats), limit:<hash of caller> (string,
"paid_us call", until a minute after that time: its rate), once:<hash of caller>:<hash of key> (string, "digest id", for
a day: the job that came in under an idempotency key), form:<token> (string, for an hour: who sent a form of a page
first, then what came of it).
"""

from collections.abc import Iterable
from hashlib import sha256

#: in the order in which prelude.lua takes them
FIXED = (
    "audit", "epoch", "counters", "jobs", "attempts", "since", "inflight", "deadlines", "slots", "claims",
    "workers", "heartbeats", "sweep", "picker", "paused", "wake:ticker", "dead", "letters", "causes", "holes",
    "kept", "trim", "seen", "refusals", "refused",
)  # fmt: skip
BUCKET_MS = 10_000
#: a worker that has been silent for so long is forgotten
FORGET_AFTER_MS = 600_000


def hashed(text: str) -> str:
    """Return what stands for a name in a key: of one length whatever the name, and telling nothing of it."""
    return sha256(text.encode()).hexdigest()[:32]


class Keys:
    """The names of one namespace's keys."""

    def __init__(self, namespace: str) -> None:
        self.prefix = f"{{{namespace}}}:"
        self.fixed = tuple(self.prefix + name for name in FIXED)

    def __getattr__(self, name: str) -> str:
        """Return the key of a fixed name: ``keys.inflight``."""
        if name not in FIXED:
            raise AttributeError(name)
        return self.prefix + name

    def lane(self, lane: str) -> str:
        return f"{self.prefix}lane:{lane}"

    def delayed(self, lane: str) -> str:
        return f"{self.prefix}delayed:{lane}"

    def wake(self, lane: str) -> str:
        return f"{self.prefix}wake:{lane}"

    @property
    def wake_ticker(self) -> str:
        return self.prefix + "wake:ticker"

    def trail(self, job_id: str) -> str:
        return f"{self.prefix}trail:{job_id}"

    def cause(self, cause: str) -> str:
        return f"{self.prefix}cause:{cause}"

    def run(self, run_id: str) -> str:
        return f"{self.prefix}run:{run_id}"

    def series(self, at_ms: int) -> str:
        return f"{self.prefix}series:{at_ms - at_ms % BUCKET_MS}"

    def limit(self, caller: str) -> str:
        return f"{self.prefix}limit:{hashed(caller)}"

    def once(self, caller: str, key: str) -> str:
        return f"{self.prefix}once:{hashed(caller)}:{hashed(key)}"

    def of_lanes(self, lanes: Iterable[str]) -> list[str]:
        """Return the keys of some lanes as scripts take them: lane, delayed, wake for each."""
        return [key for lane in lanes for key in (self.lane(lane), self.delayed(lane), self.wake(lane))]
