"""Withdraws an image: unfinished work is cancelled, and the sweeper removes the objects."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.errors import Retryable, UnknownImage
from darkroom.domain.ids import is_image_id
from darkroom.domain.transitions import delete
from darkroom.ports import Clock, Fenced, Images

_TRIES = 5
"""A worker's claims and finishes may each come between reading the row and writing it; not five in a row."""


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What a withdrawal needs."""

    images: Images
    clock: Clock


def delete_image(ports: Ports, image_id: str, *, tenant_id: str) -> None:
    """Makes the image a tombstone; repeating it changes nothing.

    Raises UnknownImage, and Retryable if the table cannot answer or the row keeps changing.
    """
    for _ in range(_TRIES):
        image = ports.images.get(image_id) if is_image_id(image_id) else None
        if image is None or image.tenant_id != tenant_id:
            raise UnknownImage
        if image.is_deleted:
            return
        try:
            ports.images.change(image, delete(image, now=ports.clock()), fence=("version",))
            return
        except Fenced:
            continue
    raise Retryable("the image changed under every attempt to delete it")
