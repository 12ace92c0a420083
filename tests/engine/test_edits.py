"""Edits of a whole picture and of a variant, held against formulas in numpy."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import pyvips
from PIL import Image

from darkroom.domain.images.limits import Limits
from darkroom.domain.recipes.recipes import Recipe, Region
from darkroom.imaging import Developed, develop, edits
from darkroom.imaging.decode import open_original
from darkroom.imaging.edits import Box, box_of, turned
from darkroom.imaging.headers import webp
from darkroom.imaging.scaling.filters import gaussian_mask
from tests.engine.arrays import Array, file, noise
from tests.engine.golden import png_files

WHOLE = {"name": "one", "width": 8192, "height": 8192, "format": "png"}


def developed(body: bytes, *variants: dict[str, Any], **recipe: Any) -> Developed:
    written = {"variants": [WHOLE | spec for spec in variants or ({},)], **recipe}
    limits = Limits(input_formats=frozenset({"jpeg", "png", "webp", "gif", "avif"}))
    return develop(body, Recipe.model_validate(written), limits=limits)


def pixels(body: bytes, variant: dict[str, Any] | None = None, **recipe: Any) -> Array:
    """The one variant, as a PNG of the picture's own size unless it says otherwise."""
    (made,) = developed(body, variant or {}, **recipe).variants
    return np.asarray(Image.open(io.BytesIO(made.body)))


# ── Turning and mirroring ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize("flip", [None, "horizontal", "vertical", "both"])
@pytest.mark.parametrize("orientation", [1, 5, 6])
def test_a_picture_is_turned_clockwise_and_then_mirrored_after_its_own_orientation(
    rotate: int, flip: str | None, orientation: int
) -> None:
    samples = noise(7, 4)
    exif = Image.Exif()
    exif[0x0112] = orientation
    upright = {1: samples, 5: samples.swapaxes(0, 1), 6: np.rot90(samples, -1)}[orientation]
    expected = np.rot90(upright, -rotate // 90)
    expected = expected[:, ::-1] if flip in ("horizontal", "both") else expected
    expected = expected[::-1] if flip in ("vertical", "both") else expected
    assert np.array_equal(pixels(file(samples, exif=exif), rotate=rotate, flip=flip), expected)


def test_an_orientation_that_is_none_is_turned_as_an_upright_one() -> None:
    assert [turned(orientation, 90, None) for orientation in (0, 1, 9)] == [6, 6, 6]


def test_a_turned_photo_is_scaled_and_cropped_as_one_that_was_stored_turned() -> None:
    samples = noise(300, 200)
    cover = {"width": 50, "height": 80, "fit": "cover", "gravity": "north"}
    assert (
        np.abs(
            pixels(file(samples), cover, rotate=270).astype(int) - pixels(file(np.rot90(samples).copy()), cover)
        ).max()
        <= 1
    )


# ── Trim ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def bordered(border: Any, content: Any, *, channels: int = 3, dtype: Any = np.uint8) -> Array:
    """A border of 5 pixels on the left, 3 above, 2 on the right and 4 below around content of 30 by 20."""
    samples = np.empty((27, 37, channels), dtype=dtype)
    samples[:] = border
    samples[3:23, 5:35] = content
    return samples


@pytest.mark.parametrize(("difference", "is_border"), [(12, True), (13, False)])
def test_what_differs_by_the_tolerance_is_border_and_what_differs_by_more_is_not(
    difference: int, is_border: bool
) -> None:
    samples = bordered(100, 200)
    samples[1, 9] = 100 - difference
    trimmed = pixels(file(samples), trim=12)
    assert np.array_equal(trimmed, samples[3:23, 5:35] if is_border else samples[1:23, 5:35])


@pytest.mark.guards("edits-trim-never-empty")
def test_a_single_pixel_is_kept_and_nothing_but_border_is_kept_whole() -> None:
    samples = bordered(40, 40)
    assert pixels(file(samples), trim=0).shape == samples.shape
    samples[26, 36] = 41
    assert pixels(file(samples), trim=0).tolist() == [[[41, 41, 41]]]


@pytest.mark.parametrize(("rotate", "flip"), [(90, None), (180, None), (270, "horizontal"), (0, "vertical")])
def test_the_top_left_pixel_of_the_turned_picture_says_what_the_border_is(rotate: int, flip: str | None) -> None:
    samples = bordered(100, noise(30, 20))
    samples[:, -1] = samples[0] = 0  # two sides differ, and meet in the upper right corner
    turned = np.rot90(samples, -rotate // 90)
    turned = {None: turned, "horizontal": turned[:, ::-1], "vertical": turned[::-1]}[flip]
    rows, columns = np.nonzero((turned != turned[0, 0]).any(axis=2))
    expected = turned[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    assert np.array_equal(pixels(file(samples), trim=0, rotate=rotate, flip=flip), expected)


@pytest.mark.guards("edits-trim-transparent-border")
def test_what_is_transparent_is_one_border_whatever_is_under_it() -> None:
    samples = bordered(0, 0, channels=4)
    samples[..., :3] = noise(37, 27)
    samples[3:23, 5:35] = (0, 0, 0, 255)
    assert pixels(file(samples), trim=0).shape[:2] == (20, 30)


def test_sixteen_bits_a_palette_and_a_grey_jpeg_are_trimmed_by_the_same_levels() -> None:
    deep = bordered(100 * 257, 200 * 257, dtype=np.uint16)
    deep[1, 9] = 112 * 257
    assert pixels(png_files.png(deep, png_files.RGB, depth=16), trim=12).shape == (20, 30, 3)
    assert pixels(png_files.png(deep, png_files.RGB, depth=16), trim=11).shape == (22, 30, 3)
    plain = bordered(100, 200, channels=1)
    assert pixels(file(plain, "GIF"), trim=12).shape[:2] == (20, 30)
    grey = np.full((64, 64, 1), 20, np.uint8)
    grey[16:48, 8:40] = 200  # whole blocks
    assert pixels(file(grey, "JPEG", quality=95), trim=12).shape[:2] == (32, 32)


@pytest.mark.guards("edits-trim-aspect-bound")
def test_a_trimmed_picture_is_no_longer_than_an_original_may_be() -> None:
    samples = np.zeros((9, 1000, 3), np.uint8)
    samples[8] = 255  # a line, of which five rows make a picture that is accepted
    assert pixels(file(samples), trim=0).shape == (5, 1000, 3)
    assert pixels(file(samples.swapaxes(0, 1).copy()), trim=0).shape == (1000, 5, 3)


@pytest.mark.parametrize(("rotate", "orientation"), [(0, 1), (90, 1), (0, 6), (270, 7)])
@pytest.mark.parametrize("trim", [None, 0])
def test_a_crop_is_of_the_upright_picture_and_a_trim_of_what_it_leaves(
    rotate: int, orientation: int, trim: int | None
) -> None:
    upright = noise(60, 40)
    upright[10:12, 15:] = upright[10, 15]  # the first rows of the crop: a trim cuts them off
    stored = {1: upright, 6: np.rot90(upright), 7: np.rot90(upright, 2).swapaxes(0, 1)}[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    crop = {"x": 0.25, "y": 0.25, "width": 0.75, "height": 0.5}
    shown = pixels(file(stored.copy(), exif=exif), crop=crop, rotate=rotate, trim=trim if rotate == 0 else None)
    left = upright[10:30, 15:] if trim is None or rotate else upright[12:30, 15:]
    assert np.array_equal(shown, np.rot90(left, -rotate // 90))


@pytest.mark.guards("edits-trim-aspect-bound")
def test_a_crop_is_rounded_outwards_and_no_longer_than_an_original_may_be() -> None:
    samples = noise(1000, 9)
    assert pixels(file(samples), crop={"x": 0.0011, "y": 0.0, "width": 0.0011, "height": 1.0}).shape[:2] == (9, 2)
    assert pixels(file(samples), crop={"x": 0.0, "y": 0.5, "width": 1.0, "height": 0.001}).shape[:2] == (5, 1000)


# ── Regions ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def region(x: float, y: float, width: float, height: float, effect: str = "pixelate") -> dict[str, Any]:
    return {"x": x, "y": y, "width": width, "height": height, "effect": effect}


def cell_means(samples: Array, down: int, across: int) -> Array:
    """Every pixel in the mean colour of its cell, the cells being of nearly equal sizes, the shorter ones first."""

    def edges(length: int, count: int) -> list[int]:
        side, longer = divmod(length, count)
        return np.cumsum([0] + [side] * (count - longer) + [side + 1] * longer).tolist()

    means = np.empty(samples.shape)
    rows, columns = edges(samples.shape[0], down), edges(samples.shape[1], across)
    for top, bottom in pairwise(rows):
        for left, right in pairwise(columns):
            means[top:bottom, left:right] = samples[top:bottom, left:right].mean(axis=(0, 1))
    return means


def test_a_pixelated_region_is_the_means_of_its_cells_and_nothing_else_changes() -> None:
    samples = noise(200, 150)
    edited = pixels(file(samples), regions=[region(0.1, 0.2, 0.505, 0.4)])
    expected = samples.astype(float)
    expected[30:90, 20:121] = cell_means(samples[30:90, 20:121], 60 // 13, 101 // 13)
    assert np.abs(edited - expected).max() <= 0.51


@pytest.mark.guards("edits-regions-hidden-everywhere")
@pytest.mark.parametrize("effect", ["pixelate", "blur", "fill"])
@pytest.mark.parametrize("trim", [None, 20])
def test_no_output_shows_what_a_region_hides(effect: str, trim: int | None) -> None:
    # The hidden parts differ as much as they can, and have the same mean in each cell: 12 by 12 pixels.
    stripes, checks = np.zeros((96, 96, 3), np.uint8), np.zeros((96, 96, 3), np.uint8)
    stripes[:, ::2] = checks[::2] = 255
    outputs = []
    for hidden in (stripes, checks):
        samples = noise(320, 200, seed=2) // 8
        samples[:96, :96] = hidden  # at the corner, which says what a trim takes for border
        variants: list[dict[str, Any]] = [
            {"name": "small", "width": 23},
            {"name": "cover", "width": 61, "height": 40, "fit": "cover", "gravity": "northwest", "sharpen": 2},
            {"name": "edge", "width": 90, "height": 90, "fit": "contain", "background": "edge", "format": "webp"},
            {"name": "whole"},
        ]
        outputs.append(developed(file(samples), *variants, regions=[region(0, 0, 0.3, 0.48, effect)], trim=trim))
    is_same = outputs[0] == outputs[1]  # the placeholder too
    assert is_same, "their difference is not shown: comparing so many bytes would take minutes"


@pytest.mark.guards("edits-cell-size-bounds")
def test_a_small_region_is_one_colour() -> None:
    samples = noise(60, 40)
    edited = pixels(file(samples), regions=[region(0.5, 0.5, 0.25, 0.25)])
    assert np.abs(edited[20:30, 30:45] - samples[20:30, 30:45].mean(axis=(0, 1))).max() <= 0.51


@pytest.mark.guards("edits-small-region-widened")
@pytest.mark.parametrize("effect", ["pixelate", "blur"])
@pytest.mark.parametrize(
    ("hidden", "rows", "columns"),
    [
        ((0.5, 0.5, 0.01, 0.01), slice(47, 55), slice(47, 55)),  # one pixel
        ((0, 0.98, 0.01, 0.02), slice(92, 100), slice(0, 8)),  # in a corner
        ((0.5, 0, 0.04, 1), slice(0, 100), slice(48, 56)),  # a narrow strip
    ],
)
def test_a_region_of_few_pixels_is_widened_to_what_hides_them(
    hidden: tuple[float, float, float, float], rows: slice, columns: slice, effect: str
) -> None:
    samples = noise(100, 100)
    edited = pixels(file(samples), regions=[region(*hidden, effect)])
    part = samples[rows, columns]
    assert (edited[rows, columns] == edited[rows, columns][:, :1]).all()
    if effect == "pixelate" or len(part) == 8:  # a strip that is blurred goes smoothly from cell to cell
        assert np.abs(edited[rows, columns] - cell_means(part, max(1, len(part) // 13), 1)).max() <= 0.51
    outside = np.ones((100, 100), bool)
    outside[rows, columns] = False
    assert np.array_equal(edited[outside], samples[outside])


def test_a_picture_smaller_than_a_cell_is_one_colour() -> None:
    samples = noise(5, 30)
    edited = pixels(file(samples), regions=[region(0.5, 0.5, 0.01, 0.01)])
    assert np.abs(edited[12:20] - samples[12:20].mean(axis=(0, 1))).max() <= 0.51


def test_a_blurred_region_is_smooth_and_shows_no_more_than_its_cells_means() -> None:
    samples = noise(160, 160)
    samples[:80] //= 2
    edited = pixels(file(samples), regions=[region(0, 0, 1, 1, "blur")]).astype(float)
    means = cell_means(samples, 8, 8)
    middles = slice(10, 160, 20)
    assert np.abs(edited[middles, middles] - means[middles, middles]).max() <= 3
    assert max(np.abs(np.diff(edited, axis=axis)).max() for axis in (0, 1)) < 8  # of 64 levels between two cells


@pytest.mark.guards("edits-mean-without-fills")
def test_what_is_filled_is_in_no_other_regions_means_whichever_comes_first() -> None:
    everything, part = region(0, 0, 1, 1), region(0.3, 0.3, 0.2, 0.2, "fill")
    first, second = noise(64, 64), noise(64, 64)
    second[20:31, 20:31] = 255 - second[20:31, 20:31]
    edited = [
        pixels(file(body), regions=order)
        for body in (first, second)
        for order in ([everything, part], [part, everything])
    ]
    assert all(np.array_equal(edited[0], another) for another in edited[1:])
    assert (edited[0][19:32, 19:32] == 0).all()


@pytest.mark.guards("edits-region-rounded-outwards")
def test_a_region_is_rounded_outwards_as_the_picture_is_upright_and_kept_within_it() -> None:
    def box(orientation: int, *sides: float, effect: str = "blur") -> Box:
        exif = Image.Exif()
        exif[0x0112] = orientation
        source = open_original(file(noise(100, 40), exif=exif), Limits())
        x, y, width, height = sides
        return box_of(Region.model_validate(region(x, y, width, height, effect)), source, (100, 40))

    assert box(1, 0.101, 0.1, 0.2, 0.26) == (10, 4, 21, 11)
    assert box(1, 0.1, 0.1, 0.2, 0.2) == (10, 4, 20, 8)  # 0.1 + 0.2 is more than 0.3, and yet 30 pixels
    assert box(1, 0.999999999, 0.5, 1, 1) == (92, 20, 8, 20)
    assert box(1, 0.999999999, 0.5, 1, 1, effect="fill") == (99, 20, 1, 20)
    assert box(3, 0.1, 0.1, 0.2, 0.2) == (70, 28, 20, 8)
    assert box(2, 0.1, 0.1, 0.2, 0.2) == (70, 4, 20, 8)
    # Upright, these are 40 wide and 100 high.
    assert box(6, 0.1, 0.1, 0.2, 0.3) == (10, 28, 30, 8)
    assert box(8, 0.1, 0.1, 0.2, 0.3) == (60, 4, 30, 8)
    assert box(5, 0.1, 0.1, 0.2, 0.3) == (10, 4, 30, 8)


@pytest.mark.guards("edits-region-chroma-reach")
def test_a_photo_whose_neighbours_share_colours_hides_the_next_four_pixels_too() -> None:
    # With halved chroma, the decoder gives a pixel beside the region a quarter of the colour that is within.
    outputs = []
    for colour in ((255, 0, 0), (0, 0, 255)):
        samples = np.full((64, 64, 3), 90, np.uint8)
        samples[16:48, 16:48] = colour
        body = file(samples, "JPEG", quality=100, subsampling=2)
        outputs.append(pixels(body, regions=[region(0.25, 0.25, 0.5, 0.5, "fill")]))
    assert np.array_equal(outputs[0], outputs[1])
    assert outputs[0][13, 30].max() == 0 and outputs[0][11, 30].max() > 0


def test_a_webp_that_is_halved_to_fit_into_memory_is_edited_at_that_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webp, "_WHOLE_PIXELS", 1000)
    samples = np.full((64, 96, 3), 255, np.uint8)
    edited = pixels(file(samples, "WEBP", lossless=True), regions=[region(0.25, 0.25, 0.5, 0.5, "fill")], rotate=90)
    assert edited.shape == (48, 32, 3)
    assert edited[10:38, 6:26].max() == 0 and edited[[0, -1]].min() == 255  # four pixels more are two here


def test_transparent_pixels_have_no_share_in_a_cells_colour() -> None:
    samples = np.zeros((32, 32, 4), np.uint8)
    samples[::2] = (200, 100, 50, 255)
    samples[1::2] = (0, 255, 0, 0)
    edited = pixels(file(samples), regions=[region(0, 0, 1, 1)])
    assert np.abs(edited.astype(int) - (200, 100, 50, 128)).max() <= 1


def test_large_pictures_which_are_decoded_once_for_each_step_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = bordered(30, noise(30, 20))
    recipe = {"regions": [region(0.1, 0.3, 0.5, 0.4), region(0.6, 0.1, 0.3, 0.8, "blur")], "trim": 9, "rotate": 90}
    bodies = [file(samples), file(samples, "WEBP", lossless=True), file(samples, "JPEG"), file(samples, "AVIF")]
    held = [developed(body, {}, {"name": "two", "width": 9}, **recipe) for body in bodies]
    monkeypatch.setattr(edits, "_HELD_BYTES", 0)
    assert [developed(body, {}, {"name": "two", "width": 9}, **recipe) for body in bodies] == held


@pytest.mark.guards("edits-focal-point-moved")
@pytest.mark.parametrize("orientation", [1, 7])
@pytest.mark.parametrize(("rotate", "flip"), [(0, None), (90, None), (270, "vertical")])
@pytest.mark.parametrize("trim", [None, 0])
def test_a_crop_keeps_the_point_of_the_picture_wherever_edits_move_it(
    orientation: int, rotate: int, flip: str | None, trim: int | None
) -> None:
    upright = np.zeros((80, 120, 3), np.uint8)
    upright[10:70, 30:115] = 100
    upright[20:30, 90:100] = 255  # its middle is at 95 of 120 and 25 of 80
    stored = {1: upright, 7: np.rot90(upright, 2).swapaxes(0, 1)}[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    cover = {"width": 30, "height": 30, "fit": "cover"}
    at_point = {"gravity": {"x": 95 / 120, "y": 25 / 80}}
    placed = pixels(file(stored.copy(), exif=exif), cover | at_point, rotate=rotate, flip=flip, trim=trim)
    left = upright if trim is None else upright[10:70, 30:115]
    edited = np.rot90(left, -rotate // 90)[:: -1 if flip else 1]
    y, x = np.argwhere(edited[..., 0] == 255).mean(axis=0) + 0.5
    here = {"gravity": {"x": x / edited.shape[1], "y": y / edited.shape[0]}}
    assert np.abs(placed.astype(int) - pixels(file(edited.copy()), cover | here)).max() <= 12
    assert placed.max() > 200


# ── Sharpening, blurring and the colour of the edge ──────────────────────────────────────────────────────────────────


def gaussian(samples: Array, sigma: float) -> Array:
    """Blurred in floating point; the outermost pixels go on."""
    reach = round(4 * sigma) + 1
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    weights /= weights.sum()
    blurred = samples.astype(float)
    for axis in (0, 1):
        padded = np.pad(blurred, [(reach, reach) if other == axis else (0, 0) for other in range(3)], mode="edge")
        blurred = np.apply_along_axis(lambda row: np.convolve(row, weights, "valid"), axis, padded)
    return blurred


def smooth() -> Array:
    y, x = np.mgrid[0:60, 0:80]
    waves = [128 + 90 * np.sin(x / period) * np.cos(y / (period + 2)) for period in (4, 7, 11)]
    return np.rint(np.dstack(waves)).astype(np.uint8)


@pytest.mark.parametrize("sigma", [0.5, 0.6, 1, 2, 5, 6, 50])
@pytest.mark.parametrize("samples", [smooth(), noise(80, 60)], ids=["smooth", "noise"])
def test_a_blur_is_gaussian(sigma: float, samples: Array) -> None:
    blurred = pixels(file(samples), {"blur": sigma}).astype(float)
    difference = np.abs(blurred - gaussian(samples, sigma))
    assert difference.mean() < 0.9 and difference.max() < 4  # the mask's weights are whole: up to 64 in the middle


@pytest.mark.parametrize("sigma", [0.5, 0.6, 1, 2, 5, 10])
def test_sharpening_adds_what_a_blur_takes_away(sigma: float) -> None:
    sharpened = pixels(file(smooth()), {"sharpen": sigma}).astype(float)
    expected = np.clip(2 * smooth().astype(float) - gaussian(smooth(), sigma), 0, 255)
    difference = np.abs(sharpened - expected)
    assert difference.mean() < 0.9 and difference.max() < 4


@pytest.mark.parametrize("change", [{"blur": 0.5}, {"blur": 1}, {"blur": 5}, {"blur": 50}, {"sharpen": 2, "blur": 10}])
def test_what_is_flat_and_opaque_stays_so_to_the_level(change: dict[str, float]) -> None:
    grey = np.full((20, 200, 3), 200, np.uint8)
    assert np.array_equal(pixels(file(grey), change), grey)
    white = np.full((20, 200, 4), 255, np.uint8)
    white[:, 0, 3] = 0  # the widest mask reaches to 139 pixels beside it
    assert (pixels(file(white), change)[:, 140:] == 255).all()


@pytest.mark.guards("filters-flat-stays-flat", "filters-mask-weight-minimum")
def test_no_mask_changes_any_level() -> None:
    levels = np.arange(256, dtype=np.uint8).reshape(1, 1, 256)
    flat = pyvips.Image.new_from_memory(levels.tobytes(), 1, 1, 256, "uchar")
    for sigma in (hundredths / 100 for hundredths in range(50, 5001, 27)):
        weights, total = gaussian_mask(sigma)
        assert sum(weights) == total and min(weights) >= 0
        blurred = flat.convsep(pyvips.Image.new_from_array([weights], scale=total), precision="integer")
        assert np.array_equal(blurred.numpy(), levels), sigma


def test_transparent_pixels_neither_darken_nor_brighten_what_is_sharpened_or_blurred() -> None:
    samples = np.zeros((30, 30, 4), np.uint8)
    samples[:, :15] = (180, 120, 60, 255)
    for change in ({"sharpen": 2}, {"blur": 2}):
        edited = pixels(file(samples), change).astype(int)
        seen = edited[..., 3] > 8
        assert np.abs(edited[seen][:, :3] - (180, 120, 60)).max() <= 16
    assert np.array_equal(pixels(file(samples), {"sharpen": 2})[..., 3], samples[..., 3])


def test_the_edge_is_the_median_of_the_sides_that_meet_the_fill() -> None:
    samples = noise(40, 60)
    samples[:, [0, -1]] = (10, 200, 90)
    samples[:25, 0] = (255, 0, 0)  # something touches one side
    edited = pixels(file(samples), {"width": 60, "height": 60, "fit": "contain", "background": "edge"})
    assert np.array_equal(edited[:, 10:50], samples)
    assert (edited[:, :10] == (10, 200, 90)).all() and (edited[:, 50:] == (10, 200, 90)).all()
    (grey,) = {
        *pixels(file(samples[..., :1]), {"width": 60, "height": 60, "fit": "contain", "background": "edge"})[:, 0]
    }
    assert grey == 10


def test_a_transparent_edge_goes_on_and_is_white_where_there_is_no_alpha() -> None:
    samples = np.zeros((20, 10, 4), np.uint8)
    samples[:, 4:6] = (90, 90, 90, 255)
    contained = {"width": 20, "height": 20, "fit": "contain", "background": "edge"}
    assert (pixels(file(samples), contained)[:, :5, 3] == 0).all()
    assert pixels(file(samples), contained | {"format": "jpeg", "quality": 100})[:, :3].min() > 250


def test_a_filters_edge_does_not_reach_into_the_fill() -> None:
    variant = {"width": 60, "height": 60, "fit": "contain", "background": "#102030", "blur": 5}
    assert (pixels(file(noise(40, 60)), variant)[:, :10] == (0x10, 0x20, 0x30)).all()


def test_every_original_can_be_edited() -> None:
    cmyk = io.BytesIO()
    Image.new("CMYK", (40, 30), (10, 200, 30, 0)).save(cmyk, "JPEG")
    bodies = [cmyk.getvalue(), file(noise(40, 30, 4)), file(noise(40, 30, 2)[..., 0]), file(noise(1, 1))]
    deep = noise(40, 30, 4).astype(np.uint16) * 257
    bodies += [png_files.png(deep, png_files.RGBA, depth=16), png_files.png(deep[..., 0], png_files.GREY, depth=16)]
    regions = [region(0.1, 0.1, 0.5, 0.5, effect) for effect in ("fill", "blur", "pixelate")]
    for body in bodies:
        variants = [{"width": 20, "height": 20, "fit": "contain", "background": "edge", "sharpen": 1, "blur": 1}]
        for change in ({"regions": regions, "trim": 3}, {"regions": regions[:1]}, {"trim": 128, "flip": "both"}):
            assert pixels(body, variants[0], **change).shape[:2] == (20, 20)
    black = pixels(cmyk.getvalue(), regions=[region(0, 0, 1, 1, "fill")])
    assert black.max() < 60
