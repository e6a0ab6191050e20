"""The queue as a plain Python model: every transition of the design, and nothing of how it is done in Redis.

Each method has the name of a transition, returns what the caller must be told, and notes the audit events.
"""

from collections.abc import Sequence

from priqueue.coordinator.keys import FORGET_AFTER_MS
from priqueue.jobs import Claim, Failure, Job, to_ms
from priqueue.picker import pick
from tests.support.places import Lease, Places, Worker


class Operations(Places):
    """What people do, and the comings and goings of workers."""

    def requeue(self, ids: Sequence[str], caller: str, until_ms: int | None) -> list[str]:
        done = [job_id for job_id in self.letters_until(ids, until_ms) if "replaced_by" not in self.letters[job_id]]
        for job_id in done:
            letter = self.remove_letter(job_id)
            self.make_ready(job_id, letter["lane"], at_head=False)
            self.tell("requeue", "requeued", caller, job_id, letter["lane"])
        return done

    def purge(self, ids: Sequence[str], caller: str, until_ms: int | None) -> list[str]:
        done = self.letters_until(ids, until_ms)
        for job_id in done:
            letter = self.remove_letter(job_id)
            self.forget_job(job_id)
            self.tell("purge", "purged", caller, job_id, letter["lane"])
        return done

    def replace(self, job_id: str, copy: Job, caller: str) -> str:
        letter = self.letters.get(job_id)
        if letter is None or "replaced_by" in letter:
            return letter["replaced_by"] if letter else ""
        letter["replaced_by"] = copy.id
        self.jobs[copy.id] = copy
        self.ready[copy.lane].append(copy.id)
        self.wake(copy.lane)
        self.tell("enqueue", "enqueued", copy.caller, copy.id, copy.lane)
        self.tell("replace", "replaced", caller, job_id, letter["lane"])
        return copy.id

    def cancel(self, job_id: str, lane: str, caller: str) -> bool:
        if job_id in self.delayed[lane]:
            del self.delayed[lane][job_id]
        elif job_id in self.ready[lane]:
            self.ready[lane].remove(job_id)
        else:
            return False
        self.forget_job(job_id)
        self.tell("cancel", "cancelled", caller, job_id, lane)
        return True

    def pause(self, lane: str, caller: str, lasts_ms: int | None) -> None:
        self.paused[lane] = None if lasts_ms is None else self.now_ms + lasts_ms
        self.events.append(("pause", caller, ""))

    def resume(self, lane: str, caller: str, if_over: bool) -> bool:
        if lane not in self.paused:
            return False
        until_ms = self.paused[lane]
        if if_over and (until_ms is None or until_ms > self.now_ms):
            return False
        del self.paused[lane]
        if self.ready[lane]:
            self.wake(lane)
        self.events.append(("resume", caller, ""))
        return True

    def register(self, worker_id: str, lanes: Sequence[str], concurrency: int) -> None:
        ordered = tuple(lane for lane in self.settings.lane_names if lane in lanes)
        self.workers[worker_id] = Worker(ordered, concurrency)
        self.heartbeats[worker_id] = self.now_ms
        self.events.append(("register", f"worker:{worker_id}", ""))

    def drain(self, worker_id: str, caller: str) -> bool:
        if worker_id not in self.workers:
            return False
        self.workers[worker_id].draining = True
        self.tokens.update(self.workers[worker_id].lanes)
        self.events.append(("drain", caller, ""))
        return True

    def leave(self, worker_id: str) -> bool:
        if self.held(worker_id):
            return False
        if worker_id in self.workers:
            self.forget_worker(worker_id)
            self.events.append(("leave", f"worker:{worker_id}", ""))
        return True

    def forget(self, worker_ids: Sequence[str]) -> int:
        silent = [
            worker_id
            for worker_id in worker_ids
            if worker_id in self.workers
            and self.heartbeats[worker_id] + FORGET_AFTER_MS < self.now_ms
            and not self.held(worker_id)
        ]
        for worker_id in silent:
            self.forget_worker(worker_id)
            self.events.append(("forget", "sweeper", ""))
        return len(silent)

    def held(self, worker_id: str) -> int:
        return sum(lease.worker == worker_id for lease in self.in_flight.values())


class Model(Operations):
    """One queue, with a job's whole life."""

    def enqueue(self, job: Job) -> bool:
        if job.id in self.jobs:
            return False
        absolute = job.delay_ms is None and job.run_at
        due_ms = to_ms(absolute) if absolute else self.now_ms + (job.delay_ms or 0)
        self.jobs[job.id] = job
        if due_ms <= self.now_ms:
            self.ready[job.lane].append(job.id)
            self.wake(job.lane)
        else:
            self.delay(job.id, job.lane, due_ms)
        self.tell("enqueue", "enqueued", job.caller, job.id, job.lane)
        return True

    def promote(self, limit: int) -> int:
        moved = 0
        for lane in self.settings.lane_names:
            due = sorted((ms, job_id) for job_id, ms in self.delayed[lane].items() if ms <= self.now_ms)
            for _, job_id in due[: limit - moved]:
                del self.delayed[lane][job_id]
                self.make_ready(job_id, lane, at_head=False)
                self.tell("promote", "promoted", "ticker", job_id, lane)
                moved += 1
        return moved

    def claim(self, worker_id: str, limit: int, token: str) -> str | list[str]:
        """Return the ids in pick order, or why there are none."""
        if refusal := self.claim_refusal(worker_id):
            return refusal
        worker = self.workers[worker_id]
        self.heartbeats[worker_id] = self.now_ms
        room = min(limit, worker.concurrency - self.held(worker_id))
        picks = [self._claim_one(worker_id, worker.lanes, token) for _ in range(max(room, 0))]
        ids = [job_id for job_id in picks if job_id]
        for lane in worker.lanes:
            if self.ready[lane]:
                self.wake(lane)
        if ids:
            self.claims[worker_id] = token, ids
        return ids

    def claim_refusal(self, worker_id: str) -> str:
        worker = self.workers.get(worker_id)
        return "" if worker and not worker.draining else "draining" if worker else "unregistered"

    def _claim_one(self, worker_id: str, pool: tuple[str, ...], token: str) -> str | None:
        lanes = [lane for lane in self.settings.lanes if lane.name in pool]
        with_work = {lane.name for lane in lanes if self.ready[lane.name] and lane.name not in self.paused}
        chosen = pick(lanes, self.credits.setdefault(pool, {}), with_work)
        if chosen is None:
            return None
        job_id = self.ready[chosen].pop(0)
        failures, crashes = self.attempts.get(job_id, (0, 0))
        self.since.pop(job_id, None)
        self.in_flight[job_id] = Lease(worker_id, token, self.now_ms + self.lease_ms, chosen, failures + 1, crashes)
        self.tell("claim", "picks", f"worker:{worker_id}", job_id, chosen)
        if len(with_work) == len(lanes):
            self.counters[f"picks_full:{chosen}"] += 1
        return job_id

    def claim_again(self, worker_id: str) -> list[str]:
        """Return what a repeat of the worker's last claim gives: the leases of it that are still held."""
        token, ids = self.claims[worker_id]
        return [job_id for job_id in ids if self.held_by(job_id, token)]

    def beat(self, worker_id: str, claims: Sequence[Claim]) -> list[str] | None:
        if worker_id not in self.workers:
            return None
        late = self.now_ms - self.heartbeats[worker_id] >= self.lease_ms * 3 / 4
        self.heartbeats[worker_id] = self.now_ms
        for claim in claims:
            if lease := self.held_by(claim.job.id, claim.token):
                late = late or lease.deadline_ms - self.now_ms <= self.lease_ms / 4
                lease.deadline_ms = self.now_ms + self.lease_ms
        if late:
            self.counters["late_beats:"] += 1
        return [claim.job.id for claim in claims if not self.held_by(claim.job.id, claim.token)]

    def ack(self, claim: Claim, repeat: bool) -> bool:
        if not self.held_by(claim.job.id, claim.token):
            return repeat and claim.job.id not in self.jobs
        lease = self.in_flight.pop(claim.job.id)
        self.forget_job(claim.job.id)
        self.tell("ack", "acked", f"worker:{lease.worker}", claim.job.id, lease.lane)
        return True

    def retry(self, claim: Claim, delay_ms: int, repeat: bool) -> bool:
        if not self.held_by(claim.job.id, claim.token):
            return repeat and self.failed_with(claim)
        lease = self.fail(claim)
        self.delay(claim.job.id, lease.lane, self.now_ms + delay_ms)
        self.tell("retry", "retried", f"worker:{lease.worker}", claim.job.id, lease.lane)
        return True

    def bury(self, claim: Claim, failure: Failure, repeat: bool) -> bool:
        if not self.held_by(claim.job.id, claim.token):
            return repeat and self.failed_with(claim)
        lease = self.fail(claim)
        self.write_letter(claim.job.id, lease.lane, failure.error)
        self.tell("bury", "buried", f"worker:{lease.worker}", claim.job.id, lease.lane)
        return True

    def release(self, claims: Sequence[Claim], delay_ms: int, repeat: bool) -> bool:
        answers = [self._release_one(claim, delay_ms, repeat) for claim in reversed(claims)]
        return all(answers)

    def _release_one(self, claim: Claim, delay_ms: int, repeat: bool) -> bool:
        if not self.held_by(claim.job.id, claim.token):
            return repeat
        lease = self.in_flight.pop(claim.job.id)
        if delay_ms:
            self.delayed[lease.lane][claim.job.id] = self.now_ms + delay_ms
            self.tokens.add("ticker")
        else:
            self.make_ready(claim.job.id, lease.lane, at_head=True)
        self.tell("release", "released", f"worker:{lease.worker}", claim.job.id, lease.lane)
        return True

    def reclaim(self, limit: int) -> int:
        for _, lease in self.by_deadline(lambda ms: ms > self.now_ms + self.lease_ms)[:limit]:
            lease.deadline_ms = self.now_ms + self.lease_ms
        if self._in_grace():
            return 0
        lapsed = self.by_deadline(lambda ms: ms <= self.now_ms)[:limit]
        for job_id, lease in lapsed:
            del self.in_flight[job_id]
            self.note_attempt(job_id, lease.token, crash=True)
            self.attempts[job_id] = lease.attempt - 1, lease.crashes + 1
            if lease.crashes + 1 < self.settings.max_crashes:
                self.make_ready(job_id, lease.lane, at_head=True)
            else:
                self.write_letter(job_id, lease.lane, "WorkerLost")
                self.counters[f"buried:{lease.lane}"] += 1
            self.tell("reclaim", "reclaimed", "sweeper", job_id, lease.lane)
        return len(lapsed)

    def _in_grace(self) -> bool:
        """After a silence of more than one lease, nothing is reclaimed for one more."""
        last_ms = self.now_ms if self.last_reclaim_ms is None else self.last_reclaim_ms
        longest_ms = self.now_ms + self.lease_ms
        silent = self.now_ms - last_ms > self.lease_ms
        self.hold_until_ms = longest_ms if silent else min(self.hold_until_ms, longest_ms)
        self.last_reclaim_ms = self.now_ms
        return self.now_ms < self.hold_until_ms
