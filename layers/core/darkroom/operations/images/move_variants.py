"""Moves an image's variants to where another visibility wants them: the same bytes, under other keys."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from darkroom.domain.images.image import Image, Status, Variant
from darkroom.domain.images.works import moved
from darkroom.domain.kernel.errors import Retryable, demand_none
from darkroom.domain.kernel.visibility import Visibility, moved_key
from darkroom.ports.images import Images, Outputs, StaleEdge
from darkroom.ports.kernel import AtOnce, Fenced

SECOND_TELLING_SECONDS = 900
"""When the edge is told again: what it was just fetching, it may keep after it was told to forget. SQS delays no
longer."""


@dataclass(frozen=True, kw_only=True)
class MoveVariantsPorts:
    """What moving needs. A stack without an edge has no `stale_edge`."""

    images: Images
    outputs: Outputs
    at_once: AtOnce
    stale_edge: StaleEdge | None = None


def move_variants(ports: MoveVariantsPorts, image: Image, wanted: Visibility) -> Image:
    """Returns the claimed image's row, which names its variants' new keys, once nothing is left that an edge may read
    or keep for another visibility. Each step can be repeated after a crash at any call.

    Raises Fenced if the image is no longer this worker's, and whatever the stores raise.
    """
    after = moved(image, wanted)
    pairs = [pair for pair in zip(image.variants, after.variants, strict=True) if pair[0].key != pair[1].key]
    if pairs:
        ports.at_once([partial(_copy, ports.outputs, image, *pair) for pair in pairs])
    if after != image:
        try:
            image = ports.images.change(image, after)  # guard: visibility-moved-fence
        except Fenced as lost:
            remove_withdrawn(ports.outputs, lost.current, after.variants)
            raise
    remove_unshown(ports.outputs, ports.stale_edge, image)
    return image


def remove_unshown(outputs: Outputs, stale_edge: StaleEdge | None, image: Image) -> None:
    """Removes what the image's variants were, or were to be, for another visibility than its present one, and then has
    the edge forget it."""
    exposed = [each for each in image.visibilities if each not in (image.visibility, Visibility.PRIVATE)]
    stale = {*outputs.keys_of(image.image_id, exposed)} if exposed else set()
    if image.visibility is not Visibility.PRIVATE:
        stale |= {moved_key(variant.key, Visibility.PRIVATE) for variant in image.variants}
    stale -= {variant.key for variant in image.variants}
    demand_none(outputs.remove(sorted(stale)))  # guard: visibility-former-removed
    if exposed and stale_edge is not None:
        for delay_seconds in (0, SECOND_TELLING_SECONDS):
            # guard: visibility-edge-told
            stale_edge.forget({image.image_id: image.tenant_id}, delay_seconds=delay_seconds)


def remove_withdrawn(outputs: Outputs, current: Image | None, variants: Sequence[Variant]) -> None:
    """Removes what a worker has just stored of an image that its client has withdrawn meanwhile."""
    if current is None or current.is_deleted or current.status in (Status.CANCELLED, Status.EXPIRED):
        # guard: withdrawal-outputs-removed
        demand_none(outputs.remove([variant.key for variant in variants]))


def _copy(outputs: Outputs, image: Image, variant: Variant, after: Variant) -> None:
    body, media_type = outputs.get(variant.key)
    if hashlib.sha256(body).hexdigest() != variant.sha256:  # guard: visibility-moved-whole
        raise Retryable(f"{variant.key} did not arrive whole")
    outputs.put_if_absent(
        after.key, body, sha256=variant.sha256, media_type=media_type, viewer_seconds=image.viewer_seconds
    )
