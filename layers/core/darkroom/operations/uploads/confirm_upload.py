"""Takes a client's word that its announced upload has come, as S3's event does: the upload queue's worker judges it."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.images.image import Image, Status, message_for
from darkroom.operations.images.owned_image import owned_image
from darkroom.ports.images import Images
from darkroom.ports.uploads import UploadQueue, Uploads


class NotUploaded(LookupError):
    """The image awaits its upload, and nothing has come."""


@dataclass(frozen=True, kw_only=True)
class ConfirmUploadPorts:
    """What a confirmation needs."""

    images: Images
    uploads: Uploads
    upload_queue: UploadQueue


def confirm_upload(
    ports: ConfirmUploadPorts, image_id: str, *, tenant_id: str, upload_token: str | None = None
) -> Image:
    """Sends the upload queue a reminder of the upload that has come, and returns the image as it is now. One that no
    longer awaits its upload is returned alone: S3's event, or an earlier confirmation, was first.

    Nothing is decided or written here, so that it does not matter which of event, confirmation and sweeper comes first,
    or how often. Raises UnknownImage, NotUploaded, and Retryable if table, store or queue cannot answer.
    """
    image = owned_image(ports.images, image_id, tenant_id=tenant_id, upload_token=upload_token)
    if image.status is not Status.AWAITING_UPLOAD:
        return image
    if ports.uploads.size_bytes(image_id) is None:  # guard: upload-confirmed-nothing-there
        # It may have been accepted, and its upload removed, since the row was read.
        image = owned_image(ports.images, image_id, tenant_id=tenant_id)  # guard: upload-confirmed-read-again
        if image.status is Status.AWAITING_UPLOAD:
            raise NotUploaded
        return image
    ports.upload_queue.put(message_for(image))
    return image
