"""Workers that are told to stop within milliseconds of their start: no job is left to nobody."""

import random
from collections import Counter

from tests.faults.checker import WORK, produce
from tests.faults.fleet import claim_and_stop
from tests.support.processes import Live


def test_two_hundred_workers_stopped_as_they_claim_leave_every_job_in_its_lane_or_done(live: Live) -> None:
    jobs = {job.id for job in produce(live, WORK, 3000)}

    claim_and_stop(live, 200, 0, random.Random(7))

    ready = live.raw.lrange(live.coordinator.keys.lane("default"), 0, -1)
    ended = [line["id"] for line in live.history("end")]
    assert Counter([*ready, *ended]) == Counter(jobs)
    assert live.raw.hlen(live.coordinator.keys.inflight) == 0
    assert 0 < len(ended) < 3000
