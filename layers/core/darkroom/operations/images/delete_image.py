"""Deletes an image: unfinished work is cancelled, and the sweeper removes the objects."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.images.transitions import delete
from darkroom.domain.kernel.errors import Retryable, UnknownImage
from darkroom.domain.kernel.ids import is_image_id
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.images import Images
from darkroom.ports.kernel import Clock, Fenced

_TRIES = 5
"""A worker's claims and finishes may each come between reading the row and writing it; not five in a row."""


@dataclass(frozen=True, kw_only=True)
class DeleteImagePorts:
    """What deleting needs."""

    images: Images
    clock: Clock


def delete_image(ports: DeleteImagePorts, image_id: str, *, tenant_id: str, remove_at: Milliseconds = 0) -> None:
    """Makes the image a tombstone; repeating it changes nothing. Its objects are due to be removed at `remove_at`, or
    at once if that has passed.

    Raises UnknownImage, and Retryable if the table cannot answer or the row keeps changing.
    """
    for _ in range(_TRIES):
        image = ports.images.get(image_id) if is_image_id(image_id) else None
        if image is None or image.tenant_id != tenant_id:  # guard: tenant-withdrawal-own-only
            raise UnknownImage
        if image.is_deleted:
            return
        try:
            # guard: fence-on-withdrawal
            ports.images.change(image, delete(image, now=ports.clock(), remove_at=remove_at), fence=("version",))
            return
        except Fenced:
            continue
    raise Retryable("the image changed under every attempt to delete it")
