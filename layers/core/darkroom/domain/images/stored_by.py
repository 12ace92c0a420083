"""What is stored for an image, told by its row."""

from __future__ import annotations

from darkroom.domain.images.image import Image
from darkroom.domain.kernel.stored import NOTHING, Stored


def stored_by(image: Image | None) -> Stored:
    """What is stored for the row: its original and the variants that it names. What was announced or is yet to be
    fetched is not here, and a tombstone has nothing."""
    if image is None or not image.has_original:  # guard: quotas-unarrived-not-stored
        return NOTHING
    return Stored(size_bytes=image.source.size_bytes + variant_bytes(image), images=1)


def variant_bytes(image: Image) -> int:
    """The bytes of the variants that the row names: after a redo, those of the run before it until others are made."""
    return sum(variant.size_bytes for variant in image.variants)
