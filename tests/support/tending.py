"""What the tests of the pages of dead letters share: letters to look at, and what a page of them shows."""

import re
from typing import Any

from tests.support.queues import Queue
from tests.support.visiting import OWN

DEAD = f"{OWN}dead/"
ADMIN_DEAD = "/admin/priqueue/deadletter/"


def bury(queue: Queue, number: int = 1, **options: Any) -> list[str]:
    """Bury jobs, one second apart; return their ids, newest first."""
    ids: list[str] = []
    for _ in range(number):
        ids.insert(0, queue.buried(**options)[0].id)
        queue.clock.advance(1)
    return ids


def listed(page: Any) -> list[str]:
    """Return the ids that a list shows, in its order."""
    return re.findall(r'<code title="([^"]+)">', page.content.decode())


def links(page: Any, name: str) -> list[str]:
    """Return where the links of a name lead."""
    found = re.findall(rf'<a [^>]*href="([^"]*)"[^>]*>{re.escape(name)}</a>', page.content.decode())
    return [address.replace("&amp;", "&") for address in found]


def link(page: Any, name: str) -> str:
    """Return where a link leads."""
    found = links(page, name)
    assert found, f"no link {name}"
    return found[0]


def opening(page: Any, job_id: str) -> str:
    """Return where the link leads that opens a letter of a list."""
    found = re.search(rf'<a id="letter-{job_id}" href="([^"]*)"', page.content.decode())
    assert found, f"{job_id} is not in the list"
    return found[1].replace("&amp;", "&")
