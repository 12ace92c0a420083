"""Crops by attention keep what stands out, wherever it is, and are the crops around the point that is told."""

from __future__ import annotations

import io
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from darkroom.domain.recipes.recipes import FocalPoint, Recipe
from darkroom.imaging import Developed, develop
from tests.engine.golden import png_files
from tests.engine.golden.exif import exif, stored

MIDDLE = FocalPoint(x=0.5, y=0.5)
RED = (200, 40, 30)


def attended(body: bytes, *more: dict[str, Any], width: int = 90, height: int = 90, **spec: Any) -> Developed:
    """What is made of `body` with a crop by attention of that size."""
    crop = {"name": "crop", "width": width, "height": height, "fit": "cover", "format": "png", "gravity": "attention"}
    return develop(body, Recipe.model_validate({"variants": [{**crop, **spec}, *more]}))


def point_of(body: bytes, *more: dict[str, Any], **spec: Any) -> FocalPoint:
    point = attended(body, *more, **spec).attention
    assert point is not None
    return point


def encoded(picture: Image.Image, file_format: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, file_format, **options)
    return file.getvalue()


def ball(size: tuple[int, int], centre: tuple[float, float], mode: str = "RGB", radius: int = 14) -> Image.Image:
    """A red ball on flat grey ground, its centre in shares of the sides."""
    picture = Image.new("RGB", size, (120, 125, 130))
    x, y = centre[0] * size[0], centre[1] * size[1]
    ImageDraw.Draw(picture).ellipse((x - radius, y - radius, x + radius, y + radius), fill=RED)
    return picture.convert(mode)


def among_leaves() -> Image.Image:
    """A green portrait with one red ball: docs/images/attention.webp, without the crop's frame."""
    chance, size = random.Random(1), (160, 240)
    picture = Image.new("RGB", size, (50, 120, 45))
    draw = ImageDraw.Draw(picture)
    for _ in range(260):
        x, y, across, down = *(chance.randrange(side) for side in size), chance.randrange(3, 14), chance.randrange(2, 6)
        colour = chance.randrange(20, 90), chance.randrange(90, 190), chance.randrange(20, 70)
        draw.ellipse((x - across, y - down, x + across, y + down), fill=colour)
    draw.ellipse((68, 190, 92, 214), fill=RED)
    return picture


def reds(body: bytes) -> int:
    """How many pixels of a file are the ball's, by another decoder."""
    red, green, _ = np.moveaxis(np.asarray(Image.open(io.BytesIO(body)).convert("RGB"), dtype=int), 2, 0)
    return int((red - green > 80).sum())


@pytest.mark.parametrize(
    ("size", "centre"),
    [
        ((400, 180), (0.9, 0.3)),
        ((400, 180), (0.1, 0.8)),
        ((400, 180), (0.35, 0.5)),
        ((180, 400), (0.5, 0.08)),
        ((180, 400), (0.3, 0.9)),
    ],
)
def test_the_crop_contains_the_one_thing_that_there_is(size: tuple[int, int], centre: tuple[float, float]) -> None:
    picture = ball(size, centre)
    original, crop = encoded(picture), attended(encoded(picture), width=180, height=180).variants[0]
    assert (crop.width, crop.height) == (180, 180)
    assert reds(crop.body) == reds(original) > 500


def test_among_leaves_not_even_the_one_red_thing_stands_out_as_the_documents_show() -> None:
    body = encoded(among_leaves())
    made = attended(body, width=160, height=160)
    assert made.attention is not None and abs(made.attention.y - 0.5) < 0.02
    assert 0.3 < reds(made.variants[0].body) / reds(body) < 0.6
    (crop,) = attended(body, width=160, height=160, gravity=FocalPoint(x=0.5, y=0.84)).variants
    assert reds(crop.body) == reds(body), "the advice for who knows better"


@pytest.mark.guards("attention-point-before-edits")
@pytest.mark.parametrize(
    "edits",
    [
        {"rotate": 90},
        {"rotate": 270, "flip": "horizontal"},
        {"flip": "vertical", "trim": 30},
        {"rotate": 90, "trim": 30},
    ],
)
@pytest.mark.parametrize("orientation", [1, 6])
def test_the_point_is_told_as_it_was_before_the_picture_was_edited(edits: dict[str, Any], orientation: int) -> None:
    samples = stored(np.asarray(ball((500, 260), (0.8, 0.3))), orientation)
    body = png_files.png(samples, png_files.RGB, before=[(b"eXIf", exif(orientation))])
    crop = {"name": "crop", "width": 60, "height": 60, "fit": "cover", "format": "png", "gravity": "attention"}
    point = develop(body, Recipe.model_validate({"variants": [crop], **edits})).attention
    assert point is not None
    assert (point.x, point.y) == pytest.approx((0.8, 0.3), abs=0.08)


def test_crops_are_those_around_the_point_that_is_told() -> None:
    body = encoded(ball((400, 180), (0.8, 0.3)))
    wide = {"name": "wide", "width": 200, "height": 50, "fit": "cover", "format": "png", "gravity": "attention"}
    by_attention = attended(body, wide, width=120, height=120)
    point = by_attention.attention
    assert point is not None and point.x > 0.6
    by_point = attended(body, {**wide, "gravity": point}, width=120, height=120, gravity=point)
    assert by_point.variants == by_attention.variants
    assert by_point.attention is None


def test_a_point_is_told_only_if_it_was_asked_for() -> None:
    body = encoded(ball((100, 60), (0.8, 0.3)))
    spec = {"name": "whole", "width": 50, "format": "png"}
    assert attended(body, gravity="west").attention is None
    assert attended(body, spec).variants[1] == attended(body, spec, gravity="west").variants[1]


@pytest.mark.guards("attention-least-base-size")
@pytest.mark.parametrize("small", [1, 8])
def test_tiny_crops_are_found_in_a_picture_that_is_large_enough(small: int) -> None:
    body = encoded(ball((400, 180), (0.9, 0.3)))
    assert point_of(body, width=small, height=small) == point_of(body, width=42, height=42)


def test_the_point_is_that_of_the_upright_picture() -> None:
    samples = np.asarray(ball((120, 60), (0.8, 0.3)), dtype=np.uint16)
    points = {
        point_of(
            png_files.png(stored(samples, turned), png_files.RGB, before=[(b"eXIf", exif(turned))]), width=60, height=60
        )
        for turned in range(1, 9)
    }
    assert len(points) == 1 and points.pop().x > 0.6


@pytest.mark.guards("attention-disagreeing-looks")
def test_the_more_two_looks_differ_the_nearer_the_point_is_to_the_middle() -> None:
    agreed = vars(sys.modules["darkroom.imaging.attention"])["_agreed"]
    assert [agreed(0.9, far) for far in (0.9, 0.85, 0.8, 0.7, 0.1, -3)] == [0.9, 0.7812, 0.675, 0.5, 0.5, 0.5]


def test_the_point_is_the_same_in_all_threads() -> None:
    dice = np.random.default_rng(3)
    body = encoded(Image.fromarray(dice.integers(0, 255, (200, 300, 3), dtype=np.uint8)))
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(point_of, [body] * 12))) == 1


@pytest.mark.parametrize("box", [(300, 300), (8000, 10), (31, 20)])
@pytest.mark.parametrize("enlarge", [False, True])
def test_a_crop_larger_than_the_picture_is_made_as_any_other(box: tuple[int, int], enlarge: bool) -> None:
    body = encoded(ball((30, 20), (0.8, 0.5), radius=4))
    spec: dict[str, Any] = {"width": box[0], "height": box[1], "enlarge": enlarge, "format": "webp"}
    made, middle = attended(body, **spec).variants[0], attended(body, **spec, gravity="centre").variants[0]
    assert (made.width, made.height) == (middle.width, middle.height)


@pytest.mark.parametrize("size", [(1, 1), (2, 1), (1, 100), (100, 1), (3, 3)])
@pytest.mark.parametrize("mode", ["L", "LA", "RGBA"])
def test_the_smallest_and_narrowest_pictures_have_a_point(size: tuple[int, int], mode: str) -> None:
    pixels = np.arange(size[0] * size[1], dtype=np.uint8).reshape(size[1], size[0]) * 2
    point = point_of(encoded(Image.fromarray(pixels).convert(mode)), width=1, height=1)
    assert 0 <= point.x <= 1 and 0 <= point.y <= 1


@pytest.mark.guards("attention-uniform-keeps-middle")
@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_where_nothing_stands_out_the_middle_is_kept(mode: str) -> None:
    assert point_of(encoded(Image.new(mode, (200, 100), 0))) == MIDDLE


@pytest.mark.parametrize(("mode", "file_format"), [("L", "PNG"), ("LA", "PNG"), ("I;16", "PNG"), ("CMYK", "JPEG")])
def test_the_thing_is_found_in_every_kind_of_picture(mode: str, file_format: str) -> None:
    picture = ball((400, 180), (0.9, 0.3), "L" if mode == "I;16" else mode)
    if mode == "I;16":
        picture = Image.fromarray(np.asarray(picture, dtype=np.uint16) * 257)
    assert point_of(encoded(picture, file_format)).x > 0.7


@pytest.mark.guards("attention-transparent-ignored")
@pytest.mark.parametrize("colour", ["black", "white"])
def test_what_is_transparent_draws_no_attention_and_what_is_on_it_does(colour: str) -> None:
    picture = Image.new("RGBA", (400, 180))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((20, 60, 80, 120), fill=(0, 255, 0, 0))  # hidden
    draw.ellipse((326, 76, 354, 104), fill=colour)
    assert point_of(encoded(picture)).x > 0.7
