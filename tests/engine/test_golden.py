"""The golden set: the resulting pixels, read by decoders that are not the engine's, against known true colours."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import imagecodecs
import numpy as np
import pytest
from PIL import Image

from darkroom.domain.images.limits import Limits
from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.imaging import Developed, Rendered, develop
from tests.engine.golden import jpeg_files, png_files, profiles, reference, scenes, webp_files
from tests.engine.golden.cases import CASES, DCT, HALVED_CHROMA, PRESS, SAMPLINGS, SPACES, WEIGHED, Bounds, Case
from tests.engine.golden.colours import Array
from tests.engine.golden.decoders import decoded
from tests.engine.golden.exif import exif, stored
from tests.engine.golden.scenes import levels

pytestmark = pytest.mark.promise("golden-images")

EVERYTHING = Limits(input_formats=frozenset({"jpeg", "png", "webp", "gif", "avif", "heic"}))

LANCZOS = Bounds(mean=0.5, most=2, why="kernels are fixed-point, and rows and columns are rounded to 8 bits in turn")
BLOCKS = Bounds(mean=0, most=4, why="what shrinks to a quarter or less is averaged in blocks first")
CLIPPED = Bounds(mean=0, most=8, why="where a space is wider than sRGB, a level at the edge of the gamut weighs more")
SHRUNK = Bounds(mean=0.7, most=14, why="the decoder halves the picture first, by a filter of its own")
ODD = Bounds(mean=0.9, most=0, why="half of an odd side is half a pixel too much")
EXACT = Bounds(mean=1e-9, most=1e-6, why="floating point")


def render(body: bytes, **spec: Any) -> Rendered:
    """The single variant that `body` is developed into."""
    recipe = Recipe(variants=(VariantSpec(**{"name": "one", **spec}),))
    return develop(body, recipe, limits=EVERYTHING).variants[0]


def pixels(body: bytes, **spec: Any) -> Array:
    """The same, decoded."""
    rendered = render(body, **spec)
    picture = decoded(rendered.body, rendered.format)
    assert picture.shape[:2] == (rendered.height, rendered.width)
    return picture


@cache
def full_size(name: str) -> Developed:
    """A case at its own size, losslessly, and in the format of its family."""
    case = CASES[name]()
    width, height = case.size
    variants = (
        VariantSpec(name="png", width=width, height=height, format="png"),
        VariantSpec(name="auto", width=width, height=height),
    )
    return develop(case.body, Recipe(variants=variants), limits=EVERYTHING)


def hold(got: Array, expected: Array, *bounds: Bounds) -> None:
    """Asserts that two pictures differ by no more than all bounds together."""
    mean, most = reference.apart(got, expected)
    reasons = "; ".join(bound.why for bound in bounds)
    assert mean <= sum(bound.mean for bound in bounds), f"mean {mean:.2f}, most {most:.1f}: {reasons}"
    assert most <= sum(bound.most for bound in bounds) + 1e-6, f"mean {mean:.2f}, most {most:.1f}: {reasons}"


def truth(case: Case) -> Array:
    return reference.rgba(case.colours, case.alpha, case.meaning)


# ── Every case, at its own size and smaller ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", CASES)
def test_every_pixel_shows_its_true_colour(name: str) -> None:
    case = CASES[name]()
    rendered = full_size(name).variants[0]
    assert (rendered.width, rendered.height) == case.size
    picture = decoded(rendered.body, "png")
    hold(picture, truth(case), case.loss, case.conversion, EXACT)
    if case.read is not None:
        read = reference.rgba(*case.read(case.body), case.meaning)
        hold(read, truth(case), case.loss, EXACT)  # the file contains what was put into it
        hold(picture, np.rint(read), case.conversion, EXACT)


@pytest.mark.parametrize("name", CASES)
def test_a_smaller_variant_is_what_lanczos_makes_of_the_picture(name: str) -> None:
    case = CASES[name]()
    picture = pixels(case.body, width=case.size[0] * 3 // 8, height=case.size[1] * 3 // 8, format="png")
    height, width = picture.shape[:2]
    if case.alpha is None:
        expected = reference.rgba(reference.resized(case.colours, width, height), None, case.meaning)
    else:
        small, alpha = reference.resized_with_alpha(case.colours, case.alpha, width, height)
        expected = reference.rgba(small, alpha, case.meaning)
    bounds = [SHRUNK, DCT] if case.format in ("jpeg", "webp") else [LANCZOS]
    bounds += [ODD] if case.format == "jpeg" and case.size[0] % 2 else []
    bounds += [CLIPPED] if "vivid" in name or "palette" in name else []
    hold(picture, expected, case.conversion, *bounds)


@pytest.mark.parametrize("name", CASES)
def test_what_is_transparent_becomes_a_png_and_all_else_a_jpeg(name: str) -> None:
    assert full_size(name).variants[1].format == ("jpeg" if CASES[name]().alpha is None else "png")


@pytest.mark.parametrize("name", CASES)
def test_notices_tell_of_first_frames_and_unusable_profiles_and_of_nothing_else(name: str) -> None:
    case, notices = CASES[name](), full_size(name).notices
    assert len(notices) == len(case.notices)
    assert all(word in notice for word, notice in zip(case.notices, notices, strict=True))


def test_an_alpha_channel_that_hides_nothing_counts_as_none() -> None:
    samples = levels(np.dstack([scenes.scene(), np.ones((scenes.HEIGHT, scenes.WIDTH))]))
    table = png_files.palette(levels(scenes.vivid(256, 3)[1]), [255] * 256)
    files = [
        png_files.png(samples, png_files.RGBA),
        png_files.png(levels(scenes.grey_scene()), png_files.PALETTE, before=table),
        exact_webp(samples),
    ]
    for body in files:
        assert render(body, width=48).format == "jpeg"
        assert decoded(render(body, width=48, format="png").body, "png")[..., 3].min() == 255


# ── CMYK without a profile: no colours are true by right, but some are wrong by any ──────────────────────────────────


def chart_of_inks() -> Array:
    """White paper, then full cyan, magenta, yellow, black, and all four: 16 pixels each."""
    patches = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 1, 1, 1]])
    return np.broadcast_to(np.repeat(patches, 16, axis=0), (16, 96, 4)).astype(np.float64)


@pytest.mark.parametrize("transform", ["none", "ycck"])
def test_untagged_cmyk_has_white_paper_and_inks_of_their_hues(transform: jpeg_files.Transform) -> None:
    adobe = jpeg_files.adobe(2 if transform == "ycck" else 0)
    body = jpeg_files.jpeg((1 - chart_of_inks()) * 255, transform=transform, segments=[adobe])
    paper, cyan, magenta, yellow, black, all_inks = pixels(body, width=96, format="png")[8, 8::16, :3]
    assert paper.min() >= 250
    assert cyan[0] < 80 and cyan[1:].min() > 120
    assert magenta[1] < 80 and min(magenta[0], magenta[2]) > 100
    assert yellow[2] < 80 and yellow[:2].min() > 200
    assert black.max() < 60
    assert all_inks.max() < 60


def test_cmyk_is_the_same_picture_with_and_without_a_transform() -> None:
    cover = scenes.inks()
    plain = jpeg_files.jpeg((1 - cover) * 255, transform="none", segments=[jpeg_files.adobe(0)])
    ycck = jpeg_files.jpeg((1 - cover) * 255, transform="ycck", segments=[jpeg_files.adobe(2)])
    hold(pixels(ycck, width=96, format="png"), pixels(plain, width=96, format="png"), PRESS)


# ── Every format that is written ──────────────────────────────────────────────────────────────────────────────────────

JPEG_OUT = Bounds(mean=1.5, most=14, why="JPEG at quality 95 with halved chroma")
WEBP_OUT = Bounds(mean=2.0, most=18, why="WebP at quality 95: halved chroma, and 16-235 of 255 levels")
AVIF_OUT = Bounds(mean=1.5, most=14, why="AVIF at quality 90 with halved chroma")
PNG_OUT = Bounds(mean=0, most=0, why="PNG is lossless")
OUTPUTS = {"jpeg": (95, JPEG_OUT), "webp": (95, WEBP_OUT), "avif": (90, AVIF_OUT), "png": (None, PNG_OUT)}


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize(
    "name", ["png-rgb", "png-grey", "png-grey-16-bit", "png-display-p3", "jpeg-grey", "jpeg-cmyk", "jpeg-orientation-6"]
)
def test_every_format_holds_the_picture(name: str, output: str) -> None:
    case = CASES[name]()
    quality, bounds = OUTPUTS[output]
    picture = pixels(case.body, width=case.size[0], format=output, quality=quality)
    hold(picture, truth(case), bounds, case.loss, case.conversion, EXACT)


@pytest.mark.parametrize("output", ["webp", "avif", "png"])
@pytest.mark.parametrize("name", ["png-rgba", "png-grey-alpha", "gif-transparent", "webp-lossless-alpha"])
def test_formats_with_alpha_keep_it(name: str, output: str) -> None:
    case = CASES[name]()
    quality, bounds = OUTPUTS[output]
    picture, true = pixels(case.body, width=case.size[0], format=output, quality=quality), truth(case)
    assert np.abs(picture[..., 3] - true[..., 3]).max() <= (4 if output == "avif" else 0)
    # Hidden colours may change, and block encoders use that: next to clear pixels, colours differ more.
    weighed = Bounds(mean=bounds.mean, most=4 * bounds.most, why=bounds.why)
    hold(picture, true, weighed, case.conversion, EXACT)


@pytest.mark.parametrize("background", ["#ffffff", "#000000", "#20c0e0", "#20c0e080"])
@pytest.mark.parametrize(
    "name", ["png-rgba", "png-grey-alpha", "png-palette-transparent", "png-display-p3-alpha-8-bit"]
)
def test_the_background_shows_through_where_jpeg_has_no_alpha(name: str, background: str) -> None:
    case = CASES[name]()
    red, green, blue, *_ = bytes.fromhex(background[1:])
    picture = pixels(case.body, width=case.size[0], format="jpeg", quality=95, background=background)
    # Chroma is halved, and the hole has hard edges between saturated colours.
    edges = Bounds(mean=3.0, most=110, why=JPEG_OUT.why)
    hold(picture, reference.flattened(truth(case), (red, green, blue)), edges)
    if name != "png-palette-transparent":
        assert np.abs(picture[50:, :10, :3] - [red, green, blue]).max() <= 6  # clear at the lower left


# ── Fits, gravities, focal points: where the picture comes to lie ─────────────────────────────────────────────────────

SOURCE = (120, 80)
"""Chosen so that every expected place below is a whole number of pixels: nothing depends on how halves are rounded."""

COMPASS = {
    "northwest": (0.0, 0.0),
    "north": (0.5, 0.0),
    "northeast": (1.0, 0.0),
    "west": (0.0, 0.5),
    "centre": (0.5, 0.5),
    "east": (1.0, 0.5),
    "southwest": (0.0, 1.0),
    "south": (0.5, 1.0),
    "southeast": (1.0, 1.0),
}


@cache
def map_file(file_format: str = "png") -> bytes:
    samples = scenes.map_of_places(*SOURCE)
    if file_format == "png":
        return png_files.png(levels(samples), png_files.RGB)
    return jpeg_files.jpeg(samples * 255, sampling=SAMPLINGS["420"])


@cache
def clear_map_file() -> bytes:
    """The map, half opaque everywhere: distinguishes transparency from padding."""
    samples = np.dstack([scenes.map_of_places(*SOURCE), np.full(SOURCE[::-1], 0.6)])
    return png_files.png(levels(samples), png_files.RGBA)


def expected_map(
    size: tuple[int, int], scale: tuple[float, float], at: tuple[float, float], background: tuple[int, ...]
) -> tuple[Array, Array]:
    """The picture of a variant of `size` in which the scaled source has its corner `at`; and where the source is.

    The map is a formula, so it is not resampled: it is evaluated for the place that each pixel of the variant shows.
    """
    y, x = np.mgrid[0 : size[1], 0 : size[0]] + 0.5
    source_x = (x - at[0]) / scale[0] / SOURCE[0]
    source_y = (y - at[1]) / scale[1] / SOURCE[1]
    inside = (source_x > 0) & (source_x < 1) & (source_y > 0) & (source_y < 1)
    picture = np.dstack([0.1 + 0.8 * source_x, 0.1 + 0.8 * source_y, np.full_like(x, 0.25), np.ones_like(x)]) * 255
    picture[~inside] = [*background, 255][:4]
    return picture, inside


PLACED = Bounds(mean=0.6, most=5, why="whole levels, and the filter at the edges of a ramp")


def check_place(
    size: tuple[int, int],
    scale: tuple[float, float],
    at: tuple[float, float],
    *,
    body: bytes | None = None,
    colour: tuple[int, ...] = (255, 255, 255),
    bounds: Bounds = PLACED,
    **spec: Any,
) -> None:
    spec = {"format": "png", **spec}
    picture = pixels(body or map_file(), **spec)
    assert picture.shape[1::-1] == size
    expected, inside = expected_map(size, scale, at, colour)
    hold(picture, expected, bounds)
    if not inside.all():
        assert np.array_equal(picture[~inside], expected[~inside])  # not a pixel too many or too few
    # The ramps reveal shifts far smaller than a pixel, such as half an output pixel.
    for axis in (0, 1):
        levels_a_pixel = 0.8 * 255 / (SOURCE[axis] * scale[axis])
        shift = (picture - expected)[..., axis][inside].mean() / levels_a_pixel
        assert abs(shift) < 0.15, f"shifted by {shift:.2f} pixels along axis {axis}"


@pytest.mark.parametrize("file_format", ["png", "jpeg"])
@pytest.mark.parametrize(
    ("box", "enlarge", "size"),
    [
        ({"width": 60, "height": 60}, False, (60, 40)),
        ({"width": 60}, False, (60, 40)),
        ({"height": 40}, False, (60, 40)),
        ({"width": 90, "height": 20}, False, (30, 20)),
        ({"width": 240, "height": 240}, False, (120, 80)),
        ({"width": 240, "height": 240}, True, (240, 160)),
        ({"width": 60, "height": 60}, True, (60, 40)),
        ({"height": 160}, True, (240, 160)),
    ],
)
def test_inside_keeps_the_whole_picture_and_its_shape(
    box: dict[str, Any], enlarge: bool, size: tuple[int, int], file_format: str
) -> None:
    scale = size[0] / SOURCE[0]
    bounds = PLACED if file_format == "png" else HALVED_CHROMA
    check_place(size, (scale, scale), (0, 0), body=map_file(file_format), bounds=bounds, enlarge=enlarge, **box)


@pytest.mark.parametrize(
    ("box", "enlarge", "size"),
    [
        ((60, 60), False, (60, 60)),
        ((30, 80), False, (30, 80)),
        ((240, 80), False, (120, 40)),
        ((60, 160), False, (30, 80)),
        ((240, 80), True, (240, 80)),
        ((60, 160), True, (60, 160)),
    ],
)
def test_exact_stretches_to_the_box(box: tuple[int, int], enlarge: bool, size: tuple[int, int]) -> None:
    scale = (size[0] / SOURCE[0], size[1] / SOURCE[1])
    check_place(size, scale, (0, 0), width=box[0], height=box[1], fit="exact", enlarge=enlarge)


@pytest.mark.parametrize("gravity", COMPASS)
@pytest.mark.parametrize(
    ("box", "enlarge", "size", "scale"),
    [
        ((40, 40), False, (40, 40), 0.5),
        ((60, 20), False, (60, 20), 0.5),
        ((80, 80), False, (80, 80), 1),
        ((240, 240), False, (80, 80), 1),
        ((480, 120), False, (120, 30), 1),
        ((240, 240), True, (240, 240), 3),
        ((120, 240), True, (120, 240), 3),
    ],
)
def test_cover_fills_the_box_and_keeps_the_side_of_its_gravity(
    box: tuple[int, int], enlarge: bool, size: tuple[int, int], scale: float, gravity: str
) -> None:
    x, y = COMPASS[gravity]
    at = (-(SOURCE[0] * scale - size[0]) * x, -(SOURCE[1] * scale - size[1]) * y)
    check_place(size, (scale, scale), at, width=box[0], height=box[1], fit="cover", gravity=gravity, enlarge=enlarge)


@pytest.mark.parametrize(("x", "left"), [(0.0, 0), (0.25, 0), (0.5, 10), (0.6, 16), (0.65, 19), (0.75, 20), (1.0, 20)])
def test_cover_keeps_a_focal_point_as_near_to_the_middle_as_the_picture_reaches(x: float, left: int) -> None:
    # 120×80 → 60×40, of which 40 columns remain.
    check_place((40, 40), (0.5, 0.5), (-left, 0), width=40, height=40, fit="cover", gravity={"x": x, "y": 0.9})


@pytest.mark.parametrize(("y", "top"), [(0.0, 0), (0.3, 2), (0.5, 10), (0.7, 18), (1.0, 20)])
def test_cover_keeps_a_focal_point_down_the_picture_too(y: float, top: int) -> None:
    check_place((60, 20), (0.5, 0.5), (0, -top), width=60, height=20, fit="cover", gravity={"x": 0.1, "y": y})


@pytest.mark.parametrize("gravity", COMPASS)
@pytest.mark.parametrize(
    ("box", "enlarge", "scale"),
    [((60, 60), False, 0.5), ((80, 40), False, 0.5), ((160, 120), False, 1), ((240, 240), True, 2)],
)
def test_contain_fills_up_the_box_around_the_whole_picture(
    box: tuple[int, int], enlarge: bool, scale: float, gravity: str
) -> None:
    x, y = COMPASS[gravity]
    at = ((box[0] - SOURCE[0] * scale) * x, (box[1] - SOURCE[1] * scale) * y)
    spec: dict[str, Any] = {"width": box[0], "height": box[1], "fit": "contain", "gravity": gravity, "enlarge": enlarge}
    check_place(box, (scale, scale), at, background="#204060", colour=(0x20, 0x40, 0x60), **spec)


@pytest.mark.parametrize(("x", "y", "at"), [(0.25, 0.75, (10, 30)), (0.0, 1.0, (0, 40)), (0.9, 0.1, (36, 4))])
def test_contain_sets_the_picture_by_shares_of_the_free_space(x: float, y: float, at: tuple[int, int]) -> None:
    check_place((160, 120), (1, 1), at, width=160, height=120, fit="contain", gravity={"x": x, "y": y})


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("fit", ["inside", "exact", "cover", "contain"])
def test_boxes_and_gravities_are_those_of_the_upright_picture(fit: str, orientation: int) -> None:
    samples = levels(scenes.map_of_places(*SOURCE))
    body = png_files.png(stored(samples, orientation), png_files.RGB, before=[(b"eXIf", exif(orientation))])
    size, scale, at = {
        "inside": ((60, 40), (0.5, 0.5), (0, 0)),
        "exact": ((60, 30), (0.5, 0.375), (0, 0)),
        "cover": ((40, 40), (0.5, 0.5), (-20, 0)),
        "contain": ((100, 40), (0.5, 0.5), (40, 0)),
    }[fit]
    check_place(size, scale, at, body=body, width=size[0], height=size[1], fit=fit, gravity="southeast")


@pytest.mark.parametrize("output", ["png", "webp", "avif"])
def test_contain_fills_up_with_a_translucent_background_where_the_format_can(output: str) -> None:
    spec = {"width": 160, "height": 120, "fit": "contain", "background": "#20406080", "format": output, "quality": 95}
    picture = pixels(map_file(), **spec)
    assert picture.shape[1::-1] == (160, 120)
    assert np.all(picture[20:100, 20:140, 3] >= 252)
    edge = np.ones((120, 160), bool)
    edge[16:104, 16:144] = False
    assert np.abs(picture[edge][:, 3] - 0x80).max() <= (3 if output == "avif" else 0)
    assert np.abs(picture[edge][:, :3] - [0x20, 0x40, 0x60]).mean() <= 4


def test_contain_fills_up_a_jpeg_with_the_colour_of_a_translucent_background() -> None:
    spec = {"width": 160, "height": 120, "fit": "contain", "background": "#20406080", "format": "jpeg", "quality": 95}
    picture = pixels(map_file(), **spec)
    assert np.abs(picture[:12, :, :3] - [0x20, 0x40, 0x60]).max() <= 4


def test_contain_keeps_the_picture_s_own_transparency_apart_from_the_background() -> None:
    picture = pixels(clear_map_file(), width=160, height=120, fit="contain", background="#204060", format="png")
    assert np.all(picture[:20] == [0x20, 0x40, 0x60, 255])
    assert np.all(picture[20:100, 20:140, 3] == 153)


def test_a_translucent_picture_in_a_box_is_flattened_with_the_box() -> None:
    spec = {"width": 160, "height": 120, "fit": "contain", "background": "#204060", "format": "jpeg", "quality": 95}
    picture = pixels(clear_map_file(), **spec)
    expected, inside = expected_map((160, 120), (1, 1), (20, 20), (0x20, 0x40, 0x60))
    expected[inside, 3] = 153
    hold(picture, reference.flattened(expected, (0x20, 0x40, 0x60)), JPEG_OUT)


def test_a_grey_picture_stands_on_a_coloured_background() -> None:
    body = png_files.png(np.full((40, 40), 90, np.uint8), png_files.GREY)
    picture = pixels(body, width=60, height=40, fit="contain", background="#ff8000", format="png")
    assert np.all(picture[:, :10] == [0xFF, 0x80, 0, 255])
    assert np.all(picture[:, 10:50] == [90, 90, 90, 255])


@pytest.mark.parametrize("fit", ["inside", "cover", "contain", "exact"])
@pytest.mark.parametrize("size", [(97, 65), (65, 97), (1, 64), (64, 1), (3, 200), (1, 1)])
def test_odd_sizes_fit_too(size: tuple[int, int], fit: str) -> None:
    width, height = size
    samples = levels(scenes.scene(width, height))
    rendered = render(png_files.png(samples, png_files.RGB), width=31, height=33, fit=fit, format="png")
    box = {
        "inside": None,
        "contain": (31, 33),
        "cover": None if width < 31 or height < 33 else (31, 33),
        "exact": None if width < 31 or height < 33 else (31, 33),
    }[fit]
    assert box is None or (rendered.width, rendered.height) == box
    assert 1 <= rendered.width <= 31 and 1 <= rendered.height <= 33
    scale = min(1, 31 / width, 33 / height)
    if fit == "inside":
        assert abs(rendered.width - max(1, width * scale)) <= 0.5
        assert abs(rendered.height - max(1, height * scale)) <= 0.5
    if fit == "cover":  # at least one side is the source's or the box's, and no side exceeds either
        assert rendered.width <= width and rendered.height <= height
    mean = samples.reshape(-1, 3).mean(axis=0)
    if fit in ("inside", "exact"):
        assert np.abs(decoded(rendered.body, "png")[..., :3].mean(axis=(0, 1)) - mean).max() < 3


def test_variants_of_one_recipe_do_not_disturb_each_other() -> None:
    specs = [
        {"name": "a", "width": 30, "height": 60, "fit": "exact"},
        {"name": "b", "width": 240, "height": 160, "enlarge": True},
        {"name": "c", "width": 40, "height": 40, "fit": "cover", "gravity": "east"},
        {"name": "d", "width": 160, "height": 120, "fit": "contain", "background": "#102030"},
        {"name": "e", "width": 60},
        {"name": "f", "width": 30},
    ]
    variants = tuple(VariantSpec(**{"format": "png", **spec}) for spec in specs)
    together = develop(map_file(), Recipe(variants=variants)).variants
    for spec, rendered in zip(variants, together, strict=True):
        alone = develop(map_file(), Recipe(variants=(spec,))).variants[0]
        # A cascade scales in steps, each rounded to whole levels, and each bends a ramp's edge.
        steps = Bounds(mean=0.6, most=6, why="steps of a cascade")
        hold(decoded(rendered.body, "png"), decoded(alone.body, "png"), steps)


# ── What smaller pictures are known by ────────────────────────────────────────────────────────────────────────────────

BIG = (480, 320)


@cache
def small_picture(width: int, height: int) -> Array:
    return reference.resized(scenes.smooth(*BIG), width, height)


@cache
def big_jpeg(sampling: str) -> bytes:
    return bytes(imagecodecs.jpeg8_encode(levels(scenes.smooth(*BIG)), level=97, subsampling=sampling))


@pytest.mark.parametrize("sampling", ["444", "422", "420"])
@pytest.mark.parametrize("width", [450, 240, 200, 120, 75, 45, 15])
def test_a_jpeg_shrunk_while_it_is_decoded_neither_shifts_nor_changes_colour(width: int, sampling: str) -> None:
    picture = pixels(big_jpeg(sampling), width=width, format="png")
    expected = reference.rgba(small_picture(width, picture.shape[0]), None)
    # Four corner colours over so few pixels change by up to 8 levels per pixel: half a pixel's shift would be 2 on
    # average.
    hold(picture, expected, Bounds(mean=1.0, most=12, why="JPEG at quality 97, and the decoder's own filter"))


@pytest.mark.parametrize("alpha", [False, True], ids=["opaque", "alpha"])
@pytest.mark.parametrize("width", [450, 240, 120, 45, 15])
def test_a_webp_shrunk_while_it_is_decoded_neither_shifts_nor_changes_colour(width: int, alpha: bool) -> None:
    got = pixels(big_webp(alpha), width=width, format="png")
    small: tuple[Array, Array | None] = small_picture(width, got.shape[0]), None
    if alpha:
        small = reference.resized_with_alpha(scenes.smooth(*BIG), scenes.grey_scene(*BIG), width, got.shape[0])
    hold(got, reference.rgba(*small), Bounds(mean=1.0, most=12, why="the decoder's own filter"))


@cache
def big_webp(alpha: bool) -> bytes:
    samples = np.dstack([scenes.smooth(*BIG), scenes.grey_scene(*BIG)]) if alpha else scenes.smooth(*BIG)
    return webp_files.webp(levels(samples))


@pytest.mark.parametrize("file_format", ["png", "jpeg"])
@pytest.mark.parametrize("width", [200, 150, 101, 70, 33])
def test_a_pattern_too_fine_for_the_variant_turns_into_an_even_tone(width: int, file_format: str) -> None:
    y, x = np.mgrid[0:256, 0:256]
    checks = ((x + y) % 2 * 160 + 40).astype(np.uint8)
    body = png_files.png(checks, png_files.GREY) if file_format == "png" else jpeg_files.jpeg(checks)
    picture = pixels(body, width=width, format="png")[4:-4, 4:-4, 0]
    # About one weight of a kernel with this few samples remains; nearest or bilinear would leave all of ±80.
    assert np.abs(picture - 120).max() < (30 if width > 128 else 6)


@pytest.mark.parametrize("kind", ["png", "png-16-bit", "png-display-p3", "webp", "webp-shrunk", "gif-like"])
def test_what_is_hidden_does_not_bleed_into_edges(kind: str) -> None:
    """A grey disc on invisible green: every visible pixel must be grey."""
    y, x = np.mgrid[0:200, 0:200]
    opacity = np.clip(80.5 - np.hypot(x - 99.5, y - 89.5), 0, 1)
    if kind == "gif-like":
        opacity = np.rint(opacity)
    disc = np.where(opacity[..., None] > 0, [0.8, 0.8, 0.8], [0.0, 1.0, 0.0])
    samples = np.dstack([disc, opacity])
    if kind.startswith("webp"):
        body = exact_webp(levels(samples))
    elif kind == "png-display-p3":
        body = png_files.png(levels(samples), png_files.RGBA, before=[png_files.iccp(SPACES["display-p3"].profile)])
    elif kind == "png-16-bit":
        body = png_files.png(levels(samples, 65535), png_files.RGBA, depth=16)
    else:
        body = png_files.png(levels(samples), png_files.RGBA)
    for width in (21, 30) if kind == "webp-shrunk" else (150, 101):
        picture = pixels(body, width=width, format="png")
        shown = picture[picture[..., 3] > 0]
        spread = shown[:, :3].max(axis=1) - shown[:, :3].min(axis=1)
        # A colour weighted by its alpha is a whole level: undone, that is up to 255 / alpha.
        assert np.all(spread <= 1 + 255 / shown[:, 3])
        # Lanczos overshoots by up to a seventh at a hard edge; alpha is clipped at opaque there, but colours are not.
        assert 204 - 4 <= shown[shown[:, 3] > 250][:, 0].min() <= shown[:, 0][shown[:, 3] > 250].max() <= 204 * 8 / 7
        assert 0 < (picture[..., 3] == 0).mean() < 0.9


@pytest.mark.parametrize("width", [150, 100, 50, 40])
@pytest.mark.parametrize("hidden", [0.0, 1.0], ids=["black", "white"])
def test_what_a_lossy_webp_hides_does_not_bleed_into_edges(hidden: float, width: int) -> None:
    """libwebp's own scaling weights by alpha only if the file is lossless."""
    y, x = np.mgrid[0:200, 0:200]
    opacity = np.clip(80.5 - np.hypot(x - 99.5, y - 89.5), 0, 1)
    samples = levels(np.dstack([np.where(opacity[..., None] > 0, [0.4, 0.5, 0.6], [hidden] * 3), opacity]))
    body = exact_webp(samples, lossless=False, quality=95)
    as_stored = imagecodecs.webp_decode(body) / 255
    small = reference.resized_with_alpha(as_stored[..., :3], as_stored[..., 3], width, width)
    hold(pixels(body, width=width, format="png"), reference.rgba(*small), LANCZOS, BLOCKS, WEIGHED)


def exact_webp(samples: Array, **options: Any) -> bytes:
    """A file that keeps the colours of clear pixels; imagecodecs would even them out."""
    file = io.BytesIO()
    Image.fromarray(samples).save(file, "WEBP", exact=True, **{"lossless": True, **options})
    return file.getvalue()


def wedge(space: str, depth: int) -> tuple[bytes, Array]:
    """A dark grey wedge in a colour space, and its levels in sRGB as the file's rounding leaves them."""
    maximum = (1 << depth) - 1
    grey = scenes.dark(width=768)
    picture = np.repeat(grey[..., None], 3, axis=2)
    samples = levels(SPACES[space].encode(picture), maximum)
    body = png_files.png(samples, png_files.RGB, depth=depth, before=[png_files.iccp(SPACES[space].profile)])
    return body, SPACES[space].meaning(samples / maximum)[..., 0] * 255


@pytest.mark.parametrize("width", [768, 384, 256])
@pytest.mark.parametrize(
    ("space", "depth"),
    [("srgb", 8), ("display-p3", 8), ("srgb", 16), ("display-p3", 16), ("adobe-rgb", 16), ("prophoto", 16)],
)
def test_dark_gradients_have_no_bands(space: str, depth: int, width: int) -> None:
    body, true = wedge(space, depth)
    row = pixels(body, width=width, format="png")[0, 2:-2, 0]
    assert np.all(np.diff(row) >= 0)
    assert np.diff(row).max() <= 1
    expected = true[0].reshape(width, -1).mean(axis=1)[2:-2]
    assert np.abs(row - expected).max() <= (2.5 if space == "prophoto" else 1.2)


def test_sixteen_bits_reach_from_black_to_white() -> None:
    ramp = np.broadcast_to(np.linspace(0, 65535, 512).astype(np.uint16), (8, 512))
    row = pixels(png_files.png(ramp, png_files.GREY, depth=16), width=512, format="png")[4, :, 0]
    assert row[0] == 0 and row[-1] == 255
    assert np.all(np.diff(row) >= 0) and np.diff(row).max() <= 1


def test_a_profile_of_another_kind_than_the_picture_is_told_and_not_used() -> None:
    body = jpeg_files.jpeg(
        scenes.scene() * 255, segments=[jpeg_files.JFIF, *jpeg_files.icc_segments(profiles.grey(2.2))]
    )
    developed = develop(body, Recipe(variants=(VariantSpec(name="one", width=96, format="png"),)))
    assert len(developed.notices) == 1 and "profile" in developed.notices[0]
    case = CASES["jpeg-444-baseline"]()
    hold(decoded(developed.variants[0].body, "png"), reference.rgba(scenes.scene(), None), case.loss)
