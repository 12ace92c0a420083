"""Entity tags: they let the API answer a repeated request with "your copy of the status document is current"."""

from __future__ import annotations

from darkroom.domain.image import Image
from darkroom.domain.instants import Milliseconds

ENTITY_TAG_WINDOW_SECONDS = 300
"""A presigned URL lives 15 minutes; an entity tag lives five at most, so that a 304 never vouches for a dead URL."""


def entity_tag(image: Image, now: Milliseconds) -> str:
    """A weak validator (RFC 9110, section 8.8.1): it changes with the row's version and every five minutes."""
    return f'W/"{image.version}-{now // (ENTITY_TAG_WINDOW_SECONDS * 1000)}"'


def matches_entity_tag(if_none_match: str | None, tag: str) -> bool:
    """Whether an `If-None-Match` header lists `tag`, by the weak comparison of RFC 9110, section 13.1.2."""
    if if_none_match is None:
        return False
    if if_none_match.strip() == "*":
        return True
    opaque = tag.removeprefix("W/")
    return any(candidate.strip().removeprefix("W/") == opaque for candidate in if_none_match.split(","))
