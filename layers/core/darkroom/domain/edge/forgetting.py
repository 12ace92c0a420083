"""What the edge is told to forget, and what that may cost in a month."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from darkroom.domain.kernel.ids import is_image_id
from darkroom.domain.kernel.instants import day_of

if TYPE_CHECKING:
    from darkroom.domain.kernel.instants import Milliseconds

_FORGET_AFTER_SECONDS = 400 * 86_400


@dataclass(frozen=True, kw_only=True)
class Bill:
    """The units that some messages cost in a month: `reference` names them, however often they come."""

    month: str
    wanted: int
    reference: str
    forget_at: int


def image_id_in(body: str) -> str:
    """The image that a message is about. Raises ValueError for anything else: a tag could name more than one."""
    message = json.loads(body)
    image_id = message.get("image_id") if isinstance(message, dict) else None
    if not isinstance(image_id, str) or not is_image_id(image_id):  # guard: edge-tag-is-an-image-id
        raise ValueError("the message names no image")
    return image_id


def reference_of(message_ids: Iterable[str]) -> str:
    """Names these messages. Not their images: an image that is to be forgotten again is forgotten again."""
    return hashlib.sha256("\n".join(sorted(message_ids)).encode()).hexdigest()


def bill_of(wanted: int, reference: str, now: Milliseconds) -> Bill:
    """The bill for so many tags."""
    return Bill(
        month=day_of(now)[:7], wanted=wanted, reference=reference, forget_at=now // 1000 + _FORGET_AFTER_SECONDS
    )
