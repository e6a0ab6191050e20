"""The outbox: the oldest events are read, and let go of when they are stored."""

import pytest
from redis.exceptions import ConnectionError

from priqueue.coordinator import Batch, Outbox
from priqueue.exceptions import QueueUnavailable
from tests.support.auditing import outbox
from tests.support.queues import Queue


def test_events_are_read_oldest_first_under_the_name_of_their_stream(queue: Queue) -> None:
    jobs = queue.enqueue(number=3)

    read = outbox(queue).read(2)

    assert [(entry.fields["action"], entry.fields["job"]) for entry in read.entries] == [
        ("enqueue", jobs[0].id),
        ("enqueue", jobs[1].id),
    ]
    assert read.epoch == queue.raw.get(queue.keys.epoch)


def test_what_is_let_go_of_is_gone_and_what_is_newer_stays(queue: Queue) -> None:
    jobs = queue.enqueue(number=3)
    kept = outbox(queue)

    kept.let_go(kept.read(2))

    assert [job for _, _, job in queue.events()] == [jobs[2].id]
    assert kept.backlog() == 1


def test_events_that_came_in_the_same_millisecond_stay(queue: Queue) -> None:
    for number in range(4):
        queue.raw.xadd(queue.keys.audit, {"action": "ack"}, id=f"5-{number + 1}")
    kept = outbox(queue)

    kept.let_go(kept.read(2))

    assert [entry_id for entry_id, _ in queue.raw.xrange(queue.keys.audit)] == ["5-3", "5-4"]


def test_with_nothing_written_there_is_nothing_to_read_or_to_let_go_of(queue: Queue) -> None:
    kept = outbox(queue)

    assert kept.read(10) == Batch("", [])
    kept.let_go(Batch("", []))
    assert kept.backlog() == 0


def test_letting_go_twice_takes_nothing_more(queue: Queue) -> None:
    queue.enqueue(number=3)
    kept = outbox(queue)
    read = kept.read(2)

    kept.let_go(read)
    kept.let_go(read)

    assert kept.backlog() == 1


@pytest.mark.parametrize("call", ["read", "backlog"])
def test_a_server_that_does_not_answer_is_an_error_of_ours(real_queue: Queue, call: str, monkeypatch) -> None:
    kept: Outbox = outbox(real_queue)

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("refused")

    monkeypatch.setattr(kept.client, "xlen", refuse)
    monkeypatch.setattr(kept.client, "pipeline", refuse)

    with pytest.raises(QueueUnavailable):
        kept.read(1) if call == "read" else kept.backlog()
