"""The status document: what a client sees of an image, always with all its keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from darkroom.domain.image import Image, Status, Variant
from darkroom.domain.instants import Milliseconds, rfc3339

RETRY_AFTER_SECONDS, LONGEST_RETRY_AFTER_SECONDS = 1, 3600
"""How long a client waits before it asks again for an image that is not finished, and at most where it is scheduled."""

ENTITY_TAG_WINDOW_SECONDS = 300
"""A presigned URL lives 15 minutes; an entity tag lives five at most, so that a 304 never vouches for a dead URL."""


def status_document(image: Image, url_of: Callable[[Variant], str]) -> dict[str, Any]:
    """The document of `image`; `url_of` gives the address from which a finished variant can be fetched now."""
    total = len(image.recipe.variants)
    return {
        "id": image.image_id,
        "status": image.status.value,
        "lane": image.lane,
        "preset": image.preset,
        "run": image.run,
        "attempt": image.attempt,
        "created_at": rfc3339(image.created_at),
        "process_at": rfc3339(image.process_at),
        "expires_at": rfc3339(image.expires_at),
        "completed_at": rfc3339(image.completed_at),
        "progress": {"done": total if image.status is Status.DONE else 0, "total": total},
        "variants": [
            {
                "name": variant.name,
                "width": variant.width,
                "height": variant.height,
                "format": variant.format,
                "bytes": variant.size_bytes,
                "sha256": variant.sha256,
                "url": url_of(variant),
            }
            for variant in image.variants
        ],
        "placeholder": image.placeholder,
        "notices": list(image.notices),
        "error": None
        if image.error is None
        else {"code": image.error.code, "message": image.error.message, "retryable": image.error.retryable},
        "links": {"self": f"/images/{image.image_id}", "status": status_path(image.image_id)},
    }


def retry_after_seconds(image: Image, now: Milliseconds) -> int | None:
    """When it makes sense to ask for the image again: for a scheduled one not before its time, but within the hour,
    because it may be moved. None where it has ended."""
    if image.status.is_terminal:
        return None
    if image.status is Status.AWAITING_UPLOAD:
        return RETRY_AFTER_SECONDS  # of its upload there is news within seconds, whenever its time is
    ahead_seconds = -(-((image.process_at or now) - now) // 1000)
    return max(RETRY_AFTER_SECONDS, min(ahead_seconds, LONGEST_RETRY_AFTER_SECONDS))


def status_path(image_id: str) -> str:
    """Where an image's status is asked for, relative to the API's root."""
    return f"/images/{image_id}/status"


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
