"""After ``demo --once`` on a server that was given: remove the keys of the run's own namespace."""

from contextlib import suppress

from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

BATCH = 500


def forget_namespace() -> None:
    """Delete what the run left. The embedded server needs none of it: its data goes with the folder."""
    namespace = settings.PRIQUEUE.get("NAMESPACE", "")
    if settings.EMBEDDED_SERVER or not namespace.startswith("demo-once-"):
        return
    with suppress(RedisError), Redis.from_url(settings.PRIQUEUE["URL"], socket_timeout=5) as client:
        for key in client.scan_iter(match=f"{{{namespace}}}:*", count=BATCH):
            client.unlink(key)
