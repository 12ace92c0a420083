"""Edits a whole picture before it is scaled: hides regions, crops it, turns and mirrors it, and trims its border.

What is hidden is hidden at the resolution of the file, before anything else is calculated: what follows, the trim and
the placeholder included, never sees it. The picture is decoded anew for each step, unless it is small, because
decoding as the pixels are read takes less memory than the picture itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from math import ceil, floor
from typing import NamedTuple

import pyvips

from darkroom.domain.recipes.recipes import Crop, FocalPoint, Recipe, Region, VariantSpec
from darkroom.imaging.alpha import premultiplied, unpremultiplied
from darkroom.imaging.decode import Original
from darkroom.imaging.scaling.resize import scaled

_HELD_BYTES = 64_000_000
"""A picture of at most this many bytes is decoded once, and kept for all steps: 21 megapixels of RGB."""

_MOST_CELLS, _LEAST_CELL = 8, 8  # guard: edits-cell-size-bounds
"""A hidden region keeps at most so many mean colours along its longer side, each of at least so many pixels a side: the
mean of a single pixel would be the pixel. So a region that is smaller is widened to one cell."""

_REACH = 4
"""How far, in pixels, a file with fewer samples of colour than of light may carry a colour: JPEG's samples cover up to
four pixels (ITU-T T.81, A.1.1), and of those that cover two, libjpeg and libwebp give a quarter to the next pixel."""

_TURNS = {
    1: (0, False),
    2: (0, True),
    3: (2, False),
    4: (2, True),
    5: (1, True),
    6: (1, False),
    7: (3, True),
    8: (3, False),
}
"""EXIF's orientations as quarter turns clockwise, and whether the picture is then mirrored left to right."""

_ORIENTATIONS = {turn: orientation for orientation, turn in _TURNS.items()}


class Box(NamedTuple):
    """A part of a picture in pixels: its corner, and its size."""

    left: int
    top: int
    width: int
    height: int


class Edited(NamedTuple):
    """The original with edits made, and the recipe with what remains to be done; `before` tells where a point of the
    edited picture was in the upright picture before, each in fractions of the sides. `box` is what a crop and a trim
    left."""

    source: Original
    recipe: Recipe
    before: Callable[[FocalPoint], FocalPoint]
    box: Box


def edited(source: Original, recipe: Recipe, *, max_aspect: int, box: Box | None = None) -> Edited:
    """The original with the recipe's edits made.

    The focal points of what remains are where these edits move them. Only turning and mirroring leave the decoder free
    to shrink the picture, as they cost nothing. A cropped or trimmed picture's longer side is at most `max_aspect`
    times its shorter one: some of the border stays if it must; `box` is what to leave instead, as for all frames of an
    animation. Raises Rejected if the file cannot be decoded.
    """
    orientation = turned(source.orientation, recipe.rotate, recipe.flip)
    if not recipe.regions and recipe.crop is None and recipe.trim is None:
        everything = Box(0, 0, source.width, source.height)
        return _Moves(everything, everything, source.orientation, orientation).applied(source, recipe)
    # A WebP that is too large to be decoded whole is decoded at a half.
    shrink = source.shrink_for((max(1, source.width // 2), max(1, source.height // 2)))
    if source.allowance_bytes is not None:
        source = replace(source, allowance_bytes=source.allowance_bytes + _HELD_BYTES)
    with source.decoding():
        opened = _opened_again(source, shrink)
        if recipe.regions:
            opened = _hidden(opened, recipe.regions, source)  # guard: edits-regions-hidden-everywhere
        picture = opened()
        everything = Box(0, 0, picture.width, picture.height)
        del picture
        if recipe.crop is None and recipe.trim is None:
            box = everything
        elif box is None:
            box = everything if recipe.crop is None else _crop_box(recipe.crop, source, everything, max_aspect)
            if recipe.trim is not None:
                kept = box
                left = _trimmed(lambda: opened().crop(*kept), recipe.trim, orientation, max_aspect)
                box = Box(kept.left + left.left, kept.top + left.top, left.width, left.height)
    cropped = replace(
        source,
        width=box.width,
        height=box.height,
        opened=lambda _: opened().crop(*box),
        shrink_for=lambda _: 1,
        drops_rest=False,
    )
    return _Moves(everything, box, source.orientation, orientation).applied(cropped, recipe)


class _Moves(NamedTuple):
    """Where points of the picture are when only `box` of `everything` is left, as stored, and turned from the one
    orientation to the other."""

    everything: Box
    box: Box
    before: int
    after: int

    def applied(self, source: Original, recipe: Recipe) -> Edited:
        """The edits, with `source` as it is stored after them."""
        if self.box == self.everything and self.before == self.after:
            return Edited(source, recipe, lambda point: point, self.box)
        moved = recipe.model_copy(update={"variants": tuple(map(self._spec, recipe.variants))})
        # guard: edits-focal-point-moved
        return Edited(replace(source, orientation=self.after), moved, self._back, self.box)

    def _spec(self, spec: VariantSpec) -> VariantSpec:
        if spec.fit != "cover" or not isinstance(spec.gravity, FocalPoint):
            return spec
        x, y = _as_stored(spec.gravity.x, spec.gravity.y, self.before)
        x = (x * self.everything.width - self.box.left) / self.box.width
        y = (y * self.everything.height - self.box.top) / self.box.height
        return spec.model_copy(update={"gravity": _upright(x, y, self.after)})

    def _back(self, point: FocalPoint) -> FocalPoint:
        x, y = _as_stored(point.x, point.y, self.after)
        x = (x * self.box.width + self.box.left) / self.everything.width
        y = (y * self.box.height + self.box.top) / self.everything.height
        return _upright(x, y, self.before)


def _upright(x: float, y: float, orientation: int) -> FocalPoint:
    """A point of the picture as it is stored, or the nearest one in it, in the upright picture."""
    x, y = min(max(x, 0.0), 1.0), min(max(y, 0.0), 1.0)
    turns, mirrored = _TURNS.get(orientation, _TURNS[1])
    for _ in range(turns):
        x, y = 1 - y, x
    return FocalPoint(x=1 - x if mirrored else x, y=y)


def _as_stored(x: float, y: float, orientation: int) -> tuple[float, float]:
    """A point of the upright picture in the picture as it is stored, in fractions of its sides."""
    turns, mirrored = _TURNS.get(orientation, _TURNS[1])
    x = 1 - x if mirrored else x
    for _ in range(turns):
        x, y = y, 1 - x
    return x, y


def turned(orientation: int, rotate: int, flip: str | None) -> int:
    """The orientation of a picture that is then turned clockwise by `rotate` degrees and mirrored."""
    turns, mirrored = _TURNS.get(orientation, _TURNS[1])
    turns += -rotate // 90 if mirrored else rotate // 90
    if flip in ("vertical", "both"):  # from top to bottom: half a turn, and from left to right
        turns += 2
    return _ORIENTATIONS[turns % 4, mirrored != (flip in ("horizontal", "vertical"))]


def _opened_again(source: Original, shrink: int) -> Callable[[], pyvips.Image]:
    """Opens the picture as often as it is called; each time its pixels can be read once, from the top."""
    first = source.opened(shrink)
    if first.get_typeof("vips-sequential"):  # not in memory as it is
        bytes_per_band = 2 if first.format == "ushort" else 1
        if first.width * first.height * first.bands * bytes_per_band > _HELD_BYTES:
            return lambda: source.opened(shrink)
        first = first.copy_memory()
    return lambda: first


# ── Regions ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _hidden(
    opened: Callable[[], pyvips.Image], regions: Sequence[Region], source: Original
) -> Callable[[], pyvips.Image]:
    """Opens the picture with something else in the place of each region."""
    picture = opened()
    boxes = [(region, box_of(region, source, (picture.width, picture.height))) for region in regions]
    # No mean is of anything that is filled, whichever region comes first.
    fills = [(box, _black(picture, box)) for region, box in boxes if region.effect == "fill"]
    reduced = [(region, box) for region, box in boxes if region.effect != "fill"]
    means = _means(_covered(picture, fills), [box for _, box in reduced])  # guard: edits-mean-without-fills
    del picture
    patches = [
        (box, (_squares if region.effect == "pixelate" else _smooth)(mean, box))
        for (region, box), mean in zip(reduced, means, strict=True)
    ]
    covers = [*patches, *fills]
    return lambda: _covered(opened(), covers)


def _crop_box(crop: Crop, source: Original, decoded: Box, max_aspect: int) -> Box:
    """What a crop leaves of the decoded picture, as stored."""
    left, top, right, bottom = _as_stored_box(crop, source)
    across = _scaled_outwards(left, right, source.width, decoded.width)
    down = _scaled_outwards(top, bottom, source.height, decoded.height)
    return _no_longer_than(max_aspect, across, down, decoded.width, decoded.height)


def _as_stored_box(part: Crop | Region, source: Original) -> tuple[int, int, int, int]:
    """The left, top, right and bottom of a part of the upright picture, rounded outwards, in the picture as it is
    stored."""
    turns, mirrored = _TURNS.get(source.orientation, _TURNS[1])
    width, height = (source.height, source.width) if turns % 2 else (source.width, source.height)
    left, right = _rounded_outwards(part.x, part.width, width)
    top, bottom = _rounded_outwards(part.y, part.height, height)
    if mirrored:
        left, right = width - right, width - left
    for _ in range(turns):  # back, counter-clockwise
        left, top, right, bottom = top, width - right, bottom, width - left
        width, height = height, width
    return left, top, right, bottom


def box_of(region: Region, source: Original, decoded: tuple[int, int]) -> Box:
    """The region of the decoded picture, as stored: rounded outwards to whole pixels, by as much further as the file
    carries colours, and to a whole cell if it is not filled."""
    left, top, right, bottom = _as_stored_box(region, source)
    reach = _REACH if source.mixes_neighbours else 0  # guard: edits-region-chroma-reach
    left, right = _scaled_outwards(left - reach, right + reach, source.width, decoded[0])
    top, bottom = _scaled_outwards(top - reach, bottom + reach, source.height, decoded[1])
    if region.effect != "fill":  # guard: edits-small-region-widened
        left, right = _widened(left, right, least=min(_LEAST_CELL, decoded[0]), most=decoded[0])
        top, bottom = _widened(top, bottom, least=min(_LEAST_CELL, decoded[1]), most=decoded[1])
    return Box(left, top, right - left, bottom - top)


_ROUNDING = 1e-6
"""The most of a pixel that a fraction may be beside it by its own rounding: 0.1 + 0.2 is more than 0.3."""


def _rounded_outwards(start: float, length: float, pixels: int) -> tuple[int, int]:
    first = min(floor(start * pixels + _ROUNDING), pixels - 1)
    # guard: edits-region-rounded-outwards
    return first, min(max(ceil((start + length) * pixels - _ROUNDING), first + 1), pixels)


def _scaled_outwards(first: int, end: int, pixels: int, wanted: int) -> tuple[int, int]:
    return max(0, first * wanted // pixels), min(wanted, -(-end * wanted // pixels))


def _black(picture: pyvips.Image, box: Box) -> pyvips.Image:
    most = 65535 if picture.format == "ushort" else 255
    black = [0] * picture.bands
    if picture.interpretation == "cmyk" or picture.hasalpha():
        black[-1] = most
    plain = pyvips.Image.black(box.width, box.height, bands=picture.bands) + black
    return plain.cast(picture.format).copy(interpretation=picture.interpretation)


def _covered(picture: pyvips.Image, covers: Iterable[tuple[Box, pyvips.Image]]) -> pyvips.Image:
    for box, cover in covers:
        picture = picture.insert(cover, box.left, box.top)
    return picture


def _means(picture: pyvips.Image, boxes: Sequence[Box]) -> list[pyvips.Image]:
    """The mean colours of each region's cells, with alpha premultiplied: all in one reading of the picture.

    Side by side, the regions' rows are read as the picture's are: so they are first reduced across, and then down.
    """
    if not boxes:
        return []
    # Whole numbers are summed four times as fast as others; of eight bits, eight more are kept.
    more_bits = 0 if picture.format == "ushort" else 8
    weighted = premultiplied(picture).cast("int") << more_bits
    rows = [
        _reduced_across(weighted.crop(*box), _cells(box)[0]).embed(0, box.top, _cells(box)[0], picture.height)
        for box in boxes
    ]
    starts = [0]
    for part in rows:
        starts.append(starts[-1] + part.width)
    joined = reduce(lambda strip, part: strip.join(part, "horizontal"), rows).copy_memory()
    means = []
    for box, (start, end) in zip(boxes, pairwise(starts), strict=True):
        # Turned, what remains to be reduced is across again.
        part = joined.crop(start, box.top, end - start, box.height).rot270()
        mean = _reduced_across(part.cast("float"), _cells(box)[1]).rot90() / 2**more_bits
        means.append(mean.rint().cast(picture.format).copy(interpretation=picture.interpretation).copy_memory())
    return means


def _cells(box: Box) -> tuple[int, int]:
    """How many cells a region has, across and down."""
    side = max(_LEAST_CELL, -(-max(box.width, box.height) // _MOST_CELLS))
    return max(1, box.width // side), max(1, box.height // side)


def _parts(pixels: int, cells: int) -> list[tuple[int, int]]:
    """Divides a row of pixels into that many cells of nearly the same length: how many there are of each length."""
    length, longer = divmod(pixels, cells)
    return [(count, side) for count, side in ((cells - longer, length), (longer, length + 1)) if count]


def _reduced_across(image: pyvips.Image, cells: int) -> pyvips.Image:
    left, reduced = 0, []
    for count, side in _parts(image.width, cells):
        reduced.append(image.crop(left, 0, count * side, image.height).shrinkh(side))
        left += count * side
    return reduce(lambda strip, part: strip.join(part, "horizontal"), reduced)


def _squares(mean: pyvips.Image, box: Box) -> pyvips.Image:
    """Each cell's colour in all of its pixels."""
    plain = unpremultiplied(mean).copy_memory()
    top, rows = 0, []
    for down, height in _parts(box.height, mean.height):
        left, row = 0, []
        for across, width in _parts(box.width, mean.width):
            row.append(plain.crop(left, top, across, down).zoom(width, height))
            left += across
        rows.append(reduce(lambda strip, part: strip.join(part, "horizontal"), row))
        top += down
    return reduce(lambda upper, lower: upper.join(lower, "vertical"), rows)


def _smooth(mean: pyvips.Image, box: Box) -> pyvips.Image:
    """From each cell's colour to the next without a step.

    It is enlarged twice, because the first time, which weighs alpha, is then done in memory: sixteen regions over one
    another would take hundreds of megabytes for it as they are read.
    """
    size = min(box.width, mean.width * _FIRST_TIMES), min(box.height, mean.height * _FIRST_TIMES)
    return scaled(unpremultiplied(scaled(mean, *size)).copy_memory(), box.width, box.height)


_FIRST_TIMES = 16


# ── Trim ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _trimmed(opened: Callable[[], pyvips.Image], tolerance: int, orientation: int, max_aspect: int) -> Box:
    """The picture, as stored, without its border; all of it if it is nothing but border."""
    picture = premultiplied(opened())  # what is transparent is one colour, also if there are others under it
    width, height = picture.width, picture.height
    corner = picture.getpoint(*_top_left(width, height, orientation))
    del picture  # and with it the decoder
    picture = premultiplied(opened())  # guard: edits-trim-transparent-border
    levels = tolerance * (257 if picture.format == "ushort" else 1)
    columns, rows = ((picture - corner).abs() > levels).bandor().project()
    across, down = _extent(columns), _extent(rows)
    if across is None or down is None:  # guard: edits-trim-never-empty
        return Box(0, 0, width, height)
    return _no_longer_than(max_aspect, across, down, width, height)


def _no_longer_than(max_aspect: int, across: tuple[int, int], down: tuple[int, int], width: int, height: int) -> Box:
    """A part of a picture of that size, widened so that its longer side is at most so many times its shorter one."""
    left, right = _widened(*across, least=-(-(down[1] - down[0]) // max_aspect), most=width)
    top, bottom = _widened(*down, least=-(-(right - left) // max_aspect), most=height)  # guard: edits-trim-aspect-bound
    return Box(left, top, right - left, bottom - top)


def _top_left(width: int, height: int, orientation: int) -> tuple[int, int]:
    """The pixel of the stored picture that is in the top left corner when it is upright."""
    return (width - 1 if orientation in (2, 3, 7, 8) else 0), (height - 1 if orientation in (3, 4, 6, 7) else 0)


def _extent(sums: pyvips.Image) -> tuple[int, int] | None:
    """The first of a row's numbers that is not zero, and the one after the last."""
    filled = [at for at, total in enumerate(memoryview(sums.write_to_memory()).cast("I")) if total]
    return (filled[0], filled[-1] + 1) if filled else None


def _widened(first: int, end: int, *, least: int, most: int) -> tuple[int, int]:
    """At least `least` of `most` pixels, as evenly around what there is as possible."""
    missing = max(0, least - (end - first))
    first = min(max(0, first - missing // 2), most - max(least, end - first))
    return first, max(end, first + least)
