"""Tells a client the status of its image, and where its variants are."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.images.image import Image, Variant
from darkroom.domain.images.pictures import NO_EDGE, EdgeUrls, urls_of
from darkroom.domain.images.works import recipes_to_make
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.visibility import Visibility, visibility_of_key
from darkroom.operations.images.estimate import Estimator
from darkroom.operations.images.list_images import ListImagesPorts
from darkroom.operations.images.owned_image import owned_image
from darkroom.ports.images import Outputs, UrlSigner
from darkroom.ports.kernel import Clock


class VariantNotReady(LookupError):
    """The variant is yet to be made, with the others of its image or beside them, or is made again because it is
    missing; `image` has its status."""

    def __init__(self, image: Image) -> None:
        super().__init__(f"the image is {image.status}")
        self.image = image


class UnknownVariant(LookupError):
    """The image is done and has no variant with that name; `names` are the existing ones."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__("no such variant")
        self.names = names


class VariantMissing(LookupError):
    """The image is done, but its variant's object is not there as it was stored: only an operator can help."""

    def __init__(self, image: Image, variant: Variant) -> None:
        super().__init__(f"{variant.key} is not there")
        self.image = image
        self.variant = variant


@dataclass(frozen=True, kw_only=True)
class ReadImagePorts(ListImagesPorts):
    """What reading an image needs besides the ports of a list; a stack without an edge has no `url_signer`."""

    outputs: Outputs
    estimator: Estimator
    clock: Clock
    edge: EdgeUrls = NO_EDGE
    url_signer: UrlSigner | None = None


def read_image(ports: ReadImagePorts, image_id: str, *, tenant_id: str, upload_token: str | None = None) -> Image:
    """The image in its current state; for who has an upload token of that id, if it was uploaded with it. Raises
    UnknownImage, and Retryable if the table cannot answer."""
    return owned_image(ports.images, image_id, tenant_id=tenant_id, upload_token=upload_token)


def edge_urls(ports: ReadImagePorts, image: Image) -> EdgeUrls:
    """The image's URLs at the edge, signed ones too: a credential, for nothing but the answer to who asks for this one
    image. If nobody signs now, those without."""
    is_signed = any(visibility_of_key(variant.key) is Visibility.SIGNED for variant in image.variants)
    if ports.url_signer is not None and is_signed:
        with bookkeeping("URLs not signed"):  # guard: signer-outage-tolerated
            return ports.url_signer.sign(image.image_id)
    return ports.edge


def variant_url(ports: ReadImagePorts, image_id: str, name: str, *, tenant_id: str, for_head: bool = False) -> str:
    """The URL of one variant, valid for 15 minutes, for GET or `for_head`; while an image is developed again, that of
    the earlier variant.

    Raises UnknownImage, VariantNotReady, UnknownVariant, VariantMissing, and Retryable if the table cannot answer. If
    the store cannot answer, the URL is returned all the same.
    """
    image = owned_image(ports.images, image_id, tenant_id=tenant_id)
    if not image.variants:  # guard: redo-earlier-variants-served
        raise VariantNotReady(image)
    variant = next((variant for variant in image.variants if variant.name == name), None)
    if variant is None:
        if any(name in recipe.made_names for recipe in recipes_to_make(image)):
            raise VariantNotReady(image)  # guard: works-awaited-variant-not-ready
        raise UnknownVariant(tuple(variant.name for variant in image.variants))
    if _is_known_to_be_missing(ports, variant):  # guard: variant-missing-object-no-address
        # guard: redo-variant-not-ready
        raise VariantMissing(image, variant) if image.status.is_terminal else VariantNotReady(image)
    return urls_of(image, ports.edge).get(name) or ports.outputs.url_of(variant, for_head=for_head)


def _is_known_to_be_missing(ports: ReadImagePorts, variant: Variant) -> bool:
    try:
        return not ports.outputs.holds(variant)
    # guard: variant-store-outage-tolerated
    except Retryable:  # nothing is known: the row says that it is there, and the client asks the store itself
        return False
