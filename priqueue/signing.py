"""Signing: a MAC in front of the envelope, so that only those who hold a key can hand work to the workers.

    <43 characters: HMAC-SHA-256 of id, newline, envelope> <space> <envelope>

The id is signed too: no envelope can be replayed under another. What does not verify is never decoded.
"""

import hmac
from binascii import b2a_base64
from collections.abc import Sequence
from functools import lru_cache

from priqueue.exceptions import PriqueueError

_LENGTH = 43
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


class BadSignature(PriqueueError):
    """The envelope is not signed with any of SIGNING_KEYS: not ours, or changed. It is never run."""


def sign(keys: Sequence[bytes], job_id: str, body: str) -> str:
    """Return the envelope as it is stored: signed with the first key, or as it is when there is none."""
    return f"{_mac(keys[0], job_id, body).decode()} {body}" if keys else body


def verify(keys: Sequence[bytes], job_id: str, stored: str) -> str:
    """Return the envelope without its signature.

    Without keys nothing is verified, so that signing can be switched off while signed jobs still wait.
    Raises BadSignature when there are keys and none of them fits.
    """
    signed = stored[_LENGTH : _LENGTH + 1] == " " and not stored.startswith("{")
    body = stored[_LENGTH + 1 :] if signed else stored
    if not keys:
        return body
    # As bytes: compare_digest refuses text beyond ASCII, and a forger may send just that.
    signature = _raw(stored[:_LENGTH])
    # A newline in the id could move the start of the envelope into it.
    if signed and "\n" not in job_id:
        for key in keys:
            if hmac.compare_digest(_mac(key, job_id, body), signature):
                return body
    raise BadSignature


def _mac(key: bytes, job_id: str, body: str) -> bytes:
    mac = _keyed(key).copy()
    mac.update(_raw(f"{job_id}\n{body}"))
    return b2a_base64(mac.digest(), newline=False).translate(_URL_SAFE)[:_LENGTH]


@lru_cache(maxsize=16)  # to find the algorithm and to take in the key is as dear as all the rest
def _keyed(key: bytes) -> hmac.HMAC:
    return hmac.new(key, digestmod="sha256")


def _raw(text: str) -> bytes:
    # The inverse of how replies are decoded: whatever bytes the server held, these are they.
    return text.encode(errors="surrogateescape")
