"""A tenant's list of images, newest first: what a client may ask of it."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.image import Image, Status
from darkroom.domain.instants import Milliseconds

MAX_PAGE_IMAGES = 100
"""The most images of a page: as many rows as DynamoDB reads in one batch."""

LISTED_STATUSES = tuple(status for status in Status if status is not Status.CANCELLED)
"""The statuses of listed images. A withdrawn image is no longer in the list, whatever its status was."""


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """An image's place in a list: its time of acceptance, and its id among those of one millisecond."""

    created_at: Milliseconds
    image_id: str


@dataclass(frozen=True, kw_only=True)
class ListQuery:
    """Which images a client wants to see: at most `limit`, with these statuses (None: any), that come `after` a cursor
    (None: from the newest on)."""

    limit: int
    statuses: frozenset[Status] | None = None
    after: Cursor | None = None

    def fits(self, image: Image) -> bool:
        """Whether the image is one of them, wherever it is in the list."""
        return not image.is_deleted and (self.statuses is None or image.status in self.statuses)
