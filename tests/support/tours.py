"""Tours: a queue in which every page has something to show, and the addresses of all its pages."""

from priqueue.coordinator.letters import Filter, Letters
from priqueue.jobs import Failure
from priqueue.views.routes import LETTERS, QUEUE
from tests.support.sites import Site

_DECLINED = Failure(
    error="project.shop.jobs.CardDeclined", message="the gateway declined the card of order S-007",
    traceback=(
        "Traceback (most recent call last):\n"
        '  File "/srv/shop/project/shop/jobs.py", line 29, in charge_card\n'
        '    raise CardDeclined(f"the gateway declined the card of order {number}")\n'
        "project.shop.jobs.CardDeclined: the gateway declined the card of order S-007\n"
    ),
)  # fmt: skip
_MISSING = Failure(error="KeyError", message="'vat'", traceback="Traceback …\nKeyError: 'vat'\n")


def fill(site: Site) -> None:
    """Let the queue be in use: jobs in every state, two workers, a paused lane, two causes, an hour of figures."""
    site.fill_series()
    site.bury(_MISSING, 2, caller="shop")
    site.bury(_DECLINED, 34, caller="key:billing", correlation_id="O-7F3K2M1Q")
    site.enqueue("send_receipt", {"number": "S-001"}, 12, lane="high", caller="user:42")
    site.enqueue("write_invoice", {"number": "S-002"}, 9, caller="shop")
    site.enqueue("sales_report", {"month": "2026-10"}, 30, lane="low", caller="command:ana")
    site.enqueue("send_reminder", {"number": "S-003"}, 6, delay_ms=900_000, run_at=None, caller="shop")
    for worker_id, lanes in (("web1:311:a7f3", ["high", "default", "low"]), ("web2:902:9c1d", ["high"])):
        site.coordinator.register(worker_id, lanes=lanes, concurrency=8, version="0.1.0")
    site.coordinator.pull("web1:311:a7f3", 5)
    site.coordinator.pause("low", caller="user:1", reason="bank maintenance", lasts_s=3000)
    site.coordinator.promote()
    site.coordinator.reclaim()


def beat(site: Site) -> None:
    """Let the workers that have no process of their own live on."""
    for worker_id in site.raw.hkeys(site.keys.workers):
        site.coordinator.beat(worker_id, [])


def addresses(site: Site) -> dict[str, str]:
    """Return the address of every page, by mount and name; of a letter as a list leads to it, with others beside it."""
    letter = Letters(site.coordinator.client, site.coordinator.settings).page(Filter(), size=2).letters[1]
    dead, here = letter.id, f"?here={letter.cursor}"
    ready = site.raw.lindex(site.keys.lane("low"), 0)
    parts = {"lane": "low", "worker": "web1:311:a7f3", "job": dead}
    mounts = {"admin": ("/admin/priqueue/queue/", "/admin/priqueue/deadletter/"), "own": ("/queue/", "/queue/dead/")}
    found = {}
    for mount, roots in mounts.items():
        for root, routes in zip(roots, (QUEUE, LETTERS), strict=True):
            for route in routes:
                if route.name in ("data", "export") or "run>" in route.path:
                    continue
                path = route.path
                for name, value in {**parts, **({"job": ready} if route.name == "cancel" else {})}.items():
                    path = path.replace(f"<str:{name}>", value).replace(f"<path:{name}>", value)
                way = here if routes is LETTERS and "<path:job>" in route.path else ""
                found[f"{mount}-{route.name}"] = root + path + way
        found[f"{mount}-found"] = f"{roots[0]}jobs/?id={dead}"
    return found | {"admin-audit": "/admin/priqueue/auditevent/"}
