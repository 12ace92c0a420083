"""A tenant's list of images, newest first: what a client may ask of it."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.image import Image, Status
from darkroom.domain.instants import Milliseconds

MAX_PAGE_IMAGES = 100
"""How many images a page has at most: as many rows as DynamoDB reads in one batch."""

LISTED_STATUSES = tuple(status for status in Status if status is not Status.CANCELLED)
"""What a listed image can be. One that was withdrawn, whatever it was, is in the list no more."""


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """Where in a list an image stands: by when it was accepted, and by its id among those of one millisecond."""

    created_at: Milliseconds
    image_id: str


@dataclass(frozen=True, kw_only=True)
class ListQuery:
    """Which images a client wants to see: at most `limit`, of these statuses (None: of any), that come `after` a cursor
    (None: from the newest on)."""

    limit: int
    statuses: frozenset[Status] | None = None
    after: Cursor | None = None

    def fits(self, image: Image) -> bool:
        """Whether the image is one of them, wherever it stands."""
        return not image.is_deleted and (self.statuses is None or image.status in self.statuses)
