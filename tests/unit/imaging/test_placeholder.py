"""Placeholders: ThumbHashes as the reference implementation makes them, and the colour that covers most."""

import base64
from collections.abc import Callable

import pytest

from darkroom.imaging.placeholder import dominant_colour, placeholder_of, thumbhash


def picture_of(width: int, height: int, pixel: Callable[[int, int], tuple[int, int, int, int]]) -> bytes:
    return b"".join(bytes(pixel(x, y)) for y in range(height) for x in range(width))


# From rgbaToThumbHash of the npm package thumbhash 0.1.1, the reference implementation, for the same pixels.
REFERENCE = {
    "landscape": (32, 24, lambda x, y: (x * 8 % 256, y * 10 % 256, x * y % 256, 255), "2xgOHZpgdodwiIiGiGeIh/OkD/eI"),
    "portrait": (
        20,
        32,
        lambda x, y: (255 - x * 12, (x * 7 + y * 5) % 256, y * 8, 255),
        "YQgOVCJ6CId3eHd4eHd6f/eoiA==",
    ),
    "with alpha": (
        16,
        16,
        lambda x, y: (x * 16, 128, y * 16, (x + y) * 8),
        "4heGNQonoIewh3p4iJN/BYqJcHeAeId4eA==",
    ),
    "transparent": (5, 7, lambda x, y: (9, 9, 9, 0), "AAiCBAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="),
    "one row": (32, 1, lambda x, y: (x * 8, 0, 255 - x * 8, 255), "1fUqmb6IiIiIiAiIcHhOhwg="),
}


@pytest.mark.parametrize("name", REFERENCE)
def test_the_hash_is_that_of_the_reference_implementation(name: str) -> None:
    width, height, pixel, expected = REFERENCE[name]
    hashed = thumbhash(width, height, picture_of(width, height, pixel))
    reference = base64.b64decode(expected)
    header = 6 if name in ("with alpha", "transparent") else 5
    assert len(hashed) == len(reference)
    assert hashed[:header] == reference[:header]
    # A wave with no amplitude is exactly between two steps, and the order of additions decides which one it gets.
    for ours, theirs in zip(hashed[header:], reference[header:], strict=True):
        assert abs((ours & 15) - (theirs & 15)) <= 1
        assert abs((ours >> 4) - (theirs >> 4)) <= 1


def test_an_even_picture_has_no_waves() -> None:
    assert set(thumbhash(8, 8, bytes((200, 100, 50, 255)) * 64)[5:]) == {0}


def test_the_dominant_colour_is_what_covers_most() -> None:
    rgba = bytes((250, 10, 10, 255)) * 40 + bytes((10, 10, 250, 255)) * 60
    assert dominant_colour(rgba) == "#0a0afa"


def test_what_cannot_be_seen_is_no_dominant_colour() -> None:
    assert dominant_colour(bytes((250, 10, 10, 20)) * 90 + bytes((10, 10, 250, 255)) * 10) == "#0a0afa"
    assert dominant_colour(bytes(40)) == "#ffffff"


def test_a_placeholder_is_text() -> None:
    placeholder = placeholder_of(4, 4, bytes((16, 32, 48, 255)) * 16)
    assert placeholder.color == "#102030"
    assert base64.b64decode(placeholder.thumbhash) == thumbhash(4, 4, bytes((16, 32, 48, 255)) * 16)
