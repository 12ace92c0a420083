"""The stable address of a variant at the edge, and the public URL that it leads to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from darkroom.domain.images.image import Status
from darkroom.domain.images.pictures import address_of
from darkroom.domain.kernel.ids import IMAGE_ID_PATTERN
from darkroom.domain.kernel.visibility import Visibility, visibility_of_key

if TYPE_CHECKING:
    from darkroom.domain.images.image import Image

_ADDRESS = re.compile(rf"/i/({IMAGE_ID_PATTERN})/([a-z][a-z0-9_-]{{0,31}})")


def address_in(path: str) -> tuple[str, str] | None:
    """The id of the image and the name of the variant in such a path; None for anything else."""
    found = _ADDRESS.fullmatch(path)  # guard: edge-known-stable-addresses
    return None if found is None else (found[1], found[2])


def public_path_of(image: Image, name: str) -> str | None:
    """The path of the variant of that name at the edge; None unless everybody may have it."""
    if image.outcome is not Status.DONE or image.is_deleted:  # guard: edge-no-redirect-to-deleted
        return None
    if image.visibility is not Visibility.PUBLIC:  # guard: edge-no-redirect-to-private
        return None
    named = (variant for variant in image.variants if variant.name == name)
    public = (variant for variant in named if visibility_of_key(variant.key) is Visibility.PUBLIC)
    return next((f"/{address_of(image, variant)}" for variant in public), None)
