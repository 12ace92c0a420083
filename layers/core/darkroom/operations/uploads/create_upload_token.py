"""Makes an upload token: what one browser may upload in the name of an API key, signed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from darkroom.domain.images.order import Order, require_delivery, unknown_notify
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.signature import may_sign
from darkroom.domain.kernel.tenants import Caller
from darkroom.domain.tenants.upload_tokens import ID_BYTES, UploadToken, signed_token, upload_token_id
from darkroom.operations.images.pin_overlays import pin_overlays
from darkroom.ports.images import HasRecipient, Images
from darkroom.ports.kernel import Clock, Randomness, Secret


@dataclass(frozen=True, kw_only=True)
class TokenTerms:
    """What a server asks a token for: `max_bytes` is None for as much as the stack takes, and `order` is what
    `written_order` says, in the words of a request's parameters."""

    seconds: int
    count: int
    max_bytes: int | None
    origins: tuple[str, ...]
    written_order: Mapping[str, Any]
    order: Order


@dataclass(frozen=True, kw_only=True)
class CreateUploadTokenPorts:
    """What a token needs, the largest file that may be uploaded, and whether the stack has an edge. It is signed with a
    key of messages."""

    images: Images
    has_recipient: HasRecipient
    message_keys: Secret
    clock: Clock
    randomness: Randomness
    max_bytes: int
    delivers: bool = False


def create_upload_token(ports: CreateUploadTokenPorts, caller: Caller, terms: TokenTerms) -> tuple[UploadToken, str]:
    """Makes a token, and returns it with its text. Nothing is stored: it counts from its first use.

    Raises Rejected (`part_not_deployed` for a caller without an API key, `unknown_notify`, `invalid_recipe`,
    `upload_token_too_long`), and Retryable if the table or the secret cannot answer.
    """
    if caller.key_id is None:
        raise Rejected(
            "part_not_deployed",
            "Upload tokens are made with API keys, and this stack is deployed for other credentials (Access). Have "
            "your server upload the photos.",
        )
    notify = terms.order.notify
    if notify is not None and not ports.has_recipient(caller.tenant_id, notify):  # guard: upload-token-notify-checked
        raise unknown_notify()
    require_delivery(terms.order.visibility, delivers=ports.delivers)  # now, and not of the browser
    pin_overlays(ports.images, terms.order.recipe, caller.tenant_id)
    now = ports.clock()
    token = UploadToken(
        token_id=upload_token_id(ports.randomness(ID_BYTES)),
        key_id=caller.key_id,
        expires_at=now + terms.seconds * 1000,
        count=terms.count,
        max_bytes=min(terms.max_bytes or ports.max_bytes, ports.max_bytes),
        order=terms.written_order,
        origins=terms.origins,
    )
    key = ports.message_keys.current()
    if not may_sign(key.created_at, now):  # guard: upload-token-new-secret-settling
        key = ports.message_keys.previous() or key
    return token, signed_token(token, key_id=key.version_id, secret=key.text)
