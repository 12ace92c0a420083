"""Deletes an image: unfinished work is cancelled, and the sweeper removes the objects."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.images.image import Image
from darkroom.domain.images.transitions import delete
from darkroom.domain.kernel.errors import Retryable, UnknownImage
from darkroom.domain.kernel.ids import is_image_id
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.visibility import edge_until
from darkroom.ports.images import EdgeBudget, Images
from darkroom.ports.kernel import Clock, Fenced

_TRIES = 5
"""A worker's claims and finishes may each come between reading the row and writing it; not five in a row."""


@dataclass(frozen=True, kw_only=True)
class DeleteImagePorts:
    """What deleting needs."""

    images: Images
    clock: Clock


def delete_image(ports: DeleteImagePorts, image_id: str, *, tenant_id: str, remove_at: Milliseconds = 0) -> Image:
    """Makes the image a tombstone, and returns it; repeating it changes nothing. Its objects are due to be removed at
    `remove_at`, or at once if that has passed.

    Raises UnknownImage, and Retryable if the table cannot answer or the row keeps changing.
    """
    for _ in range(_TRIES):
        image = ports.images.get(image_id) if is_image_id(image_id) else None
        if image is None or image.tenant_id != tenant_id:  # guard: tenant-withdrawal-own-only
            raise UnknownImage
        if image.is_deleted:
            return image
        try:
            return ports.images.change(
                image,
                delete(image, now=ports.clock(), remove_at=remove_at),
                fence=("version",),  # guard: fence-on-withdrawal
            )
        except Fenced:
            continue
    raise Retryable("the image changed under every attempt to delete it")


@dataclass(frozen=True, kw_only=True)
class EdgePorts:
    """What the edge may keep: for `edge_seconds` what it is not told to forget; None in a stack without an edge."""

    edge_budget: EdgeBudget
    edge_seconds: int | None


def edge_keeps_until(ports: EdgePorts, tombstone: Image) -> Milliseconds | None:
    """Until when the edge may serve something of a deleted image; None if it never could."""
    if not tombstone.visibilities or tombstone.deleted_at is None or ports.edge_seconds is None:
        return None
    is_told = False  # guard: edge-until-unread
    with bookkeeping("the edge's budget not read"):
        is_told = not ports.edge_budget.is_spent(tombstone.deleted_at)
    return edge_until(tombstone.deleted_at, edge_seconds=ports.edge_seconds, is_told=is_told)
