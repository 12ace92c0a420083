"""Headers that an endpoint's owner adds to its deliveries: which are allowed, and how secret values are stored.

A secret value is sealed, so that whoever reads the table, its stream or its backups learns no more than of the signing
secrets: nothing. The key comes from the stack's master secret, and is of one endpoint, host, header and nonce alone.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from darkroom.domain.webhooks.endpoint import CustomHeader, Endpoint
from darkroom.domain.webhooks.webhook_signature import derived

MAX_HEADERS = 5

MAX_NAME_CHARACTERS = 64

MAX_VALUE_BYTES, MAX_ALL_VALUES_BYTES = 1024, 2048
"""How long one value may be, and all together: the row that has them is written twice for each delivery, and DynamoDB
charges by the KB."""

NONCE_BYTES, _TAG_BYTES = 16, 32

NAME_PATTERN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
"""A token of RFC 9110, section 5.6.2."""

VALUE_PATTERN = "[!-~]([ -~]*[!-~])?"
"""Visible ASCII, with spaces inside."""

_NAME, _VALUE = re.compile(NAME_PATTERN), re.compile(VALUE_PATTERN)

_RESERVED = frozenset(
    {
        *("accept-encoding", "connection", "date", "expect", "host", "http2-settings", "keep-alive", "max-forwards"),
        *("range", "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "via"),
        *("cookie", "set-cookie"),  # a receiver's session that nobody would keep up to date
        *("forwarded", "x-real-ip", "x-method-override"),
    }
)
_RESERVED_BEGINNINGS = (
    *("content-", "if-", "proxy-", "sec-", "access-control-", "x-forwarded-", "x-http-method"),
    *("webhook-", "svix-"),  # libraries that verify read either
    *("darkroom-", "x-darkroom-", "x-amz-", "x-amzn-"),
)
"""What HTTP, proxies, the signature or this stack use."""

_TELLING = re.compile(r"[A-Za-z0-9_-]{8,}")
"""What of a secret value makes an answer that has it one that repeats it, however it is quoted there."""


@dataclass(frozen=True, kw_only=True)
class AskedHeader:
    """A header as its owner asks for it: without a `value` an existing one keeps its own, and `is_secret` is None if
    nothing is said of that."""

    name: str
    value: str | None = None
    is_secret: bool | None = None


class SealBroken(Exception):
    """A value was sealed with another master secret or for another host, and cannot be sent."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"invalid_header: The secret value of the header {name} was given for another host, or under an earlier "
            "secret of the stack, and cannot be read. Set it again."
        )


def problem_with_name(name: str) -> str | None:
    """Why a header may not be called that, as a clause; None if it may."""
    if len(name) > MAX_NAME_CHARACTERS or _NAME.fullmatch(name) is None:  # guard: webhook-header-name-token
        return f"must be a header's name: letters, digits and -, at most {MAX_NAME_CHARACTERS}"
    # What reads headers as CGI does takes _ for -.
    plain = name.lower().replace("_", "-")  # guard: webhook-header-underscore-name
    if plain in _RESERVED or plain.startswith(_RESERVED_BEGINNINGS):  # guard: webhook-header-reserved-name
        return "is a header of HTTP, of proxies or of Darkroom itself: choose another name"
    return None


def problem_with_value(value: str) -> str | None:
    """Why a header may not have that value, as a clause without the value; None if it may."""
    if len(value) > MAX_VALUE_BYTES or _VALUE.fullmatch(value) is None:  # guard: webhook-header-value-text
        return f"must be 1 to {MAX_VALUE_BYTES:,} visible ASCII characters, with spaces only inside"
    return None


def has_twice(names: Iterable[str]) -> bool:
    """Whether two of the names are one for HTTP."""
    folded = [name.lower() for name in names]
    return len({*folded}) < len(folded)


def size_of(header: CustomHeader) -> int:
    """The bytes of a header's value."""
    return (
        len(header.value or "") if header.sealed is None else len(b64decode(header.sealed)) - NONCE_BYTES - _TAG_BYTES
    )


# ── Secret values ────────────────────────────────────────────────────────────────────────────────────────────────────


def seal(value: str, *, name: str, endpoint: Endpoint, master: bytes, nonce: bytes) -> CustomHeader:
    """The header with its value sealed for that endpoint and its host. `nonce` are 16 random bytes.

    Encrypted, then authenticated: HMAC-SHA256 over a counter makes the key stream (NIST SP 800-108), and a second
    label the tag. The key is used once, because the nonce is part of what it is derived from.
    """
    key = _key(endpoint, name, master, nonce)
    text = _crossed(value.encode(), key)
    return CustomHeader(name=name, sealed=b64encode(nonce + _tag(key, text) + text).decode())


def opened(endpoint: Endpoint, master: bytes) -> Mapping[str, str]:
    """All headers of the endpoint with their values, to be sent to its URL and nowhere else. Raises SealBroken."""
    return {header.name: _value(endpoint, header, master) for header in endpoint.headers}


def _value(endpoint: Endpoint, header: CustomHeader, master: bytes) -> str:
    if header.sealed is None:
        return header.value or ""
    sealed = b64decode(header.sealed)
    nonce, tag, text = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:][:_TAG_BYTES], sealed[NONCE_BYTES + _TAG_BYTES :]
    key = _key(endpoint, header.name, master, nonce)
    if not hmac.compare_digest(tag, _tag(key, text)):  # guard: webhook-header-seal-checked
        raise SealBroken(header.name)
    return _crossed(text, key).decode()


def _key(endpoint: Endpoint, name: str, master: bytes, nonce: bytes) -> bytes:
    # With the host, no version and no bug sends a value to a host that it was not given for.
    # guard: webhook-header-sealed-for-host
    bound = (endpoint.tenant_id, endpoint.endpoint_id, endpoint.host, name.lower(), nonce.hex())
    return derived(master, "darkroom webhook header v1", *bound)


def _crossed(text: bytes, key: bytes) -> bytes:
    blocks = range(-(-len(text) // sha256().digest_size))
    stream = b"".join(hmac.digest(key, b"stream" + block.to_bytes(4), sha256) for block in blocks)
    return bytes(one ^ other for one, other in zip(text, stream, strict=False))


def _tag(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, b"tag" + text, sha256)


def repeats_secret(answer: str, endpoint: Endpoint, values: Mapping[str, str]) -> bool:
    """Whether an answer has a telling part of a secret header's value: then nothing of it is kept."""
    read = answer.lower()
    secrets = [values[header.name] for header in endpoint.headers if header.sealed is not None]
    return any(part.lower() in read for secret in secrets for part in _TELLING.findall(secret) or [secret])
