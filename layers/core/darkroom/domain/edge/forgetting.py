"""What the edge is told to forget, and what that may cost in a month."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from darkroom.domain.kernel.ids import is_image_id
from darkroom.domain.kernel.instants import day_of
from darkroom.domain.kernel.visibility import Visibility, folder_of

if TYPE_CHECKING:
    from darkroom.domain.kernel.instants import Milliseconds

_FORGET_AFTER_SECONDS = 400 * 86_400


@dataclass(frozen=True, kw_only=True)
class Bill:
    """The images that some messages are about, a unit of the month's budget each: `reference` names the messages,
    however often they come."""

    month: str
    image_ids: tuple[str, ...]
    reference: str
    forget_at: int


@dataclass(frozen=True, kw_only=True)
class Payment:
    """The images of a bill that are paid for."""

    month: str
    image_ids: tuple[str, ...]
    reference: str


def made_of(image_id: str) -> str:
    """What the keys of everything begin with that was made of an image on request, by whichever version of the engine:
    those of its recipe's variants go on with a digit, their run's."""
    return f"{folder_of(Visibility.PUBLIC, image_id)}t"


def image_id_in(body: str) -> str:
    """The image that a message is about. Raises ValueError for anything else: a tag could name more than one."""
    message = json.loads(body)
    image_id = message.get("image_id") if isinstance(message, dict) else None
    if not isinstance(image_id, str) or not is_image_id(image_id):  # guard: edge-tag-is-an-image-id
        raise ValueError("the message names no image")
    return image_id


def bill_of(owed: Mapping[str, str], now: Milliseconds) -> Bill:
    """The bill for the images of these messages, by the messages' ids. It is theirs, not their images': an image that
    is to be forgotten again is forgotten again."""
    return Bill(
        month=day_of(now)[:7],
        image_ids=tuple(sorted(set(owed.values()))),
        reference=hashlib.sha256("\n".join(sorted(owed)).encode()).hexdigest(),
        forget_at=now // 1000 + _FORGET_AFTER_SECONDS,
    )
