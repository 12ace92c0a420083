"""Signatures of webhooks: the specification's examples, and which secret an endpoint has."""

from __future__ import annotations

from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.domain.webhooks.webhook_signature import MIN_MASTER_BYTES, secret_of, secret_text, sign

MASTER = bytes(range(MIN_MASTER_BYTES))

NAMES = st.tuples(st.text(max_size=4), st.text(max_size=4), st.integers(0, 20))


def secret(tenant_id: str = "acme", endpoint_id: str = "ep_1", generation: int = 1, master: bytes = MASTER) -> bytes:
    return secret_of(master, tenant_id=tenant_id, endpoint_id=endpoint_id, generation=generation)


@pytest.mark.parametrize(
    ("secret_in_base64", "message_id", "timestamp", "body", "signature"),
    [
        # https://github.com/standard-webhooks/standard-webhooks/blob/main/libraries/python/tests/test_webhooks.py
        (
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1614265330,
            b'{"test": 2432232314}',
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ),
        # https://docs.svix.com/receiving/verifying-payloads/how-manual
        (
            "plJ3nmyCDGBKInavdOK15jsl",
            "msg_loFOjxBNrRLzqYUf",
            1731705121,
            b'{"event_type":"ping","data":{"success":true}}',
            "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
        ),
    ],
    ids=["Standard Webhooks", "Svix"],
)
def test_a_signature_is_what_the_specification_says(
    secret_in_base64: str, message_id: str, timestamp: int, body: bytes, signature: str
) -> None:
    key = b64decode(secret_in_base64)
    assert sign([key], message_id=message_id, timestamp=timestamp, body=body) == signature
    assert secret_text(key) == f"whsec_{secret_in_base64}"


def test_an_endpoint_keeps_its_secret() -> None:
    assert secret_text(secret()) == "whsec_WbEFVokxO4c27lDCJZdQ1kZhDFOoxahH5GGZaIzBK+o=", (
        "secrets in clients' hands must not move"
    )


@given(NAMES, NAMES)
def test_every_endpoint_and_generation_has_a_secret_of_its_own(
    first: tuple[str, str, int], other: tuple[str, str, int]
) -> None:
    assert (secret(*first) == secret(*other)) == (first == other)


@pytest.mark.guards("webhook-secret-name-separation")
@given(st.text(max_size=6), st.integers(0, 6), st.integers(0, 6))
def test_where_one_name_ends_and_the_next_begins_matters(text: str, first: int, other: int) -> None:
    cuts = [(text[:place], text[place:]) for place in (first, other)]
    assert (secret(*cuts[0]) == secret(*cuts[1])) == (cuts[0] == cuts[1])


def test_another_stack_has_other_secrets() -> None:
    assert secret(master=MASTER[::-1]) != secret()


@pytest.mark.guards("webhook-secret-minimum-length")
@pytest.mark.parametrize("size", [0, MIN_MASTER_BYTES - 1])
def test_a_short_master_secret_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"has {size} bytes, fewer than 32"):
        secret(master=bytes(size))


@pytest.mark.guards("webhook-signature-required")
def test_nothing_is_sent_without_a_signature() -> None:
    with pytest.raises(ValueError, match="no secret"):
        sign([], message_id="some-1", timestamp=1, body=b"{}")


@pytest.mark.guards("webhook-signature-unambiguous")
def test_an_id_with_a_full_stop_is_not_signed() -> None:
    with pytest.raises(ValueError, match="full stop"):
        sign([secret()], message_id="some.1", timestamp=1, body=b"{}")
