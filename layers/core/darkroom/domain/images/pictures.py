"""Where an image is at the edge: the permanent URLs of its variants, and what a website shows of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from darkroom.domain.images.negotiated import negotiated_groups
from darkroom.domain.kernel.visibility import Visibility, visibility_of_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from darkroom.domain.images.image import Image, Variant
    from darkroom.domain.kernel.instants import Milliseconds

_SHOWN_EVERYWHERE = ("jpeg", "png", "webp", "gif")
"""Formats that every browser in use shows (https://developer.mozilla.org/docs/Web/Media/Guides/Formats/Image_types)."""


@dataclass(frozen=True, kw_only=True)
class EdgeUrls:
    """The edge's URLs of variants. A stack without an edge has no `base`. With `signature`, the query of URLs that were
    signed for one image until `expires_at`, they lead to its signed variants, too."""

    base: str = ""
    signature: str = ""
    expires_at: Milliseconds | None = None

    def of(self, variant: Variant, address: str) -> str | None:
        """The variant's URL, made of image, run and name: what is behind it never changes. None if the edge does not
        serve it, or only to who has a signature. `address` is its key, or what the edge makes a key of."""
        # Where the object lies decides who can read it, whatever the row wants for its next run.
        visibility = visibility_of_key(variant.key)  # guard: picture-by-key
        if self.base and visibility is Visibility.PUBLIC:
            return f"{self.base}/{address}"
        if self.base and visibility is Visibility.SIGNED and self.signature:
            return f"{self.base}/{address}?{self.signature}"
        return None


NO_EDGE = EdgeUrls()


@dataclass(frozen=True, kw_only=True)
class Picture:
    """What a website needs of an image: the URL of its widest variant that every browser shows, and `srcset`, that and
    the others of the same format and crop, as HTML writes them. `expires_at` is when the URLs end, None for never."""

    url: str
    width: int
    height: int
    srcset: str
    expires_at: Milliseconds | None = None


def address_of(image: Image, variant: Variant) -> str:
    """What the edge makes a key of: the variant's key. Of one that was made in several formats, the JPEG has the
    address between whose files the edge chooses."""
    groups = negotiated_groups(image.variants)
    return next((group.key for group in groups if group.jpeg.name == variant.name), variant.key)


def urls_of(image: Image, edge: EdgeUrls) -> Mapping[str, str]:
    """The URLs at the edge of those of the image's variants that have one, by name."""
    urls = ((variant.name, edge.of(variant, address_of(image, variant))) for variant in image.variants)
    return {name: url for name, url in urls if url is not None}


def picture_of(image: Image, edge: EdgeUrls) -> Picture | None:
    """What a website shows of the image; None if the edge serves nothing of it that every browser shows."""
    urls = urls_of(image, edge)
    shown = [variant for variant in image.variants if variant.name in urls and variant.format in _SHOWN_EVERYWHERE]
    if not shown:
        return None
    widest = max(shown, key=lambda variant: variant.width)  # of several, the first that the recipe names
    by_width = {variant.width: urls[variant.name] for variant in reversed(shown) if _is_smaller(variant, widest)}
    is_signed = visibility_of_key(widest.key) is Visibility.SIGNED
    return Picture(
        url=urls[widest.name],
        width=widest.width,
        height=widest.height,
        srcset=", ".join(f"{by_width[width]} {width}w" for width in sorted(by_width)),
        expires_at=edge.expires_at if is_signed else None,
    )


def _is_smaller(variant: Variant, widest: Variant) -> bool:
    """Whether it shows the same, in the same format: its shorter side was rounded to a whole pixel."""
    difference = abs(variant.width * widest.height - variant.height * widest.width)
    # guard: picture-srcset-same-crop
    return variant.format == widest.format and difference <= max(widest.width, widest.height)
