"""Develops one original into all variants of a recipe: decoded once, scaled in a cascade, encoded in parallel.

`develop` returns when everything is encoded; `developing` returns before, so that its caller can already store what is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pyvips
from PIL import Image

from darkroom.domain.limits import Limits
from darkroom.domain.recipes import (
    ATTENTION,
    DEFAULT_QUALITY,
    EDGE,
    Effort,
    FocalPoint,
    OutputFormat,
    Recipe,
    VariantSpec,
)
from darkroom.imaging.alpha import premultiplied, unpremultiplied
from darkroom.imaging.attention import attention_of, small_size
from darkroom.imaging.ceiling import Encoded, encode_under
from darkroom.imaging.colour import to_srgb
from darkroom.imaging.decode import Original, open_original
from darkroom.imaging.edits import edited
from darkroom.imaging.encode import EXTENSIONS, MEDIA_TYPES
from darkroom.imaging.geometry import Placement, place
from darkroom.imaging.placeholder import PLACEHOLDER_SIDE, Placeholder, placeholder_of
from darkroom.imaging.resize import (
    base_size,
    cascade,
    colour_of,
    scaled,
    scaled_in_place,
    upright,
)
from darkroom.imaging.rights import Found, carriers_of, read_rights
from darkroom.imaging.shrinking import is_stretched, quality_steps

FIRST_FRAME_ONLY = "The file is animated: only its first frame was developed."
NO_ROOM_FOR_RIGHTS = "without author and copyright, which would take more than a quarter of max_bytes."

_MODES = {1: "L", 2: "La", 3: "RGB", 4: "RGBa"}
"""Pillow's names of pictures with as many bands, whose alpha is premultiplied; in capitals, if it is not."""

type _Job = tuple[VariantSpec, Placement]

_COARSE_SIDE = 512

_ENCODERS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="encoder")
"""Two variants are encoded at once: with more than 1769 MB, a function has more than one processor for them. The
threads, started by the first picture, stay: new ones take a millisecond for each picture, a tenth of a thumbnail's."""


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """One variant as bytes, ready to be stored."""

    name: str
    width: int
    height: int
    format: OutputFormat
    media_type: str
    extension: str
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Developed:
    """All variants of one original in the recipe's order, what its owner should know about them, and a placeholder.

    `attention` is the point that crops by attention keep, if there are any."""

    variants: tuple[Rendered, ...]
    notices: tuple[str, ...]
    placeholder: Placeholder
    attention: FocalPoint | None = None


@dataclass(frozen=True, kw_only=True)
class Developing:
    """An original whose variants are being encoded. Each of `variants`, in the recipe's order, waits until its variant
    is encoded, and returns it or raises what went wrong; `notices` waits for all of them."""

    variants: tuple[Callable[[], Rendered], ...]
    notices: Callable[[], tuple[str, ...]]
    placeholder: Placeholder
    attention: FocalPoint | None = None

    def developed(self) -> Developed:
        """Everything, when all of it is encoded."""
        variants = tuple(encoded() for encoded in self.variants)
        return Developed(
            variants=variants, notices=self.notices(), placeholder=self.placeholder, attention=self.attention
        )


def develop(original: bytes, recipe: Recipe, *, limits: Limits | None = None, effort: Effort = "balanced") -> Developed:
    """Makes the variants that `recipe` asks for, without any metadata of the original but, if asked for, its rights.

    `effort` applies to variants that name none. The same original, recipe, effort and library versions give the same
    bytes. Raises Rejected if the bytes are no image that can be developed; the codes are those of `open_original`.
    """
    with developing(original, recipe, limits=limits, effort=effort) as picture:
        return picture.developed()


@contextmanager
def developing(
    original: bytes, recipe: Recipe, *, limits: Limits | None = None, effort: Effort = "balanced"
) -> Iterator[Developing]:
    """Like `develop`, but the variants may still be encoded. At the end of the block, encoding that has not begun is
    cancelled.

    Rejected is raised at the beginning only, because the original is decoded completely before the block is entered.
    """
    limits = limits or Limits()
    source, recipe, before = edited(open_original(original, limits), recipe, max_aspect=limits.max_aspect)
    picture = _decode(source, recipe)
    notices = [FIRST_FRAME_ONLY] if source.frames > 1 else []
    base, notice = to_srgb(picture.image, source.icc_profile)
    del source  # and with it the bytes of the image_data
    if notice is not None:
        notices.append(notice)
    found = read_rights(original) if recipe.metadata == "copyright" else Found()
    notices += found.notices
    carriers = carriers_of(found.rights)
    full = [spec.name for spec in recipe.variants if carriers is not None and not carriers.fit_under(spec.max_bytes)]
    notices += [f"{name}: {NO_ROOM_FOR_RIGHTS}" for name in full]
    base = base.copy_memory()
    attention, jobs = None, picture.jobs
    if _asks_for_attention(recipe):
        point = attention_of(base)
        jobs = tuple(_attending(job, point, picture.size) for job in jobs)
        attention = before(point)

    smallest = None
    encoding: dict[int, Future[Encoded]] = {}
    try:
        for index, image, whole in cascade(base, jobs):
            spec, placement = jobs[index]
            file_format = _format(spec, image)
            share = placement.scaled[0] / picture.halved_width if picture.halved_width is not None else 0.0
            encoding[index] = _ENCODERS.submit(
                encode_under,
                (_flattened(image, spec) if file_format == "jpeg" else image).copy_memory(),
                file_format,
                quality=_quality(spec, file_format, share),
                effort=spec.effort or effort,
                ceiling_bytes=spec.max_bytes,
                carriers=None if spec.name in full else carriers,
            )
            smallest = whole  # they are ordered by size
        encoded = [(spec, encoding[index].result) for index, (spec, _) in enumerate(jobs)]
        yield Developing(
            variants=tuple(partial(_rendered, spec, result) for spec, result in encoded),
            notices=lambda: (*notices, *_notices(encoded)),
            placeholder=_placeholder(smallest),
            attention=attention,
        )
    finally:
        for begun in encoding.values():
            begun.cancel()
        wait(encoding.values())


@dataclass(frozen=True, kw_only=True)
class _Picture:
    """The whole picture, upright, in memory, at the size that the largest variant needs; alpha not premultiplied.

    `size` is the upright size of the original, and `halved_width` the upright width that the decoder shrank it to, if
    that was a half.
    """

    image: pyvips.Image
    size: tuple[int, int]
    jobs: tuple[_Job, ...]
    halved_width: int | None


def _decode(source: Original, recipe: Recipe) -> _Picture:
    turned = source.orientation >= 5
    width, height = _turned((source.width, source.height), turned)
    jobs = tuple((spec, place(spec, width, height)) for spec in recipe.variants)
    placements = [placement for _, placement in jobs]
    if _asks_for_attention(recipe):  # the point of a picture hardly depends on what else is made of it
        placements.append(small_size(width, height))
    size = _turned(base_size(placements, width, height), turned)
    shrink = source.shrink_for(size)
    with source.decoding():
        image = source.opened(shrink).copy(xres=1, yres=1)  # the resolution is metadata, and PNG would keep it
        halved_width = _turned((image.width, image.height), turned)[0] if shrink == 2 else None
        # Streamed through: neither the decoded picture nor its premultiplied form is ever completely in memory.
        if source.drops_rest and is_stretched((source.width, source.height), shrink, size):
            image = scaled_in_place(image, (source.width / shrink, source.height / shrink), *size)
        elif (image.width, image.height) != size:
            image = unpremultiplied(scaled(premultiplied(image), *size))
        image = image.copy_memory()
    return _Picture(
        image=upright(image, source.orientation), size=(width, height), jobs=jobs, halved_width=halved_width
    )


def _asks_for_attention(recipe: Recipe) -> bool:
    return any(spec.gravity == ATTENTION for spec in recipe.variants)


def _attending(job: _Job, point: FocalPoint, size: tuple[int, int]) -> _Job:
    """The job with the point that was found, if it crops by attention: only the place of its crop changes."""
    spec, _ = job
    return job if spec.gravity != ATTENTION else (spec, place(spec.model_copy(update={"gravity": point}), *size))


def _turned(size: tuple[int, int], turned: bool) -> tuple[int, int]:
    return (size[1], size[0]) if turned else size


def _format(spec: VariantSpec, image: pyvips.Image) -> OutputFormat:
    if spec.format != "auto":
        return spec.format
    return "png" if image.hasalpha() else "jpeg"


def _flattened(image: pyvips.Image, spec: VariantSpec) -> pyvips.Image:
    if not image.hasalpha():
        return image
    red, green, blue, _ = colour_of("#ffffff" if spec.background == EDGE else spec.background)
    if image.bands == 2 and not red == green == blue:
        image = image.colourspace("srgb")
    return image.flatten(background=[red, green, blue] if image.bands > 2 else [red])


def _quality(spec: VariantSpec, file_format: OutputFormat, share: float) -> float:
    quality = spec.quality or DEFAULT_QUALITY.get(file_format, 0)
    return quality if quality >= 95 else quality + quality_steps(file_format, share)


def _placeholder(image: pyvips.Image) -> Placeholder:
    scale = min(1.0, PLACEHOLDER_SIDE / max(image.width, image.height))
    size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    # Pillow takes a fifth of libvips's time for a small picture, but it would unpack all of a large one.
    if (times := max(image.width, image.height) // _COARSE_SIDE) > 1:
        image = image.shrink(times, times)
    mode = _MODES[image.bands]
    coarse = Image.frombuffer(mode, (image.width, image.height), image.write_to_memory())
    small = coarse.resize(size, Image.Resampling.LANCZOS, reducing_gap=2)
    return placeholder_of(*size, small.convert(mode.upper()).convert("RGBA").tobytes())


def _rendered(spec: VariantSpec, result: Callable[[], Encoded]) -> Rendered:
    encoded = result()
    return Rendered(
        name=spec.name,
        width=encoded.width,
        height=encoded.height,
        format=encoded.format,
        media_type=MEDIA_TYPES[encoded.format],
        extension=EXTENSIONS[encoded.format],
        body=encoded.body,
    )


def _notices(encoded: Sequence[tuple[VariantSpec, Callable[[], Encoded]]]) -> Iterator[str]:
    for spec, result in encoded:
        if (notice := result().notice) is not None:
            yield f"{spec.name}: {notice}"
