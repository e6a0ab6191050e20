"""The envelope's signature: what is verified, what is refused, and what it costs."""

import base64
import hashlib
import hmac

import pytest

from priqueue.exceptions import PriqueueError
from priqueue.signing import BadSignature, sign, verify

KEYS = (b"the first key signs",)
ID = "01900000-0000-7000-8000-000000000000"
BODY = '{"v":1,"name":"shop.jobs.send_receipt","payload":{"text":"é☃"}}'


def test_a_signed_envelope_comes_back_byte_for_byte():
    assert verify(KEYS, ID, sign(KEYS, ID, BODY)) == BODY


def test_the_signature_is_an_hmac_over_id_and_envelope():
    mac = hmac.new(KEYS[0], f"{ID}\n{BODY}".encode(), hashlib.sha256).digest()

    assert sign(KEYS, ID, BODY) == base64.urlsafe_b64encode(mac).decode().rstrip("=") + " " + BODY


def test_without_keys_the_envelope_is_stored_as_it_is():
    assert sign((), ID, BODY) == BODY


def test_without_keys_an_unsigned_envelope_is_accepted():
    assert verify((), ID, BODY) == BODY


def test_without_keys_a_signed_envelope_loses_its_signature_unverified():
    assert verify((), "another id", sign(KEYS, ID, BODY)) == BODY


def test_an_unsigned_envelope_with_a_space_where_a_signature_would_end_is_no_signed_one():
    body = '{"v":1,"x":"' + "a" * 31 + ' and more"}'

    assert (body[43], verify((), ID, body)) == (" ", body)


def test_an_envelope_signed_with_an_older_key_is_accepted():
    assert verify((b"new", *KEYS), ID, sign(KEYS, ID, BODY)) == BODY


def test_only_the_first_key_signs():
    signed = sign((b"new", *KEYS), ID, BODY)

    with pytest.raises(BadSignature):
        verify(KEYS, ID, signed)


@pytest.mark.parametrize(
    "stored",
    [
        BODY,
        "",
        " ",
        "A" * 43,
        "A" * 43 + " " + BODY,
        "é" * 43 + " " + BODY,
        "\udcff" * 43 + " " + BODY,
        sign(KEYS, ID, BODY)[:-1],
        sign(KEYS, ID, BODY) + " ",
        sign(KEYS, ID, BODY).replace(" ", "  ", 1),
        sign(KEYS, ID, BODY).swapcase(),
        sign((b"a stranger's key",), ID, BODY),
    ],
)
def test_what_was_not_signed_with_a_key_of_ours_is_refused(stored):
    with pytest.raises(BadSignature):
        verify(KEYS, ID, stored)


def test_a_signed_envelope_is_refused_under_another_id():
    with pytest.raises(BadSignature):
        verify(KEYS, ID[:-1] + "1", sign(KEYS, ID, BODY))


def test_an_id_cannot_swallow_the_start_of_the_envelope():
    signature, _, _ = sign(KEYS, "id", '{"v":1\n{"v":1}').partition(" ")

    with pytest.raises(BadSignature):
        verify(KEYS, 'id\n{"v":1', signature + ' {"v":1}')


def test_undecodable_bytes_in_a_stored_envelope_are_verified_as_bytes():
    body = '{"v":1,"x":"\udcff\udcfe"}'

    assert verify(KEYS, ID, sign(KEYS, ID, body)) == body


def test_a_bad_signature_is_an_error_of_ours_that_explains_itself():
    error = BadSignature()

    assert isinstance(error, PriqueueError)
    assert "SIGNING_KEYS" in str(error)
