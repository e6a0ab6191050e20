"""The auditor: from the queue's outbox to rows, each event exactly once and in order."""

import pytest
from django.db import DatabaseError, connections

from priqueue.audit.verify import verify
from priqueue.coordinator import Outbox
from priqueue.exceptions import QueueUnavailable
from tests.support import auditing
from tests.support.auditing import said, stored
from tests.support.databases import ALIAS
from tests.support.queues import Queue

pytestmark = pytest.mark.usefixtures("audit_database")


def test_every_event_becomes_a_row_that_says_the_same_and_the_stream_is_empty_after(real_queue: Queue) -> None:
    real_queue.buried(number=3, caller="user:42", correlation_id="c-1")
    events = said(real_queue)

    auditing.auditor(real_queue).run_once()

    assert stored() == events
    assert len(events) == 10
    assert auditing.outbox(real_queue).backlog() == 0


def test_a_row_names_its_namespace_and_the_epoch_of_its_stream(real_queue: Queue) -> None:
    real_queue.enqueue()

    auditing.auditor(real_queue).run_once()

    (row,) = auditing.rows()
    assert (row.namespace, row.epoch) == (real_queue.settings.namespace, real_queue.raw.get(real_queue.keys.epoch))
    assert row.mark == ""


def test_the_epoch_outlives_an_emptied_stream(real_queue: Queue) -> None:
    auditor = auditing.auditor(real_queue)
    real_queue.enqueue()
    auditor.run_once()

    real_queue.enqueue()
    auditor.run_once()

    assert len({row.epoch for row in auditing.rows()}) == 1


def test_rows_follow_each_other_over_many_batches(real_queue: Queue) -> None:
    real_queue.enqueue(number=2500)
    auditor = auditing.auditor(real_queue)

    waits = [auditor.run_once() for _ in range(3)]

    assert waits[:2] == [0, 0]
    assert waits[2] > 0
    assert [row.id for row in auditing.rows()] == list(range(1, 2501))
    assert verify(ALIAS).broken is None


def test_with_nothing_to_store_the_database_is_not_asked(real_queue: Queue) -> None:
    connections[ALIAS].close()

    auditing.auditor(real_queue).run_once()

    assert connections[ALIAS].connection is None


def test_a_stream_that_could_not_be_trimmed_leaves_no_second_row(real_queue: Queue, monkeypatch) -> None:
    real_queue.enqueue(number=3)
    events = said(real_queue)
    with monkeypatch.context() as broken:
        broken.setattr(Outbox, "let_go", lambda *_: (_ for _ in ()).throw(QueueUnavailable()))
        with pytest.raises(QueueUnavailable):
            auditing.auditor(real_queue).run_once()
    assert auditing.outbox(real_queue).backlog() == 3
    real_queue.raw.xadd(real_queue.keys.audit, {"action": "ack", "at": "1"})

    auditing.auditor(real_queue).run_once()

    assert stored()[:3] == events
    assert len(stored()) == 4
    assert auditing.outbox(real_queue).backlog() == 0


def test_events_stay_in_the_stream_until_the_commit(real_queue: Queue, monkeypatch) -> None:
    real_queue.enqueue(number=3)
    monkeypatch.setattr("priqueue.audit.store.insert", lambda *_: (_ for _ in ()).throw(DatabaseError("no")))

    with pytest.raises(DatabaseError):
        auditing.auditor(real_queue).run_once()

    assert auditing.rows() == []
    assert auditing.outbox(real_queue).backlog() == 3


def test_a_server_that_lost_its_data_begins_another_epoch_and_nothing_is_mixed_up(real_queue: Queue) -> None:
    auditor = auditing.auditor(real_queue)
    real_queue.enqueue()
    auditor.run_once()
    real_queue.raw.delete(real_queue.keys.audit, real_queue.keys.epoch)
    real_queue.enqueue()

    auditor.run_once()

    assert len({row.epoch for row in auditing.rows()}) == 2
    assert [row.mark for row in auditing.rows()] == ["", ""]


def test_what_was_read_before_the_data_was_lost_takes_nothing_of_the_new_stream_along(real_queue: Queue) -> None:
    real_queue.enqueue()
    outbox = auditing.outbox(real_queue)
    read = outbox.read(10)
    real_queue.raw.delete(real_queue.keys.audit)
    real_queue.raw.set(real_queue.keys.epoch, "another")
    real_queue.raw.xadd(real_queue.keys.audit, {"action": "ack"}, id="1-1")

    outbox.let_go(read)

    assert outbox.backlog() == 1


def test_an_auditor_is_seen_when_a_turn_comes_to_its_end(real_queue: Queue) -> None:
    auditing.auditor(real_queue).run_once()
    idle = real_queue.raw.hgetall(real_queue.keys.seen)
    real_queue.raw.delete(real_queue.keys.seen)
    real_queue.enqueue()

    auditing.auditor(real_queue).run_once()

    assert set(idle) == set(real_queue.raw.hgetall(real_queue.keys.seen)) == {"auditor"}


def test_an_auditor_that_cannot_store_is_not_seen(real_queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priqueue.audit.store.insert", lambda *_: (_ for _ in ()).throw(DatabaseError("no")))
    real_queue.enqueue()

    with pytest.raises(DatabaseError):
        auditing.auditor(real_queue).run_once()

    assert not real_queue.raw.exists(real_queue.keys.seen)
