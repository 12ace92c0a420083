"""Reads an original, as it was accepted or not at all."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from darkroom.domain.kernel.errors import Retryable
from darkroom.ports.images import OriginalMissing

if TYPE_CHECKING:
    from darkroom.domain.images.image import Source
    from darkroom.ports.images import Originals


def whole_original(originals: Originals, image_id: str, source: Source) -> bytes:
    """The accepted bytes. Raises OriginalMissing if two reads find none: no single one ends an image."""
    try:
        original = originals.get(image_id, source.version_id)
    except OriginalMissing:
        original = originals.get(image_id, source.version_id)  # guard: objects-missing-second-look
    if hashlib.sha256(original).hexdigest() != source.sha256:  # guard: objects-checksum-on-read
        raise Retryable(f"the original of {image_id} did not arrive whole")
    return original
