"""A worker polls without pause while a transaction is open: it sees the job after the commit, never before."""

import threading

import pytest
from django.db import transaction
from redis import Redis

from priqueue import enqueue, wiring
from tests.shop.jobs import note
from tests.support.queues import Queue, test_settings
from tests.support.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_polling_worker_gets_the_job_of_a_transaction_only_after_its_commit(client: Redis) -> None:
    queue = Queue(client, test_settings(), clock=None)
    queue.register("w")
    committed, polls, claimed_after_commit = threading.Event(), [], []

    def poll() -> None:
        while not claimed_after_commit:
            was_committed = committed.is_set()
            polls.append(None)
            for claim in queue.coordinator.pull("w"):
                claimed_after_commit.append((claim.job.id, was_committed or committed.is_set()))

    worker = threading.Thread(target=poll)
    with wiring.override(queue.coordinator), transaction.atomic():
        job = enqueue(note)
        worker.start()
        until(lambda: len(polls) > 200)
        committed.set()
    worker.join()

    assert claimed_after_commit == [(job.id, True)]
