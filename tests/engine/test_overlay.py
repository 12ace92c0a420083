"""Overlays, held against formulas in numpy."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from darkroom.domain.images.limits import Limits
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.recipes.recipes import Overlay, Recipe, VariantSpec
from darkroom.imaging import Developed, develop
from darkroom.imaging.animation import require_little_work, timeline_of
from darkroom.imaging.overlay import shown_size
from darkroom.imaging.scaling.geometry import place
from tests.engine.arrays import Array, file, noise
from tests.engine.golden.cases import SPACES

LOGO = "0" * 26
OTHER = "1" * 26
OWN_SIZE = {"image": LOGO, "margin": 0.0}


def developed(below: bytes, files: dict[str, bytes], *overlays: dict[str, Any], **variant: Any) -> Developed:
    spec = {"name": "one", "width": 8192, "height": 8192, "format": "png", **variant, "overlays": overlays}
    return develop(below, Recipe.model_validate({"variants": [spec]}), overlay_of=files.__getitem__)


def pixels(below: Array, logo: Array | bytes, *overlays: dict[str, Any], **variant: Any) -> Array:
    body = logo if isinstance(logo, bytes) else file(logo)
    (made,) = developed(file(below), {LOGO: body}, *overlays, **variant).variants
    return np.asarray(Image.open(io.BytesIO(made.body)))


def over(above: Array, below: Array, opacity: float = 1.0) -> Array:
    """Porter and Duff's "over" of straight RGBA or RGB, as the result stores its pixels: rounded RGB or RGBA."""
    alpha = (above[..., 3:] / 255 if above.shape[2] == 4 else 1.0) * opacity
    share = (below[..., 3:] / 255 if below.shape[2] == 4 else 1.0) * (1 - alpha)
    both = np.broadcast_to(alpha + share, (*above.shape[:2], 1))
    colours = (above[..., :3] * alpha + below[..., :3] * share) / np.where(both == 0, 1, both)
    return np.dstack([colours, both * 255]) if below.shape[2] == 4 else colours


@pytest.mark.parametrize(
    ("gravity", "left", "top"),
    [("northwest", 2, 2), ("north", 15, 2), ("east", 28, 7), ("centre", 15, 7), ("southeast", 28, 12)],
)
def test_an_overlay_stands_at_its_margin_from_the_side_that_it_is_drawn_to(gravity: str, left: int, top: int) -> None:
    below, logo = noise(40, 20), noise(10, 6, seed=2)
    expected = below.copy()
    expected[top : top + 6, left : left + 10] = logo
    overlay = {"image": LOGO, "gravity": gravity, "margin": 0.1}  # a tenth of 20, and a quarter of 40
    assert np.array_equal(pixels(below, logo, overlay), expected)


@pytest.mark.parametrize("below_channels", [3, 4])
@pytest.mark.parametrize("opacity", [1.0, 0.4, 0.0])
def test_a_transparent_overlay_is_composited_over_whatever_is_there(below_channels: int, opacity: float) -> None:
    below, logo = noise(40, 20, below_channels), noise(10, 6, 4, seed=2)
    if below_channels == 4:
        below[16:, :, 3] = 0
    logo[:2, :, 3] = 0
    expected = below.astype(float)
    expected[14:, 30:] = over(logo, below[14:, 30:], opacity)
    composited = pixels(below, logo, OWN_SIZE | {"opacity": opacity}).astype(float)
    if below_channels == 4:  # the colour of a pixel with hardly any alpha is no more exact than that alpha
        assert np.abs(composited[..., 3] - expected[..., 3]).max() <= 0.5
        composited, expected = (layer[..., :3] * layer[..., 3:] / 255 for layer in (composited, expected))
    assert np.abs(composited - expected).max() <= 1.01
    assert np.array_equal(composited[:14], expected[:14])


@pytest.mark.guards("overlays-colour-rounding")
def test_a_mixed_colour_is_rounded_and_never_darkened() -> None:
    ramp = np.arange(256, dtype=np.uint8).reshape(16, 16, 1).repeat(3, 2)
    mixed = OWN_SIZE | {"scale": 1, "opacity": 0.4}
    assert np.array_equal(pixels(np.zeros_like(ramp), ramp, mixed), np.rint(ramp * 0.4))
    assert np.array_equal(pixels(ramp, ramp, mixed), ramp)
    assert np.array_equal(pixels(ramp, np.zeros((4, 4, 4), np.uint8), OWN_SIZE | {"tile": True}), ramp)


def test_tiles_continue_from_where_the_overlay_stands_alone() -> None:
    below, logo = noise(40, 23), noise(10, 6, seed=2)
    overlay = {"image": LOGO, "margin": 0.1, "gravity": "southeast", "tile": True}  # a margin of 2
    expected = below.copy()
    for y, x in np.ndindex(23, 40):
        across, down = (x - (40 - 2 - 10)) % 12, (y - (23 - 2 - 6)) % 8
        if across < 10 and down < 6:
            expected[y, x] = logo[down, across]
    assert np.array_equal(pixels(below, logo, overlay), expected)


@pytest.mark.parametrize(
    ("scale", "size", "variant", "shown"),
    [
        (0.25, (300, 200), (1000, 50), (75, 50)),
        (0.25, (300, 200), (1000, 1000), (250, 167)),
        (1.0, (3, 2), (90, 60), (90, 60)),
        (0.01, (500, 2), (40, 40), (1, 1)),
        (1.0, (2, 1000), (50, 100), (1, 100)),
    ],
)
def test_an_overlay_has_its_share_of_the_width_in_its_own_shape_and_always_fits(
    scale: float, size: tuple[int, int], variant: tuple[int, int], shown: tuple[int, int]
) -> None:
    assert shown_size(Overlay(image=LOGO, scale=scale), size, variant) == shown


def test_a_large_overlay_is_scaled_like_a_variant_and_a_small_one_enlarged() -> None:
    below, logo = np.zeros((20, 40, 3), np.uint8), noise(400, 200, seed=2)
    (alone,) = developed(file(logo), {}, width=20, height=10).variants
    composited = pixels(below, logo, OWN_SIZE | {"scale": 0.5})
    assert np.array_equal(composited[10:, 20:], np.asarray(Image.open(io.BytesIO(alone.body))))
    assert composited[:10].max() == 0
    white = np.full((2, 4, 3), 255, np.uint8)
    assert pixels(below, white, OWN_SIZE | {"scale": 1}).min() == 255


def test_later_overlays_are_over_earlier_ones_and_each_file_is_read_once() -> None:
    read: list[str] = []
    files = {LOGO: file(np.full((4, 4, 3), 10, np.uint8)), OTHER: file(np.full((2, 2, 3), 20, np.uint8))}

    def overlay_of(image_id: str) -> bytes:
        read.append(image_id)
        return files[image_id]

    overlays = [{"image": LOGO, "margin": 0.0, "scale": 0.5}, {"image": OTHER, "margin": 0.0, "scale": 0.25}]
    spec = {"width": 8, "height": 8, "format": "png", "overlays": overlays}
    recipe = Recipe.model_validate({"variants": [spec | {"name": "a"}, spec | {"name": "b"}]})
    made = develop(file(np.zeros((8, 8, 3), np.uint8)), recipe, overlay_of=overlay_of)
    composited = np.asarray(Image.open(io.BytesIO(made.variants[1].body)))[..., 0]
    assert (composited[3, 7], composited[4, 4], composited[6, 6]) == (0, 10, 20)
    assert read == [LOGO, OTHER]


def test_an_overlay_covers_the_padding_too_and_is_not_blurred() -> None:
    below, logo = np.zeros((20, 20, 3), np.uint8), noise(10, 10, seed=2)
    composited = pixels(below, logo, OWN_SIZE, fit="contain", width=40, height=20, background="#ffffff", blur=5)
    assert np.array_equal(composited[10:, 30:], logo)


def test_a_grey_picture_takes_the_colours_of_its_overlay_and_stays_grey_under_a_grey_one() -> None:
    below, red, grey = np.full((8, 8, 1), 90, np.uint8), np.full((2, 2, 3), (255, 0, 0), np.uint8), noise(2, 2, 1)
    composited = pixels(below, red, OWN_SIZE)
    assert (composited[0, 0].tolist(), composited[7, 7].tolist()) == ([90, 90, 90], [255, 0, 0])
    assert np.array_equal(pixels(below, grey, OWN_SIZE)[6:, 6:], grey[..., 0])
    assert pixels(noise(8, 8), grey, OWN_SIZE)[6:, 6:].tolist() == grey.repeat(3, 2).tolist()


def test_an_overlay_is_turned_upright_and_converted_to_srgb() -> None:
    below = np.zeros((8, 8, 3), np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6
    tall = noise(2, 4, seed=3)
    body = file(np.rot90(tall).copy(), exif=exif)
    assert np.array_equal(pixels(below, body, OWN_SIZE)[4:, 6:], tall)
    green = np.full((2, 2, 3), (90, 200, 90), np.uint8)
    p3 = file(green, icc_profile=SPACES["display-p3"].profile)
    (alone,) = developed(p3, {}).variants
    composited = pixels(below, p3, OWN_SIZE)
    assert tuple(composited[7, 7]) == Image.open(io.BytesIO(alone.body)).getpixel((0, 0)) != (90, 200, 90)
    press = io.BytesIO()
    Image.new("CMYK", (2, 2), (0, 255, 255, 0)).save(press, "JPEG")
    red, *others = pixels(below, press.getvalue(), OWN_SIZE)[7, 7].tolist()
    assert red > 200 and max(others) < 80


@pytest.mark.guards("animation-apng-default-image", case="a picture apart")
@pytest.mark.parametrize("file_format", ["GIF", "PNG", "WEBP", "a picture apart"])
def test_an_animations_first_frame_is_laid_over(file_format: str) -> None:
    body = io.BytesIO()
    first, second, apart = (Image.new("RGB", (2, 2), colour) for colour in ("red", "blue", "green"))
    if file_format == "a picture apart":
        apart.save(body, "PNG", save_all=True, append_images=[first, second], default_image=True)
    else:
        first.save(body, file_format, save_all=True, append_images=[second, first] * 512, lossless=True)
    made = developed(file(np.zeros((8, 8, 3), np.uint8)), {LOGO: body.getvalue()}, OWN_SIZE)
    assert np.asarray(Image.open(io.BytesIO(made.variants[0].body)))[7, 7].tolist() == [255, 0, 0]
    assert made.notices == ()


@pytest.mark.guards("overlays-counted-per-frame")
def test_an_overlay_is_on_every_frame_of_an_animation_and_is_work_of_each() -> None:
    body = io.BytesIO()
    first, second = (Image.new("RGB", (8, 8), colour) for colour in ("black", "blue"))
    first.save(body, "GIF", save_all=True, append_images=[second])
    logo = {LOGO: file(np.full((2, 2, 3), (255, 0, 0), np.uint8))}
    (moving,) = developed(body.getvalue(), logo, OWN_SIZE, format="gif", animation="keep").variants
    with Image.open(io.BytesIO(moving.body)) as frames:
        for number in (0, 1):
            frames.seek(number)
            assert frames.convert("RGB").getpixel((7, 7)) == (255, 0, 0)
    still = VariantSpec(name="a", width=1000, height=1000, animation="keep", enlarge=True, fit="exact")
    heavy = still.model_copy(update={"overlays": (Overlay(image=LOGO, tile=True),) * 4})
    many = io.BytesIO()
    first.save(many, "GIF", save_all=True, append_images=[second, first] * 10)
    timeline = timeline_of(many.getvalue(), most=1_000)
    assert timeline is not None
    require_little_work(timeline, Recipe(variants=(still,)), [(still, place(still, 8, 8))])
    with pytest.raises(Rejected) as refusal:
        require_little_work(timeline, Recipe(variants=(heavy,)), [(heavy, place(heavy, 8, 8))])
    assert refusal.value.code == "animation_too_large"


def test_the_placeholder_knows_no_overlay_and_what_has_transparency_is_flattened_under_it() -> None:
    below = np.zeros((8, 8, 4), np.uint8)
    logo = file(np.full((8, 8, 4), (255, 0, 0, 128), np.uint8))
    with_it = developed(file(below), {LOGO: logo}, OWN_SIZE | {"scale": 1}, format="jpeg", quality=100)
    assert with_it.placeholder == developed(file(below), {}, format="jpeg").placeholder
    red, *others = np.asarray(Image.open(io.BytesIO(with_it.variants[0].body)))[4, 4].tolist()
    assert red >= 253 and all(abs(other - 127) <= 3 for other in others)


@pytest.mark.guards("overlays-undecodable-code")
@pytest.mark.parametrize("logo", [b"", b"no picture", file(noise(30, 30))[:1500]])
def test_an_overlay_that_cannot_be_decoded_is_refused_by_its_own_name(logo: bytes) -> None:
    with pytest.raises(Rejected, match=LOGO) as refusal:
        developed(file(noise(8, 8)), {LOGO: logo}, OWN_SIZE)
    assert refusal.value.code == "overlay_undecodable"


def test_an_overlay_is_held_to_the_limits_of_an_original() -> None:
    recipe = Recipe.model_validate({"variants": [{"name": "a", "width": 8, "overlays": [{"image": LOGO}]}]})
    with pytest.raises(Rejected, match="at most"):
        develop(
            file(noise(8, 8)), recipe, limits=Limits(max_pixels=100), overlay_of={LOGO: file(noise(11, 10))}.__getitem__
        )
