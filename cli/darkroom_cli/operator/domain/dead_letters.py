"""How long dead letters are kept, and why an operator need not, or cannot, replay one."""

from __future__ import annotations

from darkroom.domain.dead_letters.dead_letter import is_refused
from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.message import Message

RETENTION_SECONDS = 14 * 24 * 3600
"""How long SQS keeps a dead letter, counted from when its message was first sent; this is SQS's maximum."""


def why_settled(message: Message, image: Image) -> str:
    """Why a dead letter with the verdict `settled` is no longer needed."""
    if image.is_deleted:
        return "its image was deleted"
    if message.run < image.run:
        return f"its image has started again since: run {image.run} is {image.status}"
    if image.failure is not None:
        return f"its image was refused ({image.failure.code})"
    return f"its image is {image.status}"


def why_not_replayable(image: Image | None) -> str | None:
    """Why an image cannot be replayed, or None if it can."""
    if image is None:
        return "There is no image with this id."
    if image.is_deleted:
        return "Its client has deleted it: there is nothing left to develop."
    if image.status is not Status.FAILED and image.failed_work is None:
        return f"It is {image.status}, in run {image.run}: only a failed image, or failed work beside one, is replayed."
    failure = image.failure
    if failure is not None and not image.has_original:
        return f"Its bytes never came ({failure.code}: {failure.message})"
    if failure is not None and is_refused(image):
        return (
            f"It was refused ({failure.code}: {failure.message}) Its bytes would be refused again: "
            "its client must send another file."
        )
    return None
