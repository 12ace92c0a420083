"""Reads a request for a list, and the cursor that leads from page to page."""

from __future__ import annotations

import re

from darkroom.domain.images.annotations import reference_of, tag_of
from darkroom.domain.images.image import Status
from darkroom.domain.images.listing import LISTED_STATUSES, MAX_PAGE_IMAGES, Cursor, ListQuery
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.ids import IMAGE_ID_PATTERN

DEFAULT_PAGE_IMAGES = 20
"""The size of a page unless the client asks for another."""

CURSOR_PATTERN = f"([0-9a-f]{{12}})({IMAGE_ID_PATTERN})"
"""A cursor as clients carry it: 48 bits of `created_at` in hexadecimal, and the image's id.

It is not signed: every text that matches is a valid place, and the credential decides whose list it is a place in.
"""

_CURSOR = re.compile(CURSOR_PATTERN)
_LIMIT = re.compile(r"[0-9]{1,3}")


URLS = ("thumb",)
"""Of which variants a list may have presigned URLs."""


def read_list_query(
    *,
    limit: str | None = None,
    status: str | None = None,
    reference: str | None = None,
    tag: str | None = None,
    cursor: str | None = None,
    urls: str | None = None,
) -> ListQuery:
    """Returns what a request's query asks for. Raises Rejected (`invalid_limit`, `unknown_status`, `invalid_reference`,
    `invalid_tags`, `invalid_cursor`, `unknown_urls`)."""
    if urls is not None and urls not in URLS:
        raise Rejected("unknown_urls", f"urls is {', '.join(URLS)}, or left out.")
    return ListQuery(
        limit=DEFAULT_PAGE_IMAGES if limit is None else read_limit(limit, most=MAX_PAGE_IMAGES),
        statuses=None if status is None else frozenset(map(_status, status.split(","))),
        reference=None if reference is None else reference_of(reference),
        tag=None if tag is None else tag_of(tag),
        after=None if cursor is None else _cursor(cursor),
        with_thumbs=urls is not None,
    )


def cursor_text(place: Cursor) -> str:
    """The cursor that continues the list after `place`."""
    return f"{place.created_at:012x}{place.image_id}"


def read_limit(text: str, *, most: int) -> int:
    """The size of a page that a request asks for. Raises Rejected (`invalid_limit`)."""
    if not _LIMIT.fullmatch(text) or not 1 <= int(text) <= most:
        raise Rejected("invalid_limit", f"limit is a whole number from 1 to {most}.")
    return int(text)


def invalid_cursor() -> Rejected:
    """The refusal of a text that is no place in a list."""
    return Rejected("invalid_cursor", "cursor is the `next` of an earlier page, unchanged. Leave it out to start.")


def _status(text: str) -> Status:
    try:
        return next(status for status in LISTED_STATUSES if status == text.strip())
    except StopIteration:
        raise Rejected(
            "unknown_status", f"status is one or more of these, comma-separated: {', '.join(LISTED_STATUSES)}."
        ) from None


def _cursor(text: str) -> Cursor:
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise invalid_cursor()
    return Cursor(created_at=int(match[1], 16), image_id=match[2])
