"""pyvips alone: one decode (shrunk on load if possible), a cascade, colours and orientation after the resize."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyvips

from benchmarks.engine.jobs import fitted_inside

pyvips.cache_set_max(0)
# VIPS_CONCURRENCY=1 comes from the harness: one thread, because everything is pinned to one core.


def versions() -> Mapping[str, str]:
    """The versions of pyvips and of the libvips it brings."""
    return {"pyvips": pyvips.__version__, "libvips": ".".join(str(pyvips.version(part)) for part in range(3))}


def run(original: bytes, variants: list[dict[str, Any]], encoding: dict[str, Any]) -> dict[str, bytes]:
    """The variants' bytes by name."""
    image = _first(original, variants[0]["side"])
    by_side = {variants[0]["side"]: image}
    made = {}
    for variant in variants:
        side = variant["side"]
        if side not in by_side:
            image = _resized(image, side).copy_memory()
            by_side[side] = image
        made[variant["name"]] = _encoded(by_side[side], variant["format"], encoding)
    return made


def _first(original: bytes, side: int) -> pyvips.Image:
    """The largest variant, in memory: the only pass over the original."""
    image = pyvips.Image.new_from_buffer(original, "", access="sequential")
    loader = image.get("vips-loader")
    times = max(image.width, image.height) / side
    if loader == "jpegload_buffer" and times >= 2:
        shrink = max(factor for factor in (2, 4, 8) if factor <= times)
        image = pyvips.Image.jpegload_buffer(original, shrink=shrink, access="sequential")
    elif loader == "webpload_buffer" and times > 1:
        image = pyvips.Image.webpload_buffer(original, scale=1 / times, access="sequential")
    image = _resized(image, side).copy_memory().autorot()
    if image.get_typeof("icc-profile-data"):
        image = image.icc_transform("srgb", embedded=True, intent="relative").copy_memory()
    return image


def _resized(image: pyvips.Image, side: int) -> pyvips.Image:
    width, height = fitted_inside(image.width, image.height, side)
    if (width, height) == (image.width, image.height):
        return image
    if image.hasalpha():  # else the colours of invisible pixels bleed into the edges
        # Back to whole numbers before the resize, as vips_thumbnail() does: resizing floats takes three times as long.
        large = image.premultiply().cast("uchar")
        small = large.resize(width / image.width, vscale=height / image.height, kernel="lanczos3")
        return small.unpremultiply().cast("uchar")
    return image.resize(width / image.width, vscale=height / image.height, kernel="lanczos3")


def _encoded(image: pyvips.Image, variant_format: str, encoding: dict[str, Any]) -> bytes:
    match variant_format:
        case "jpeg":
            optimize = encoding["jpeg_optimize"]
            body = image.jpegsave_buffer(
                Q=encoding["jpeg_quality"], optimize_coding=optimize, subsample_mode="on", keep="none"
            )
        case "webp":
            body = image.webpsave_buffer(Q=encoding["webp_quality"], effort=encoding["webp_method"], keep="none")
        case "avif":
            effort = 9 - encoding["avif_speed"]
            body = image.heifsave_buffer(Q=encoding["avif_quality"], compression="av1", effort=effort, keep="none")
        case _:
            filters = "all" if encoding["png_adaptive_filter"] else "none"
            body = image.pngsave_buffer(compression=encoding["png_compression"], filter=filters, keep="none")
    return bytes(body)
