"""API keys: made, looked up, revoked. A token is shown once, when it is made, and known only by its hash from then on.

    pq_<12 hex digits: which key>_<64 hex digits: the secret>

The look-up goes by the first part alone. The hash of the whole is then compared in constant time, also when there is
no such key, so that an answer's time tells nothing of what is right in a wrong token.
"""

import hmac
import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from django.db import connections, router
from django.db.models import Q

from priqueue import jobs
from priqueue.limits import Limit
from priqueue.models import ApiKey

ALL = "*"
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
    ids = [key.pk for key in keys]
    return ApiKey.objects.filter(pk__in=ids, revoked_at=None).update(revoked_at=jobs.now())


def _digest(token: str) -> bytes:
    return sha256(token.encode(errors="surrogatepass")).digest()
