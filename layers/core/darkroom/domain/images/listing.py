"""A tenant's list of images, newest first: what a client may ask of it."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.images.image import Image, Status, Variant
from darkroom.domain.kernel.instants import Milliseconds

MAX_PAGE_IMAGES = 100
"""The most images of a page: as many rows as DynamoDB reads in one batch."""

LISTED_STATUSES = tuple(status for status in Status if status is not Status.CANCELLED)
"""The statuses of listed images. A deleted image is no longer in the list, whatever its status was."""


LOOKS = 5
"""How many batches of rows a page may cost. A filter for rare images gives pages that are short, or empty, and a cursor
to continue from; no request reads more than 500 rows."""

INDEX_UNITS = 12
"""The most read units that one look at the index costs: four queries of a page, or of the former index one that passes
over deleted images."""


SIGNED_PER_UNIT = 100
"""How many presigned URLs cost as much as a read unit: each takes half a millisecond of CPU time."""


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """An image's place in a list: its time of acceptance, and its id among those of one millisecond."""

    created_at: Milliseconds
    image_id: str


@dataclass(frozen=True, kw_only=True)
class ListQuery:
    """Which images a client wants to see: at most `limit`, with these statuses, this tag and this reference (None:
    any), that come `after` a cursor (None: from the newest on). `with_thumbs` presigns a URL of each image's smallest
    variant."""

    limit: int
    statuses: frozenset[Status] | None = None
    tag: str | None = None
    reference: str | None = None
    after: Cursor | None = None
    with_thumbs: bool = False

    @property
    def is_filtered(self) -> bool:
        """Whether only the rows tell which images of an index it asks for. A reference has an index of its own."""
        return self.statuses is not None or self.tag is not None

    @property
    def read_units(self) -> int:
        """The most read units that the page costs, with rows of up to 4 KB. (Without a filter only rows that were
        deleted a moment ago, or that a newer version wrote, cost another look.)"""
        return LOOKS * (MAX_PAGE_IMAGES + INDEX_UNITS) if self.is_filtered else self.limit + INDEX_UNITS

    @property
    def signing_units(self) -> int:
        """What the page's presigned URLs cost at most, in read units."""
        return -(-self.limit // SIGNED_PER_UNIT) if self.with_thumbs else 0

    def fits(self, image: Image) -> bool:
        """Whether the image is one of them, wherever it is in the list."""
        if image.is_deleted:  # guard: list-deleted-left-out
            return False
        return (
            (self.statuses is None or image.outcome in self.statuses)
            and (self.tag is None or self.tag in image.tags)
            and (self.reference is None or self.reference == image.reference)
        )


def thumb_of(image: Image) -> Variant | None:
    """The smallest variant of an image, whatever its name; of one in several formats the JPEG, which every browser
    shows. None while it has none."""
    return min(
        image.variants,
        key=lambda variant: (variant.width * variant.height, "." in variant.name, variant.size_bytes, variant.name),
        default=None,
    )
