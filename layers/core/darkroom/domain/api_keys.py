"""API keys, `dr_<id>_<secret>`: the id names a key in logs, the secret opens, and its end gives typos away."""

from __future__ import annotations

import hashlib
import hmac
import re
import zlib
from dataclasses import dataclass

from darkroom.domain.base32 import DIGIT, digits_of
from darkroom.domain.instants import Milliseconds

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


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    """A key as it is stored: `digest` recognises it, and nothing here gives it away. `label` is what its owner calls
    it; one with `revoked_at` opens nothing any more."""

    key_id: str
    tenant_id: str
    digest: str
    created_at: Milliseconds
    label: str | None = None
    revoked_at: Milliseconds | None = None


def key_from_bits(random_bits: bytes) -> str:
    """The key that 25 random bytes make. Raises ValueError for any other number of them."""
    if len(random_bits) != RANDOM_BYTES:
        raise ValueError(f"a key is made from {RANDOM_BYTES} bytes, not {len(random_bits)}")
    key_id = digits_of(int.from_bytes(random_bits[:_ID_BYTES]), _ID_DIGITS)
    secret = digits_of(int.from_bytes(random_bits[_ID_BYTES:]), _SECRET_DIGITS)
    return f"dr_{key_id}_{secret}{_check(f'dr_{key_id}_{secret}')}"


def _check(text: str) -> str:
    return digits_of(zlib.crc32(text.encode()), _CHECK_DIGITS)


def key_id_of(text: str) -> str | None:
    """The id of a key, or None for what is no whole key: something else, a part of one, or one with a typo."""
    found = _KEY.fullmatch(text)
    return found["id"] if found is not None and found["check"] == _check(found["checked"]) else None


def is_key_id(text: str) -> bool:
    """Whether `text` has the form of a key's id."""
    return _KEY_ID.fullmatch(text) is not None


def digest_of(key: str) -> str:
    """What is stored in place of a key.

    One round of SHA-256: slow hashes protect what people think up. Nobody tries out 160 random bits, however quickly.
    """
    return hashlib.sha256(b"darkroom api key v1\0" + key.encode()).hexdigest()


def opens(key: str, stored: ApiKey | None) -> bool:
    """Whether `key` is the one that is stored. It takes as long where none is, and wherever the digests part."""
    digest = _NO_DIGEST if stored is None else stored.digest
    return hmac.compare_digest(digest_of(key), digest) and stored is not None


def bearer_token(authorization: str) -> str | None:
    """The token of an `Authorization: Bearer …` header (RFC 6750, section 2.1; the scheme's case does not matter)."""
    found = _BEARER.fullmatch(authorization.strip())
    return None if found is None else found["token"]
