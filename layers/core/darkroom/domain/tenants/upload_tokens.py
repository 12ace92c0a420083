"""Upload tokens, `dru_<id of the signing key>.<payload>.<signature>`: what a server with an API key lets one browser
upload. Who has one can read its payload, and cannot change it."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.ids import digits_of
from darkroom.domain.kernel.instants import Milliseconds

MAX_TOKEN_CHARACTERS = 4096
"""The longest token. The gateway takes 10,240 bytes of request line and headers together
(https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html), and the authorizer's answer has the
payload once more."""

MAX_COUNT = 1000
MAX_SECONDS, USUAL_SECONDS = 24 * 3600, 3600
MAX_ORIGINS = 10

ORIGIN = re.compile(r"https?://[^*/, ]{1,253}")
"""What a browser writes into the header Origin of a website's scripts."""

ID_BYTES, _ID_DIGITS = 10, 16  # 80 bits: tokens are never looked up, only told apart

_VERSION = 1

_LABEL = b"darkroom upload token v1\0"
"""The first thing that is signed: no signature of a message, which begins with a digit, is one of a token."""

_TOKEN = re.compile(r"dru_(?P<key>[\w-]{1,512})\.(?P<payload>[\w-]{1,4096})\.(?P<signature>[\w-]{43})", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class UploadToken:
    """What a token allows until it expires: `count` images of at most `max_bytes` each, made as `order` says, in the
    words of a request's parameters, and sent by scripts of these `origins`, if any are named. `key_id` is the API key
    that it was made with, which opens the API for it."""

    token_id: str
    key_id: str
    expires_at: Milliseconds
    count: int
    max_bytes: int
    order: Mapping[str, Any] = field(default_factory=dict)
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SignedToken:
    """The parts of a token as it was sent: nothing of it is believed until it verifies. `signed_with` is the id of the
    secret's version."""

    signed_with: str
    payload: str
    signature: str

    def verifies(self, secret: str) -> bool:
        """Whether that secret has signed exactly this payload."""
        # guard: upload-token-signature
        return hmac.compare_digest(self.signature, _signature(secret, self.payload))


def upload_token_id(random_bits: bytes) -> str:
    """The id that ten random bytes make."""
    return digits_of(int.from_bytes(random_bits), _ID_DIGITS)


def is_upload_token(text: str) -> bool:
    """Whether a credential claims to be an upload token, and no API key."""
    return text.startswith("dru_")


def signed_token(token: UploadToken, *, key_id: str, secret: str) -> str:
    """The token as a browser sends it, signed with the version `key_id` of a secret. Raises Rejected
    (`upload_token_too_long`) for one that is longer than may be."""
    payload = _base64(
        json.dumps(
            {"v": _VERSION, **vars(token), "origins": list(token.origins)}, separators=(",", ":"), ensure_ascii=False
        ).encode()
    )
    text = f"dru_{_base64(key_id.encode())}.{payload}.{_signature(secret, payload)}"
    if len(text) > MAX_TOKEN_CHARACTERS:  # guard: upload-token-length
        raise Rejected(
            "upload_token_too_long",
            f"The token would have {len(text):,} characters, and {MAX_TOKEN_CHARACTERS:,} are the most. Use a preset, "
            "or a shorter recipe or metadata.",
        )
    return text


def read_signed_token(text: str) -> SignedToken | None:
    """The parts of a token, or None for anything else."""
    match = _TOKEN.fullmatch(text)
    if match is None or len(text) > MAX_TOKEN_CHARACTERS:
        return None
    try:
        signed_with = _bytes(match["key"]).decode()
    except ValueError:
        return None
    return SignedToken(signed_with=signed_with, payload=match["payload"], signature=match["signature"])


def upload_token_in(payload: str) -> UploadToken:
    """What a verified payload allows. Raises ValueError for one of a version that writes others."""
    written = json.loads(_bytes(payload))
    if written.pop("v") != _VERSION:
        raise ValueError("an upload token of another version")
    return UploadToken(**written | {"origins": tuple(written["origins"])})


def _signature(secret: str, payload: str) -> str:
    return _base64(hmac.new(secret.encode(), _LABEL + payload.encode(), hashlib.sha256).digest())


def _base64(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
