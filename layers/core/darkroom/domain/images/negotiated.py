"""Variants of format `negotiated`: three files under one address, between which the edge chooses for each reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from darkroom.domain.images.image import Variant

_EXTENSION = ".jpg"


@dataclass(frozen=True, kw_only=True)
class Negotiated:
    """One such group: `key` is what its address ends with, and each file's key but for its extension."""

    key: str
    jpeg: Variant
    webp: Variant
    avif: Variant


def negotiated_groups(variants: Sequence[Variant]) -> tuple[Negotiated, ...]:
    """The groups among a row's variants, in its order: a JPEG, with its WebP and AVIF in the same folder."""
    by_key = {variant.key: variant for variant in variants if "." in variant.name}
    groups = []
    for jpeg in variants:
        key = jpeg.key.removesuffix(_EXTENSION)
        webp, avif = by_key.get(f"{key}.webp"), by_key.get(f"{key}.avif")
        if webp is not None and avif is not None:  # guard: negotiated-whole-groups
            groups.append(Negotiated(key=key, jpeg=jpeg, webp=webp, avif=avif))
    return tuple(groups)
