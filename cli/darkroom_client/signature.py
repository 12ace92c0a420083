"""Whether a webhook is genuine: Standard Webhooks, with nothing but the standard library."""

from __future__ import annotations

import base64
import hmac
import time
from collections.abc import Mapping

from darkroom.domain.webhooks.webhook_signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER

_TOLERANCE_SECONDS = 300


def is_signed(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether a webhook was sent by who knows its `secret` (whsec_…), with this body and in the last five minutes.

    `headers` are the request's, in any case, and `body` its bytes as they came.
    """
    given = {name.lower(): value for name, value in headers.items()}
    timestamp = given.get(TIMESTAMP_HEADER, "")
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > _TOLERANCE_SECONDS:
        return False
    content = f"{given.get(ID_HEADER)}.{timestamp}.".encode() + body
    digest = hmac.digest(base64.b64decode(secret.removeprefix("whsec_")), content, "sha256")
    expected = f"v1,{base64.b64encode(digest).decode()}"
    return any(hmac.compare_digest(expected, signature) for signature in given.get(SIGNATURE_HEADER, "").split())
