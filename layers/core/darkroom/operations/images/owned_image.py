"""Reads an image for who may see it."""

from __future__ import annotations

from darkroom.domain.images.image import Image
from darkroom.domain.kernel.errors import UnknownImage
from darkroom.domain.kernel.ids import is_image_id
from darkroom.ports.images import Images


def owned_image(images: Images, image_id: str, *, tenant_id: str, upload_token: str | None = None) -> Image:
    """The tenant's image; for who has an upload token of that id, if it was uploaded with it. Raises UnknownImage, and
    Retryable if the table cannot answer."""
    image = images.get(image_id) if is_image_id(image_id) else None
    # guard: erasure-deleted-image-unknown, tenants-read-own-only, works-own-image-only
    if image is None or image.tenant_id != tenant_id or image.is_deleted:
        raise UnknownImage
    if upload_token is not None and image.upload_token != upload_token:  # guard: upload-token-own-images
        raise UnknownImage
    return image
