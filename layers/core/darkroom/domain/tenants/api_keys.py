"""API keys, `dr_<id>_<secret>`: the id names a key in logs, the secret authenticates, and a checksum detects typos."""

from __future__ import annotations

import hashlib
import hmac
import re
import zlib
from dataclasses import dataclass
from enum import StrEnum

from darkroom.domain.kernel.ids import DIGIT, digits_of
from darkroom.domain.kernel.instants import Milliseconds

_ID_BYTES, _SECRET_BYTES = 5, 20  # 40 bits tell keys apart, 160 cannot be guessed
_ID_DIGITS, _SECRET_DIGITS, _CHECK_DIGITS = 8, 32, 7  # the 32 bits of a CRC-32 take 7 digits of 5

RANDOM_BYTES = _ID_BYTES + _SECRET_BYTES
"""How many random bytes a key is made from."""

KEY_ID_PATTERN = rf"{DIGIT}{{{_ID_DIGITS}}}"

_KEY_ID = re.compile(KEY_ID_PATTERN)

_KEY = re.compile(
    rf"(?P<checked>dr_(?P<id>{KEY_ID_PATTERN})_{DIGIT}{{{_SECRET_DIGITS}}})(?P<check>{DIGIT}{{{_CHECK_DIGITS}}})"
)

_BEARER = re.compile(r"bearer +(?P<token>[!-~]+)", re.IGNORECASE)

_NO_DIGEST = "0" * 64

MAX_LABEL_CHARACTERS = 100


class Scope(StrEnum):
    """What a key can be made for."""

    IMAGES_READ = "images:read"
    IMAGES_WRITE = "images:write"
    WEBHOOKS_READ = "webhooks:read"
    WEBHOOKS_WRITE = "webhooks:write"


class KeyState(StrEnum):
    """Whether a key opens the API."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    """A key as it is stored: `digest` recognises it, and nothing here reveals it. `label` is its owner's name for it. A
    key with `revoked_at`, or whose `expires_at` has passed, no longer opens anything. `scopes` is what it may be used
    for, None for everything, what later versions add included; those that this version does not know allow nothing
    here. `last_used_on` is the day (UTC) of its latest request, as in 2026-11-23."""

    key_id: str
    tenant_id: str
    digest: str
    created_at: Milliseconds
    label: str | None = None
    revoked_at: Milliseconds | None = None
    expires_at: Milliseconds | None = None
    scopes: tuple[str, ...] | None = None
    last_used_on: str | None = None

    def state(self, now: Milliseconds) -> KeyState:
        """Whether it opens the API at that instant."""
        if self.revoked_at is not None:  # guard: key-revoked-denied
            return KeyState.REVOKED
        expired = self.expires_at is not None and self.expires_at <= now  # guard: key-expired-denied
        return KeyState.EXPIRED if expired else KeyState.ACTIVE


def key_from_bits(random_bits: bytes) -> str:
    """The key made from 25 random bytes. Raises ValueError for any other number of them."""
    if len(random_bits) != RANDOM_BYTES:
        raise ValueError(f"a key is made from {RANDOM_BYTES} bytes, not {len(random_bits)}")
    key_id = digits_of(int.from_bytes(random_bits[:_ID_BYTES]), _ID_DIGITS)
    secret = digits_of(int.from_bytes(random_bits[_ID_BYTES:]), _SECRET_DIGITS)
    return f"dr_{key_id}_{secret}{_check(f'dr_{key_id}_{secret}')}"


def _check(text: str) -> str:
    return digits_of(zlib.crc32(text.encode()), _CHECK_DIGITS)


def key_id_of(text: str) -> str | None:
    """The id of a key, or None for anything but a whole key: another text, part of a key, or one with a typo."""
    match = _KEY.fullmatch(text)
    # guard: key-typo-checksum
    return match["id"] if match is not None and match["check"] == _check(match["checked"]) else None


def is_key_id(text: str) -> bool:
    """Whether `text` has the form of a key's id."""
    return _KEY_ID.fullmatch(text) is not None


def digest_of(key: str) -> str:
    """The digest that is stored in place of a key.

    One round of SHA-256 suffices: slow hashes protect passwords that people invent. Nobody can try out 160 random bits,
    however fast the hash.
    """
    return hashlib.sha256(b"darkroom api key v1\0" + key.encode()).hexdigest()


def matches_key(key: str, stored: ApiKey | None) -> bool:
    """Whether `key` is the stored one. It takes the same time if none is stored, and wherever the digests differ."""
    digest = _NO_DIGEST if stored is None else stored.digest
    return hmac.compare_digest(digest_of(key), digest) and stored is not None


def bearer_token(authorization: str) -> str | None:
    """The token of an `Authorization: Bearer …` header (RFC 6750, section 2.1; the scheme's case does not matter)."""
    match = _BEARER.fullmatch(authorization.strip())
    return None if match is None else match["token"]
