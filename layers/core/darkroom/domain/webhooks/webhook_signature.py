"""Signatures of webhooks, as Standard Webhooks 1.0.0 describes them
(https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md)."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import b64encode
from collections.abc import Sequence

ID_HEADER = "webhook-id"
"""The event's id: the same in every attempt."""

TIMESTAMP_HEADER = "webhook-timestamp"
"""When this attempt is made, in seconds since 1970."""

SIGNATURE_HEADER = "webhook-signature"
"""What `sign` returns."""

MIN_MASTER_BYTES = 32
"""How long the master secret is at least: as long as what is derived from it."""


def secret_of(master: bytes, *, tenant_id: str, endpoint_id: str, generation: int) -> bytes:
    """The 32 bytes with which the webhooks to an endpoint are signed: no other endpoint has them, and those of the next
    generation are unrelated. Nothing but the stack's master secret is stored.

    Raises ValueError for a master secret under `MIN_MASTER_BYTES`.
    """
    # Clients have these secrets: another label is a rotation of all of them at once.
    return derived(master, "darkroom webhook secret v1", tenant_id, endpoint_id, generation)


def derived(master: bytes, *names: str | int) -> bytes:
    """The 32 bytes that a master secret has for these names, the first of which says what for. Raises ValueError for a
    master secret under `MIN_MASTER_BYTES`."""
    if len(master) < MIN_MASTER_BYTES:  # guard: webhook-secret-minimum-length
        raise ValueError(f"the master secret has {len(master)} bytes, fewer than {MIN_MASTER_BYTES}")
    # A JSON list keeps the names apart, whatever is in them.
    # guard: webhook-secret-name-separation
    label = json.dumps(names)
    return hmac.digest(master, label.encode(), hashlib.sha256)


def secret_text(secret: bytes) -> str:
    """A secret as its endpoint's owner gets it: `whsec_` and Base64."""
    return f"whsec_{b64encode(secret).decode()}"


def sign(secrets: Sequence[bytes], *, message_id: str, timestamp: int, body: bytes) -> str:
    """The `webhook-signature` header of one attempt: `v1,` and Base64 for each secret, separated by spaces. During a
    rotation these are the new one and the old one, and a receiver accepts the attempt if it has either.

    `message_id` and `timestamp` (in seconds) are the other two headers, and `body` is exactly what is sent. Raises
    ValueError if there is no secret, or for an id with a full stop, which separates the signed parts.
    """
    if not secrets:  # guard: webhook-signature-required
        raise ValueError("no secret to sign with")
    if "." in message_id:  # guard: webhook-signature-unambiguous
        raise ValueError(f"the id {message_id!r} has a full stop, so the signature would fit other contents too")
    content = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(f"v1,{b64encode(hmac.digest(secret, content, hashlib.sha256)).decode()}" for secret in secrets)
