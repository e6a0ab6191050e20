"""API keys: made, looked up, revoked. A token is shown once, when it is made, and known only by its hash from then on.

    pq_<12 hex digits: which key>_<64 hex digits: the secret>

The look-up goes by the first part alone. The hash of the whole is then compared in constant time, also when there is
no such key, so that an answer's time tells nothing of what is right in a wrong token.
"""

import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256

from django.db.models import Q

from priqueue import jobs
from priqueue.limits import Limit
from priqueue.models import ApiKey

ALL = "*"
_TOKEN = re.compile(r"pq_([0-9a-f]{12})_[0-9a-f]{64}")
_NOTHING = bytes(32)
_SEEN_EVERY = timedelta(minutes=1)


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


def find(token: str) -> ApiKey | None:
    """Return the valid key of a token, and note that it was used; None for any other token."""
    parts = _TOKEN.fullmatch(token)
    found = next(iter(ApiKey.objects.filter(prefix=parts[1])[:1]), None) if parts else None
    is_right = hmac.compare_digest(_digest(token), bytes(found.digest) if found else _NOTHING)
    moment = jobs.now()
    if found is None or not is_right or not found.is_valid_at(moment):
        return None
    _note_use(found, moment)
    return found


def revoke(keys: Sequence[ApiKey]) -> int:
    """Let keys open the door no more, from now on; return how many did until now."""
    ids = [key.pk for key in keys]
    return ApiKey.objects.filter(pk__in=ids, revoked_at=None).update(revoked_at=jobs.now())


def _note_use(key: ApiKey, moment: datetime) -> None:
    before = moment - _SEEN_EVERY
    if key.last_used_at is None or key.last_used_at <= before:
        # Of requests that come together one writes.
        unseen = Q(last_used_at=None) | Q(last_used_at__lte=before)
        ApiKey.objects.filter(unseen, pk=key.pk).update(last_used_at=moment)


def _digest(token: str) -> bytes:
    return sha256(token.encode(errors="surrogatepass")).digest()
