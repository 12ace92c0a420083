"""Lists a client's images, newest first, one page at a time."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.images.image import Image
from darkroom.domain.images.listing import LOOKS, MAX_PAGE_IMAGES, Cursor, ListQuery
from darkroom.domain.kernel.errors import Retryable
from darkroom.ports.images import Images, Listed
from darkroom.ports.kernel import UnreadableRow


@dataclass(frozen=True, kw_only=True)
class ImagePage:
    """Images of one tenant, newest first, and the cursor after which the list continues: None at its end.

    `cut_short_by` is the error that ended the page early; `unreadable` are rows in its range that were left out.
    """

    images: tuple[Image, ...]
    next: Cursor | None
    cut_short_by: Retryable | None = None
    unreadable: tuple[UnreadableRow, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ListImagesPorts:
    """What a page needs."""

    images: Images


def list_images(ports: ListImagesPorts, query: ListQuery, *, tenant_id: str) -> ImagePage:
    """The page that the client asks for.

    The index says which images exist, perhaps seconds late; each row gives its image's current state. A page may have
    fewer images than asked for, even none, although the list continues. Raises Retryable if the table cannot answer the
    first look; if it cannot answer a later one, the page ends with what was found before.
    """
    listed_images: list[Image] = []
    unreadable: list[UnreadableRow] = []
    seen = query.after
    for look in range(LOOKS):
        missing = query.limit - len(listed_images)
        wanted = MAX_PAGE_IMAGES if query.is_filtered else missing
        try:
            listed = _look(ports, tenant_id, query, after=seen, limit=wanted)
            rows = ports.images.get_all([cursor.image_id for cursor in listed.cursors])
        except Retryable as error:
            if look == 0:  # guard: list-first-look-failure, list-short-page-over-error
                raise
            # After the last row that was judged, not after what the index has listed since.
            # guard: list-unjudged-not-skipped
            return ImagePage(images=tuple(listed_images), next=seen, cut_short_by=error, unreadable=tuple(unreadable))
        for cursor in listed.cursors:
            if len(listed_images) == query.limit:  # guard: list-full-page-ends
                return ImagePage(images=tuple(listed_images), next=seen, unreadable=tuple(unreadable))
            row = rows.get(cursor.image_id)
            if isinstance(row, UnreadableRow):  # guard: unreadable-left-out-of-list
                unreadable.append(row)
            elif row is not None and row.tenant_id == tenant_id and query.fits(row):  # guard: list-row-over-index
                listed_images.append(row)
            seen = cursor
        seen = listed.next
        if seen is None or len(listed_images) == query.limit:
            break
        if not query.is_filtered and len(listed.cursors) < wanted:  # guard: list-deleted-look-bound
            break  # more was deleted here than one look passes over: the client pays for the next one
    return ImagePage(images=tuple(listed_images), next=seen, unreadable=tuple(unreadable))


def _look(ports: ListImagesPorts, tenant_id: str, query: ListQuery, *, after: Cursor | None, limit: int) -> Listed:
    if query.reference is None:
        return ports.images.newest(tenant_id, after=after, limit=limit)
    return ports.images.with_reference(tenant_id, query.reference, after=after, limit=limit)
