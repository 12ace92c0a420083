"""Finds the public URL that the stable address of a variant leads to at present."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.edge.addresses import address_in, public_path_of
from darkroom.ports.images import Images


@dataclass(frozen=True, kw_only=True)
class RedirectImagePorts:
    """What redirecting needs."""

    images: Images


def redirect_image(ports: RedirectImagePorts, path: str) -> str | None:
    """The path that `path` leads to; None if there is nothing that everybody may have. Raises Retryable."""
    address = address_in(path)
    if address is None:
        return None
    image_id, name = address
    image = ports.images.get(image_id)
    return None if image is None else public_path_of(image, name)
