"""One original into all variants of a recipe: decoded once, each variant resized, colour-managed and encoded."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.recipes import Recipe
from darkroom.imaging.decode import decode
from darkroom.imaging.encode import EXTENSIONS, MEDIA_TYPES, encode, family_of
from darkroom.imaging.resize import fit_inside, to_srgb


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """One variant as bytes, ready to be stored."""

    name: str
    width: int
    height: int
    format: str
    media_type: str
    extension: str
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Developed:
    """All variants of one original, and what its owner should know about them."""

    variants: tuple[Rendered, ...]
    notices: tuple[str, ...]


def develop(original: bytes, recipe: Recipe) -> Developed:
    """The variants that `recipe` asks for, without any metadata of the original.

    Raises Rejected where the bytes are no image that can be developed.
    """
    decoded = decode(original)
    notices = list(decoded.notices)
    rendered = []
    for spec in recipe.variants:
        small = fit_inside(decoded.image, spec.width, spec.height)
        # The conversion comes after the resize: there are far fewer pixels then, and the result is the same to the eye.
        converted, notice = to_srgb(small, decoded.icc_profile)
        if notice is not None and notice not in notices:
            notices.append(notice)
        family = family_of(spec.format, converted)
        body = encode(converted, family, quality=spec.quality)
        rendered.append(
            Rendered(
                name=spec.name,
                width=converted.width,
                height=converted.height,
                format=family,
                media_type=MEDIA_TYPES[family],
                extension=EXTENSIONS[family],
                body=body,
            )
        )
    return Developed(variants=tuple(rendered), notices=tuple(notices))
