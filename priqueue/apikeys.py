"""API keys: made, looked up, revoked. A token is shown once, when it is made, and known only by its hash from then on.

    pq_<12 hex digits: which key>_<64 hex digits: the secret>

The look-up goes by the first part alone. The hash of the whole is then compared in constant time, also when there is
no such key, so that an answer's time tells nothing of what is right in a wrong token.

Who made, changed or revoked a key is in the audit log. It is noted once that is committed, and not before: a key has to
be revocable while the queue is away. What could not be noted is a warning in the log.
"""

import hmac
import json
import logging
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any

from django.db import connections, router, transaction
from django.db.models import Q

from priqueue import callers, jobs, wiring
from priqueue.coordinator import Coordinator, Note
from priqueue.exceptions import PriqueueError
from priqueue.limits import Limit
from priqueue.logs.lines import escaped
from priqueue.models import ApiKey

ALL = "*"
_log = logging.getLogger(__name__)
_TOKEN = re.compile(r"pq_([0-9a-f]{12})_[0-9a-f]{64}")
_NOTHING = bytes(32)
_SEEN_EVERY = timedelta(minutes=1)
_LOOK_UP = """
SELECT id, digest, name, lanes, handlers, rate, last_used_at IS NULL OR last_used_at <= %s
FROM priqueue_apikey WHERE prefix = %s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %s)
"""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a key lets its holder do, as the caller ``key:<name>``."""

    name: str
    lanes: Sequence[str]
    handlers: Sequence[str]
    limit: Limit | None


def create(
    name: str, *, lanes: Sequence[str], handlers: Sequence[str], rate: str = "", expires_at: datetime | None = None
) -> tuple[ApiKey, str]:
    """Make a key; return it and its token, which cannot be had again.

    Lanes and handlers are names, or ``["*"]``. Raises ValueError for a rate that is none, and
    django.core.exceptions.ValidationError, by field, for what does not fit or is taken.
    """
    key = ApiKey(name=name, lanes=[*lanes], handlers=[*handlers], rate=rate, expires_at=expires_at)
    token = furnish(key)
    key.full_clean()
    key.save()
    note("create", key, "created")
    return key, token


def furnish(key: ApiKey) -> str:
    """Give a key that is not saved yet its secret; return the token. Raises ValueError for a rate that is none."""
    if key.rate:
        Limit.parse(key.rate)
    key.prefix = secrets.token_hex(6)
    token = f"pq_{key.prefix}_{secrets.token_hex(32)}"
    key.digest, key.created_at = _digest(token), jobs.now()
    return token


def find(token: str) -> Grant | None:
    """Return what the key of a token grants, and note that it was used; None where no valid key has this token."""
    parts, moment = _TOKEN.fullmatch(token), jobs.now()
    found = _row(parts[1], moment) if parts else None
    if not hmac.compare_digest(_digest(token), bytes(found[1]) if found else _NOTHING) or found is None:
        return None
    key_id, _, name, lanes, handlers, rate, is_unseen = found
    if is_unseen:
        # Of requests that come together one writes.
        ApiKey.objects.filter(_unseen(moment), pk=key_id).update(last_used_at=moment)
    return Grant(name, json.loads(lanes), json.loads(handlers), Limit.parse(rate) if rate else None)


def _row(prefix: str, moment: datetime) -> tuple[Any, ...] | None:
    """Return the row of a valid key. By hand: it is read for every request, and the ORM took ten times as long."""
    connection = connections[router.db_for_read(ApiKey)]
    now, seen = (connection.ops.adapt_datetimefield_value(each) for each in (moment, moment - _SEEN_EVERY))
    with connection.cursor() as cursor:
        cursor.execute(_LOOK_UP, [seen, prefix, now])
        found: tuple[Any, ...] | None = cursor.fetchone()
    return found


def _unseen(moment: datetime) -> Q:
    return Q(last_used_at=None) | Q(last_used_at__lte=moment - _SEEN_EVERY)


def revoke(keys: Sequence[ApiKey]) -> int:
    """Let keys open the door no more, from now on; return how many did until now."""
    open_keys = ApiKey.objects.filter(pk__in=[key.pk for key in keys], revoked_at=None)
    revoked = list(open_keys)
    number = open_keys.update(revoked_at=jobs.now())
    for key in revoked:
        note("revoke", key, "revoked")
    return number


def note(action: str, key: ApiKey, outcome: str) -> None:
    """Leave an audit event of what the caller did to a key, once that is committed. It holds no secret."""
    acting = callers.acting()
    made = Note(
        action=action, caller=acting.caller, outcome=outcome, input=_described(key),
        correlation_id=acting.correlation_id,
    )  # fmt: skip
    with _told(made):
        leave = partial(_leave, wiring.coordinator(), made)  # of here and now: it may be one of less patience
        transaction.on_commit(leave, using=router.db_for_write(ApiKey))


def _leave(coordinator: Coordinator, made: Note) -> None:
    with _told(made):
        coordinator.note(made)


@contextmanager
def _told(made: Note) -> Iterator[None]:
    try:
        yield
    except PriqueueError as error:
        _log.warning(
            "could not note %r of %s: %s: %s", made.outcome, made.caller, escaped(made.input), escaped(str(error))
        )


def _described(key: ApiKey) -> str:
    """Return which key it is, and what it may use."""
    ends = f", expires {key.expires_at.isoformat(timespec='seconds')}" if key.expires_at else ""
    limit = f", rate {key.rate}" if key.rate else ""
    lanes, handlers = ",".join(key.lanes), ",".join(key.handlers)
    return f"key:{key.name} pq_{key.prefix}, lanes {lanes}, handlers {handlers}{limit}{ends}"


def _digest(token: str) -> bytes:
    return sha256(token.encode(errors="surrogatepass")).digest()
