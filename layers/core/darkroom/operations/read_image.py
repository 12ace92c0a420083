"""Telling a client where its image stands, and where its variants lie."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.errors import Retryable
from darkroom.domain.ids import is_image_id
from darkroom.domain.image import Image, Status, Variant
from darkroom.operations.list_images import Ports as ListPorts
from darkroom.ports import Clock, Outputs


class UnknownImage(LookupError):
    """No image of this tenant has that id; another tenant's image is no different from none."""


class VariantNotReady(LookupError):
    """The image has not been done yet, or is developed again because this variant is missing; `image` says where it
    stands."""

    def __init__(self, image: Image) -> None:
        super().__init__(f"the image is {image.status}")
        self.image = image


class UnknownVariant(LookupError):
    """The image was done and has no variant of that name; `names` are those it has."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__("no such variant")
        self.names = names


class VariantMissing(LookupError):
    """The image was done, and the object of its variant is not there as it was stored: only an operator can help."""

    def __init__(self, image: Image, variant: Variant) -> None:
        super().__init__(f"{variant.key} is not there")
        self.image = image
        self.variant = variant


@dataclass(frozen=True, kw_only=True)
class Ports(ListPorts):
    """What reading an image needs from outside, beside what a list does."""

    outputs: Outputs
    clock: Clock


def read_image(ports: Ports, image_id: str, *, tenant_id: str) -> Image:
    """The image as it stands now. Raises UnknownImage, and Retryable where the table cannot answer."""
    return _owned(ports, image_id, tenant_id)


def variant_url(ports: Ports, image_id: str, name: str, *, tenant_id: str) -> str:
    """An address of one variant, good for 15 minutes; while an image is developed again, of what was made before.

    Raises UnknownImage, VariantNotReady, UnknownVariant, VariantMissing, and Retryable where the table cannot answer.
    Where the store cannot answer, the address is given all the same.
    """
    image = _owned(ports, image_id, tenant_id)
    if not image.variants:
        raise VariantNotReady(image)
    variant = next((variant for variant in image.variants if variant.name == name), None)
    if variant is None:
        raise UnknownVariant(tuple(variant.name for variant in image.variants))
    if _is_known_to_be_missing(ports, variant):
        raise VariantMissing(image, variant) if image.status.is_terminal else VariantNotReady(image)
    return ports.outputs.url_of(variant)


def _is_known_to_be_missing(ports: Ports, variant: Variant) -> bool:
    try:
        return not ports.outputs.holds(variant)
    except Retryable:  # nothing is known: the row says that it is there, and the client asks the store itself
        return False


def _owned(ports: Ports, image_id: str, tenant_id: str) -> Image:
    image = ports.images.get(image_id) if is_image_id(image_id) else None
    if image is None or image.tenant_id != tenant_id:
        raise UnknownImage
    if image.is_deleted and image.status is not Status.CANCELLED:  # its tombstone shows nothing of what it was
        raise UnknownImage
    return image
