"""Develops one original into all variants of a recipe: decoded once, scaled in a cascade, encoded in parallel.

`develop` returns when everything is encoded; `developing` returns before, so that its caller can already store what is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, cast

import pyvips
from PIL import Image

from darkroom.domain.images.limits import Limits
from darkroom.domain.kernel.errors import OVERLAY_UNDECODABLE, Rejected
from darkroom.domain.kernel.lanes import Effort
from darkroom.domain.recipes.recipes import (
    ATTENTION,
    DEFAULT_QUALITY,
    EDGE,
    FocalPoint,
    OutputFormat,
    Overlay,
    Recipe,
    VariantSpec,
)
from darkroom.imaging.alpha import premultiplied, unpremultiplied
from darkroom.imaging.attention import attention_of, small_size
from darkroom.imaging.best import HIGHEST_COMPARED, equal_qualities, looking_like
from darkroom.imaging.ceiling import Encoded, encode_under
from darkroom.imaging.colour import to_srgb
from darkroom.imaging.decode import Original, from_memory, open_original
from darkroom.imaging.edits import Box, edited, turned
from darkroom.imaging.encode import EXTENSIONS, MEDIA_TYPES, in_colour
from darkroom.imaging.overlay import OverlayPicture, overlaid, shown_size
from darkroom.imaging.placeholder import PLACEHOLDER_SIDE, Placeholder, placeholder_of
from darkroom.imaging.scaling.geometry import Placement, place
from darkroom.imaging.scaling.resize import (
    base_size,
    cascade,
    colour_of,
    scaled,
    scaled_in_place,
    upright,
)
from darkroom.imaging.scaling.shrinking import is_stretched, quality_steps

if TYPE_CHECKING:
    from darkroom.imaging.animation import AnimationWriter, Timeline
    from darkroom.imaging.rights import Carriers

FIRST_FRAME_ONLY = "The file is animated: only its first frame was developed."
NO_RIGHTS_IN_GIF = "without author and copyright, which a GIF does not carry."
NO_ROOM_FOR_RIGHTS = "without author and copyright, which would take more than a quarter of max_bytes."

_MODES = {1: "L", 2: "La", 3: "RGB", 4: "RGBa"}
"""Pillow's names of pictures with as many bands, whose alpha is premultiplied; in capitals, if it is not."""

type _Job = tuple[VariantSpec, Placement]

type _OverlayPictures = dict[str, OverlayPicture]
"""The pictures of overlays, by their images' ids."""

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


def _no_overlays(image_id: str) -> bytes:
    raise KeyError(image_id)


def develop(
    original: bytes,
    recipe: Recipe,
    *,
    limits: Limits | None = None,
    effort: Effort = "balanced",
    overlay_of: Callable[[str], bytes] = _no_overlays,
    beside: Sequence[VariantSpec] = (),
) -> Developed:
    """Makes the variants that `recipe` asks for, without any metadata of the original but, if asked for, its rights.

    `effort` applies to variants that name none, and `overlay_of` returns the file of an overlay's image. `beside` are
    the variants of a recipe with the same edits that the original was developed by before: a still's variant without
    overlays then has the bytes that it has in that recipe, or would have there. The same files, recipes, effort and
    library versions give the same bytes. Raises Rejected if the bytes are no image that can be developed; the codes are
    those of `open_original`, `too_many_frames`, `animation_too_large` and `overlay_undecodable`.
    """
    with developing(original, recipe, limits=limits, effort=effort, overlay_of=overlay_of, beside=beside) as picture:
        return picture.developed()


@contextmanager
def developing(
    original: bytes,
    recipe: Recipe,
    *,
    limits: Limits | None = None,
    effort: Effort = "balanced",
    overlay_of: Callable[[str], bytes] = _no_overlays,
    beside: Sequence[VariantSpec] = (),
) -> Iterator[Developing]:
    """Like `develop`, but the variants may still be encoded. At the end of the block, encoding that has not begun is
    cancelled.

    Rejected, and what `overlay_of` raises, is raised at the beginning only, because everything is decoded completely
    before the block is entered; variants that keep an animation are also encoded before, because no more than one of
    its frames is in memory.
    """
    limits = limits or Limits()
    overlays_for = partial(_overlay_pictures, overlay_of, limits)
    # Decoding, edits, colours, the point of attention, rights; of an animation that is kept, all the rest as well.
    opened = _opened(original, recipe, limits, effort, overlays_for, beside=beside)
    overlays = overlays_for([picture.jobs[number] for picture in opened.stills for number in sorted(picture.wanted)])
    encoding: dict[str, Future[Encoded]] = {}
    try:
        # Scaling and overlays, one variant after the other; each is encoded while the next ones are scaled.
        smallest = _begin_encoding(encoding, opened, overlays, effort=effort)
        encoded = _encoded_variants(recipe, opened, encoding)
        yield Developing(
            variants=tuple(partial(_rendered, spec, result) for spec, result in encoded),
            notices=lambda: (*opened.notices, *_notices(encoded)),
            placeholder=_placeholder(smallest),
            attention=opened.attention,
        )
    finally:
        for begun in encoding.values():
            begun.cancel()  # guard: engine-failed-attempt-cancels
        wait(encoding.values())


@dataclass(frozen=True, kw_only=True)
class _Picture:
    """The whole picture with its edits, upright, in sRGB and in memory, at the size that the largest variant needs;
    alpha not premultiplied.

    Others may come of the first `leaders` of its `jobs` alone, and the `wanted` ones are encoded. `unfit` are variants
    that would need it larger than the leaders do.

    `halved_width` is the upright width that the decoder shrank it to, if that was a half. `notice` is what its owner
    should know about its colours. `box` is what is left of it by a trim, and `point` what crops by attention keep, if
    it was measured; `attention` is that point before the edits.
    """

    image: pyvips.Image
    jobs: tuple[_Job, ...]
    halved_width: int | None
    notice: str | None
    box: Box
    point: FocalPoint | None
    attention: FocalPoint | None
    wanted: frozenset[int]
    leaders: int
    unfit: tuple[VariantSpec, ...]


@dataclass(frozen=True, kw_only=True)
class _Opened:
    """An original, decoded completely: the pictures of the stills, the animations by their variants' names, the whole
    picture that the smallest of these began with, and the rights that each variant carries."""

    stills: tuple[_Picture, ...]
    moving: dict[str, Encoded]
    moving_whole: pyvips.Image | None
    carriers: dict[str, Carriers]
    notices: tuple[str, ...]
    attention: FocalPoint | None


def _begin_encoding(
    encoding: dict[str, Future[Encoded]], opened: _Opened, overlays: _OverlayPictures, *, effort: Effort
) -> pyvips.Image:
    """Scales the stills' variants, in a cascade, and lays overlays on them; each joins `encoding`, by its name, as soon
    as it is there. Returns the whole picture that the smallest variant comes from."""
    smallest = opened.moving_whole
    for picture in opened.stills:
        remaining = set(picture.wanted)
        for number, placed, full_picture in cascade(picture.image, picture.jobs, leaders=picture.leaders):
            if number not in remaining:
                continue
            spec, placement = picture.jobs[number]
            image = overlaid(placed, spec.overlays, overlays)
            share = placement.scaled[0] / picture.halved_width if picture.halved_width is not None else 0.0
            if spec.format == "negotiated":
                image = image.copy_memory()  # for three encoders
            for made in _made(spec):
                qualities = _qualities(made, image, share)
                encoding[made.name] = _ENCODERS.submit(
                    _encoded,
                    (_flattened(image, made) if "jpeg" in qualities else image).copy_memory(),
                    qualities,
                    effort=made.effort or effort,
                    ceiling_bytes=made.max_bytes,
                    carriers=opened.carriers.get(made.name),
                )
            smallest = full_picture  # they are ordered by size
            remaining.remove(number)
            if not remaining:  # smaller ones, of which nothing comes
                break
    return smallest


def _encoded_variants(
    recipe: Recipe, opened: _Opened, encoding: Mapping[str, Future[Encoded]]
) -> list[tuple[VariantSpec, Callable[[], Encoded]]]:
    """Each variant in the recipe's order, with what waits until it is encoded and returns it."""
    return [
        (
            made,
            partial(opened.moving.__getitem__, made.name) if made.name in opened.moving else encoding[made.name].result,
        )
        for spec in recipe.variants
        for made in spec.made
    ]


def _made(spec: VariantSpec) -> tuple[VariantSpec, ...]:
    """The variants that it becomes; of format `negotiated`, with qualities that look alike."""
    if spec.format != "negotiated":
        return (spec,)
    quality = spec.quality or DEFAULT_QUALITY["jpeg"]
    qualities: dict[OutputFormat, int] = {"jpeg": quality, **looking_like(quality)}
    return tuple(
        made.model_copy(update={"quality": qualities[cast("OutputFormat", made.format)]}) for made in spec.made
    )


def _opened(
    original: bytes,
    recipe: Recipe,
    limits: Limits,
    effort: Effort,
    overlays_for: Callable[[Sequence[_Job]], _OverlayPictures],
    *,
    beside: Sequence[VariantSpec],
) -> _Opened:
    source = open_original(original, limits)
    parts = _by_animation(recipe)
    timeline, sought = None, 0
    if source.frames > 1 and set(parts) != {"first"}:
        timeline, sought = _timeline(original, source, recipe, limits)
    carriers, of_rights = _carriers(original, recipe)
    moving: dict[str, Encoded] = {}
    pictures: list[_Picture] = []
    moving_full = None
    if timeline is None:
        stills = _stills(source, recipe, limits, beside=beside)
    else:
        first, poster = _still_frames(source, timeline, recipe, parts, limits, sought=sought, beside=_of_kinds(beside))
        stills = [*first, *poster]  # the placeholder is the last one's
        if "keep" in parts:
            moving, moving_full, moved = _animated(
                source,
                timeline,
                parts["keep"],
                limits,
                like=next(iter([*first, *poster]), None),  # guard: animation-frames-measured-once
                effort=effort,
                carriers=carriers,
                overlays_for=overlays_for,
            )
            pictures.append(moved)
    pictures += stills
    unmoved = recipe.variants if timeline is None else parts["first"].variants if "first" in parts else ()
    notices = [
        *(_dropped(recipe, unmoved) if source.frames > 1 else ()),
        *dict.fromkeys(picture.notice for picture in pictures if picture.notice is not None),
        *of_rights,
    ]
    return _Opened(
        stills=tuple(stills),
        moving=moving,
        moving_whole=moving_full,
        carriers=carriers,
        notices=tuple(notices),
        attention=next((picture.attention for picture in pictures if picture.attention is not None), None),
    )


def _stills(
    source: Original,
    recipe: Recipe,
    limits: Limits,
    *,
    like: _Picture | None = None,
    for_others: bool = False,
    beside: Sequence[VariantSpec] = (),
) -> list[_Picture]:
    """The picture that the recipe's variants come of, and one for each that needs a larger one than those `beside` do,
    as if it was alone. The other arguments are those of `_picture`."""
    picture = _picture(source, recipe, limits, like=like, for_others=for_others, beside=beside)
    alone = [recipe.model_copy(update={"variants": (spec,)}) for spec in picture.unfit]
    return [picture, *(_picture(source, each, limits, like=like) for each in alone)]


def _by_animation(recipe: Recipe) -> dict[str, Recipe]:
    """The recipe's parts by what their variants make of an animation: they keep it, or show its first frame or a
    poster. None is without a variant."""
    return {
        kind: recipe.model_copy(update={"variants": variants}) for kind, variants in _of_kinds(recipe.variants).items()
    }


def _of_kinds(specs: Iterable[VariantSpec]) -> dict[str, tuple[VariantSpec, ...]]:
    kinds = {kind: tuple(spec for spec in specs if spec.animation == kind) for kind in ("keep", "first", "poster")}
    return {kind: variants for kind, variants in kinds.items() if variants}


def _still_frames(
    source: Original,
    timeline: Timeline,
    recipe: Recipe,
    parts: Mapping[str, Recipe],
    limits: Limits,
    *,
    sought: int,
    beside: Mapping[str, Sequence[VariantSpec]],
) -> tuple[list[_Picture], list[_Picture]]:
    """An animation's first frame and its poster, if variants show them.

    What is measured on a picture is measured once: on the poster if there is one, as a first frame may be blank."""
    poster, first = list[_Picture](), list[_Picture]()
    if "poster" in parts:
        still, leaders = _poster(source, timeline, limits, sought), beside.get("poster", ())
        attends = _asks_for_attention(recipe.variants)  # guard: animation-poster-measured-for-all
        poster = _stills(still, parts["poster"], limits, for_others=attends, beside=leaders)
    if "first" in parts:
        leaders = beside.get("first", ())
        # guard: animation-first-frame-like-poster
        first = _stills(source, parts["first"], limits, like=next(iter(poster), None), beside=leaders)
    return first, poster


def _timeline(original: bytes, source: Original, recipe: Recipe, limits: Limits) -> tuple[Timeline | None, int]:
    """The animation if it is one, and in how many of its frames a poster is sought. Whether it is too long or too much
    work is asked only for variants that keep it: a poster is then sought in fewer frames."""
    from darkroom.imaging.animation import require_little_work, timeline_of  # noqa: PLC0415  few recipes need it

    timeline = timeline_of(original, most=limits.max_frames + 1)
    if timeline is None:
        return None, 0
    # guard: animation-kept-frames-bound
    if len(timeline.frames) > limits.max_frames and any(spec.animation == "keep" for spec in recipe.variants):
        raise Rejected(
            "too_many_frames",
            f"The animation has more than {limits.max_frames} frames, too many to keep. Send a shorter one, or ask for "
            "animation first or poster.",
        )
    is_turned = turned(source.orientation, recipe.rotate, recipe.flip) >= 5
    size = _turned((source.width, source.height), is_turned)
    affordable = require_little_work(timeline, recipe, [(spec, place(spec, *size)) for spec in recipe.variants])
    return timeline, min(affordable, limits.max_frames)


def _carriers(original: bytes, recipe: Recipe) -> tuple[dict[str, Carriers], list[str]]:
    """The rights that each variant carries, by its name, and notices about what of them could not be read or written.
    Nothing is read unless the recipe asks for them."""
    if recipe.metadata != "copyright":  # guard: rights-read-on-request
        return {}, []
    from darkroom.imaging.rights import carriers_of, read_rights  # noqa: PLC0415  few recipes need it

    reading = read_rights(original)
    carriers = carriers_of(reading.rights)
    carried: dict[str, Carriers] = {}
    notices = list(reading.notices)
    if carriers is None:
        return carried, notices
    for spec in (made for variant in recipe.variants for made in variant.made):
        if spec.format == "gif":
            notices.append(f"{spec.name}: {NO_RIGHTS_IN_GIF}")
        elif carriers.fit_under(spec.max_bytes):
            carried[spec.name] = carriers
        else:
            notices.append(f"{spec.name}: {NO_ROOM_FOR_RIGHTS}")
    return carried, notices


def _dropped(recipe: Recipe, stills: Sequence[VariantSpec]) -> Iterator[str]:
    """What to say of an animation of which these variants are the first frame, unasked."""
    if len(stills) == len(recipe.variants):
        yield FIRST_FRAME_ONLY
    elif stills:
        yield f"{', '.join(spec.name for spec in stills)}: only the first frame of the animation was developed."


def _animated(
    source: Original,
    timeline: Timeline,
    recipe: Recipe,
    limits: Limits,
    *,
    like: _Picture | None,
    effort: Effort,
    carriers: dict[str, Carriers],
    overlays_for: Callable[[Sequence[_Job]], _OverlayPictures],
) -> tuple[dict[str, Encoded], pyvips.Image, _Picture]:
    """The recipe's variants, each an animation, by their names; the whole picture that the smallest one's first frame
    comes from; and the first frame. One frame at a time is in memory.

    What was measured on `like`, a trim and a point of attention, holds for all frames; what was not, or without it, is
    measured on the first one."""
    from darkroom.imaging.animation import animation_writer, composed, require_little_work  # noqa: PLC0415  as above

    writers: dict[int, AnimationWriter] = {}
    sizes: dict[int, tuple[int, int]] = {}
    overlays: _OverlayPictures = {}
    first = smallest = None
    for frame, canvas in zip(timeline.frames, composed(timeline, limits), strict=True):
        picture = _picture(_still_of(canvas, source), recipe, limits, like=first or like)
        if first is None:
            require_little_work(timeline, recipe, picture.jobs)  # a trim may leave another shape
            overlays = overlays_for(picture.jobs)
        for number, placed, full_picture in cascade(picture.image, picture.jobs, leaders=picture.leaders):
            spec, _ = picture.jobs[number]
            image = overlaid(placed, spec.overlays, overlays)
            if first is None:
                sizes[number] = (image.width, image.height)
                writers[number] = animation_writer(
                    _moving_format(spec),
                    sizes[number],
                    plays=timeline.plays,
                    quality=_quality(spec, _moving_format(spec)),
                    effort=spec.effort or effort,
                    carriers=carriers.get(spec.name),
                )
                smallest = full_picture
            writers[number].add(in_colour(image), frame.milliseconds)
        first = first or picture
    moving = {
        spec.name: Encoded(
            body=writers[number].done(), format=_moving_format(spec), width=sizes[number][0], height=sizes[number][1]
        )
        for number, spec in enumerate(recipe.variants)
    }
    assert first is not None  # noqa: S101  a timeline has frames
    return moving, smallest, first


def _moving_format(spec: VariantSpec) -> OutputFormat:
    return "gif" if spec.format == "gif" else "webp"


def _poster(source: Original, timeline: Timeline, limits: Limits, sought: int) -> Original:
    """The first frame that is not one colour, or the first one if the `sought` ones all are."""
    from darkroom.imaging.animation import composed, is_uniform  # noqa: PLC0415  as above

    first = None
    for canvas in islice(composed(timeline, limits), sought):  # guard: animation-poster-frames-bound
        if not is_uniform(canvas):
            return _still_of(canvas, source)
        first = first or _still_of(canvas, source)
    return first or source


def _still_of(canvas: Image.Image, source: Original) -> Original:
    """A frame of an animation as if it was the only one: from here on, it takes the way of every still."""
    opaque = canvas.getextrema()[-1] == (255, 255)
    pixels = canvas.convert("L" if canvas.mode == "LA" else "RGB") if opaque else canvas
    image = from_memory(pixels.tobytes(), *pixels.size, bands=len(pixels.getbands()))
    return replace(
        source,
        width=canvas.width,
        height=canvas.height,
        opened=lambda _: image,
        shrink_for=lambda _: 1,
        drops_rest=False,
        allowance_bytes=None,
    )


def _picture(
    source: Original,
    recipe: Recipe,
    limits: Limits,
    *,
    like: _Picture | None = None,
    for_others: bool = False,
    beside: Sequence[VariantSpec] = (),
) -> _Picture:
    """Decodes one picture, of a still or of a frame, and makes the recipe's edits; `cascade` then makes each variant.

    Both are the only way from a frame to a variant's picture, so that every frame gets what a still gets. `like` is
    another frame of the animation, from which what was measured there is taken; `for_others` is whether another frame
    will need this one's point of attention. `beside` leads: the picture is as large as these variants need.
    """
    given, whole = recipe, source
    specs = (*beside, *(spec for spec in recipe.variants if spec not in beside))
    source, recipe, before, box = edited(
        source,
        recipe.model_copy(update={"variants": specs}),
        max_aspect=limits.max_aspect,
        box=None if like is None else like.box,  # guard: animation-trim-same-all-frames
    )
    is_turned = source.orientation >= 5
    width, height = _turned((source.width, source.height), is_turned)
    jobs = [(spec, place(spec, width, height)) for spec in recipe.variants]
    leaders = len(beside) or len(jobs)
    upright_size, fitting = _sized(jobs, leaders, (width, height), for_others=for_others)
    wanted = [number for number in fitting if specs[number] in given.variants]
    unfit = tuple(spec for number, spec in enumerate(specs) if number not in fitting)
    if not wanted:  # the first that needs a larger one has its own
        first = given.model_copy(update={"variants": unfit[:1]})
        alone = _picture(whole, first, limits, like=like, for_others=for_others)
        return replace(alone, unfit=unfit[1:])
    size = _turned(upright_size, is_turned)
    image, halved_width = _decoded(source, size, is_turned=is_turned)
    base, notice = to_srgb(upright(image, source.orientation), source.icc_profile)
    base = base.copy_memory()
    point = None if like is None else like.point
    if point is None and (for_others or _asks_for_attention(specs[number] for number in wanted)):
        point = attention_of(base)
    attention = None
    if point is not None:
        jobs = [_attending(job, point, (width, height)) for job in jobs]
        attention = before(point)  # guard: attention-point-before-edits
    return _Picture(
        image=base,
        jobs=tuple(jobs[number] for number in fitting),
        halved_width=halved_width,
        notice=notice,
        box=box,
        point=point,
        attention=attention,
        wanted=frozenset(fitting.index(number) for number in wanted),
        leaders=leaders,
        unfit=unfit,
    )


def _sized(
    jobs: Sequence[_Job], leaders: int, whole: tuple[int, int], *, for_others: bool
) -> tuple[tuple[int, int], list[int]]:
    """The size of the upright picture that the first `leaders` jobs need, and the numbers of those that it suffices."""
    placements = [placement for _, placement in jobs[:leaders]]
    looked_at = small_size(*whole)
    # The point of a picture hardly depends on what else is made of it.
    if for_others or _asks_for_attention(spec for spec, _ in jobs[:leaders]):
        placements.append(looked_at)  # guard: attention-least-base-size
    size = base_size(placements, *whole)

    def fits(spec: VariantSpec, placement: Placement) -> bool:
        sizes = [placement.scaled, *([looked_at.scaled] if spec.gravity == ATTENTION else ())]
        return all(min(needed[side], whole[side]) <= size[side] for needed in sizes for side in (0, 1))

    # guard: engine-large-follower-alone
    return size, [number for number, job in enumerate(jobs) if number < leaders or fits(*job)]


def _decoded(source: Original, size: tuple[int, int], *, is_turned: bool) -> tuple[pyvips.Image, int | None]:
    """The picture as it lies in its file, in memory, at that size; and the upright width that the decoder shrank it to,
    if that was a half."""
    shrink = source.shrink_for(size)
    with source.decoding():
        image = source.opened(shrink).copy(xres=1, yres=1)  # the resolution is metadata, and PNG would keep it
        halved_width = _turned((image.width, image.height), is_turned)[0] if shrink == 2 else None
        # Streamed through: neither the decoded picture nor its premultiplied form is ever completely in memory.
        # guard: engine-shrink-without-stretch
        if source.drops_rest and is_stretched((source.width, source.height), shrink, size):
            image = scaled_in_place(image, (source.width / shrink, source.height / shrink), *size)
        elif (image.width, image.height) != size:
            image = unpremultiplied(scaled(premultiplied(image), *size))
        image = image.copy_memory()
    return image, halved_width


def _overlay_pictures(overlay_of: Callable[[str], bytes], limits: Limits, jobs: Sequence[_Job]) -> _OverlayPictures:
    """The pictures of the jobs' overlays: each is decoded once, and held at the largest size that is shown."""
    uses: dict[str, list[tuple[Overlay, tuple[int, int]]]] = {}
    for spec, placement in jobs:
        for overlay in spec.overlays:
            uses.setdefault(overlay.image, []).append((overlay, placement.size))
    pictures = {}
    for image_id, shown in uses.items():
        body = overlay_of(image_id)
        try:
            source = open_original(body, limits)
            size = _turned((source.width, source.height), source.orientation >= 5)
            width, height = max(shown_size(overlay, size, variant) for overlay, variant in shown)
            largest = VariantSpec(name="overlay", width=width, height=height, fit="exact")
            picture = _picture(source, Recipe(variants=(largest,)), limits)
        except Rejected as refusal:
            # guard: overlays-undecodable-code
            raise Rejected(OVERLAY_UNDECODABLE, f"The image {image_id}, an overlay of this one: {refusal}") from refusal
        pictures[image_id] = OverlayPicture(picture.image, size)
    return pictures


def _asks_for_attention(specs: Iterable[VariantSpec]) -> bool:
    return any(spec.gravity == ATTENTION for spec in specs)


def _attending(job: _Job, point: FocalPoint, size: tuple[int, int]) -> _Job:
    """The job with the point that was found, if it crops by attention: only the place of its crop changes."""
    spec, _ = job
    return job if spec.gravity != ATTENTION else (spec, place(spec.model_copy(update={"gravity": point}), *size))


def _turned(size: tuple[int, int], turned: bool) -> tuple[int, int]:
    return (size[1], size[0]) if turned else size


def _flattened(image: pyvips.Image, spec: VariantSpec) -> pyvips.Image:
    if not image.hasalpha():
        return image
    red, green, blue, _ = colour_of("#ffffff" if spec.background == EDGE else spec.background)
    if image.bands == 2 and not red == green == blue:
        image = image.colourspace("srgb")
    return image.flatten(background=[red, green, blue] if image.bands > 2 else [red])


def _qualities(spec: VariantSpec, image: pyvips.Image, share: float) -> dict[OutputFormat, float]:
    """The formats in which a still is encoded, and the quality of each."""
    if spec.format == "best":
        equal = equal_qualities(spec.quality or DEFAULT_QUALITY["jpeg"], is_transparent=image.hasalpha())
        return {name: _sharpened(quality, name, share) for name, quality in equal.items()}
    of_auto: OutputFormat = "png" if image.hasalpha() else "jpeg"
    file_format = of_auto if spec.format == "auto" else cast("OutputFormat", spec.format)  # one of `_made`
    return {file_format: _sharpened(_quality(spec, file_format), file_format, share)}


def _quality(spec: VariantSpec, file_format: OutputFormat) -> int:
    return spec.quality or DEFAULT_QUALITY.get(file_format, 0)


def _sharpened(quality: int, file_format: OutputFormat, share: float) -> float:
    raised = quality + quality_steps(file_format, share)
    # A step that also doubles the resolution of a JPEG's colours makes a file three quarters larger.
    # guard: shrinking-colour-sampling
    if quality >= 95 or (file_format == "jpeg" and quality <= HIGHEST_COMPARED < raised):
        return quality
    return raised


def _encoded(
    image: pyvips.Image,
    qualities: Mapping[OutputFormat, float],
    *,
    effort: Effort,
    ceiling_bytes: int | None,
    carriers: Carriers | None,
) -> Encoded:
    """The file in that format, or the smallest of several; only the smallest is made to fit under the ceiling."""
    encoded = partial(encode_under, image, effort=effort, carriers=carriers)
    if len(qualities) > 1:
        files = [encoded(name, quality=quality, ceiling_bytes=None) for name, quality in qualities.items()]
        # guard: best-smallest-file
        smallest = min(files, key=lambda file: len(file.body))  # the first of equals
        if ceiling_bytes is None or len(smallest.body) <= ceiling_bytes:  # guard: best-smallest-under-ceiling
            return smallest
        qualities = {smallest.format: qualities[smallest.format]}
    ((file_format, quality),) = qualities.items()
    return encoded(file_format, quality=quality, ceiling_bytes=ceiling_bytes)


def _placeholder(image: pyvips.Image) -> Placeholder:
    scale = min(1.0, PLACEHOLDER_SIDE / max(image.width, image.height))
    size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    # Pillow takes a fifth of libvips's time for a small picture, but it would unpack all of a large one.
    if (times := max(image.width, image.height) // _COARSE_SIDE) > 1:
        image = image.shrink(times, times)  # guard: engine-placeholder-without-copy
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
