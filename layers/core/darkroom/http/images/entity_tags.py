"""Entity tags: they let the API answer a repeated request with "your copy of the status document is current"."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from darkroom.domain.images.estimates import Outlook
from darkroom.domain.images.image import Image
from darkroom.domain.kernel.instants import Milliseconds

ENTITY_TAG_WINDOW_SECONDS = 300
"""A presigned URL lives 15 minutes; an entity tag lives five at most, so that a 304 never vouches for a dead URL."""


def entity_tag(image: Image, now: Milliseconds, outlook: Outlook = None) -> str:
    """A weak validator (RFC 9110, section 8.8.1): it changes with the row's version, with the estimate of when the
    image will be done and with a pause, and every five minutes."""
    prospect = "" if outlook is None else f"-{outlook}"
    return f'W/"{image.version}-{_window(now)}{prospect}"'


def page_tag(entries: Sequence[tuple[Image, Outlook]], following: str | None, now: Milliseconds) -> str:
    """The same of a page of images, each with its outlook, and of the cursor of the page that follows."""
    states = [[image.image_id, image.version, outlook] for image, outlook in entries]
    digest = hashlib.sha256(json.dumps([states, following]).encode()).hexdigest()  # guard: list-tag-covers-next-page
    return f'W/"{digest[:16]}-{_window(now)}"'  # guard: list-tag-time-window


def _window(now: Milliseconds) -> int:
    return now // (ENTITY_TAG_WINDOW_SECONDS * 1000)


def matches_entity_tag(if_none_match: str | None, tag: str) -> bool:
    """Whether an `If-None-Match` header lists `tag`, by the weak comparison of RFC 9110, section 13.1.2."""
    if if_none_match is None:
        return False
    if if_none_match.strip() == "*":
        return True
    opaque = tag.removeprefix("W/")
    return any(candidate.strip().removeprefix("W/") == opaque for candidate in if_none_match.split(","))
