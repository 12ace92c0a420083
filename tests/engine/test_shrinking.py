"""Shrinking on load: by how much, and what makes up for it."""

import io
import random
from functools import cache
from itertools import product

import pytest
import pyvips
from PIL import Image, ImageChops, ImageDraw, ImageStat

from darkroom.domain.images.limits import Limits
from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.imaging import develop
from darkroom.imaging.decode import open_original
from darkroom.imaging.headers import ImageHeader, read_header
from darkroom.imaging.memory import at_most
from darkroom.imaging.scaling.shrinking import quality_steps, shrink_of
from tests.support.fakes.pictures import encoded, jpeg, opened


@cache
def header(width: int, height: int, file_format: str = "JPEG") -> ImageHeader:
    body = io.BytesIO()
    Image.new("RGB", (width, height), "teal").save(body, file_format)
    parsed = read_header(body.getvalue())
    assert parsed is not None
    return parsed


@pytest.mark.guards("engine-shrink-room")
@pytest.mark.parametrize(
    ("width", "wanted", "shrink"),
    [
        (3840, 256, 8),  # the eighth is 480 pixels wide
        (3840, 259, 4),
        (3840, 516, 4),
        (3840, 517, 2),
        (3840, 1342, 2),
        (3840, 1343, 1),
        (3840, 3840, 1),
    ],
)
def test_what_is_shrunk_leaves_room_around_what_is_wanted(width: int, wanted: int, shrink: int) -> None:
    assert shrink_of(header(width, width // 2), (wanted, wanted // 2)) == shrink
    assert shrink_of(header(width // 2, width), (wanted // 2, wanted)) == shrink
    assert shrink_of(header(width, width // 2, "WEBP"), (wanted, wanted // 2)) == shrink
    assert shrink_of(header(width, width // 2, "PNG"), (wanted, wanted // 2)) == 1


@pytest.mark.guards("engine-shrink-padding")
@pytest.mark.parametrize(
    ("width", "shrink"),
    [
        (3840, 8),
        (3839, 8),  # it would stretch, but can be put in place
        (4085, 4),  # an eighth cannot: steps of 1.995 pixels never end at a whole one
        (4086, 2),
    ],
)
def test_a_jpeg_is_shrunk_only_if_what_is_dropped_at_its_end_does_not_stretch_the_rest(width: int, shrink: int) -> None:
    assert shrink_of(header(width, 2160), (256, 144)) == shrink


@pytest.mark.guards("engine-large-webp-halved")
def test_a_webp_too_large_to_be_decoded_whole_is_halved_wherever_that_is_large_enough() -> None:
    large = header(6000, 5000, "WEBP")
    assert large.shrinks_to_fit
    assert shrink_of(large, (3000, 2500)) == 2
    assert shrink_of(large, (3001, 2501)) == 1


def test_what_is_nearly_as_large_as_the_halved_picture_has_its_quality_raised() -> None:
    assert [quality_steps("jpeg", share) for share in (0.4, 0.5, 0.51, 0.7)] == [0, 0, 1, 1]
    assert [quality_steps("webp", share) for share in (0.4, 0.5, 0.51, 0.7)] == [0, 0, 0.5, 0.5]
    assert quality_steps("png", 0.7) == quality_steps("avif", 0.7) == 0


@cache
def print_of_letters() -> bytes:
    """A JPEG of a page of small print, in which all detail is at the limit of what its pixels can show."""
    page, dead_letters = Image.new("L", (2016, 1512), "white"), random.Random(7)
    for top in range(10, 1500, 15):
        text = "".join(dead_letters.choice("abcdefghilmnoprstu   ") for _ in range(330))
        ImageDraw.Draw(page).text((10, top), text, fill="black")
    return encoded(page.resize((4032, 3024), Image.Resampling.NEAREST), "JPEG", quality=92)


@pytest.mark.guards("engine-shrink-room")
@pytest.mark.parametrize("width", [1400, 970, 800, 600, 530, 480, 400, 300, 265])
def test_small_print_stays_what_it_is_though_the_decoder_shrinks_it(width: int) -> None:
    assert distance(print_of_letters(), width) < 4


def distance(body: bytes, width: int) -> float:
    """The mean difference, in levels, of a variant of that width from a full decode's."""
    recipe = Recipe(variants=(VariantSpec(name="one", width=width, format="png"),))
    shrunk = opened(develop(body, recipe).variants[0].body).convert("L")
    true = opened(body).convert("L").resize(shrunk.size, Image.Resampling.LANCZOS)
    return ImageStat.Stat(ImageChops.difference(shrunk, true)).mean[0]


@pytest.mark.guards("engine-shrink-without-stretch")
@pytest.mark.parametrize(
    ("cut_width", "cut_height", "file_format"),
    [
        # Across and down are independent: of WebP, which is slow, the short form has equal leftovers alone.
        pytest.param(*cut, file_format, marks=[pytest.mark.long] if file_format == "WEBP" and len(set(cut)) > 1 else [])
        for file_format in ("JPEG", "WEBP")
        for cut in product((0, 1, 3, 7), repeat=2)
    ],
)
def test_nothing_moves_whatever_is_left_over_of_a_block(cut_width: int, cut_height: int, file_format: str) -> None:
    squares = Image.new("L", (1920 - cut_width, 1440 - cut_height), "white")
    for left, top in product(range(0, 1920, 160), range(0, 1440, 160)):
        ImageDraw.Draw(squares).rectangle((left, top, left + 79, top + 79), fill="black")
    body = encoded(squares, file_format, quality=95)
    for width in (250, 480, 660):
        assert distance(body, width) < 1


def quality_of(body: bytes, width: int) -> bytes:
    """The quantisation tables reveal the quality."""
    recipe = Recipe(variants=(VariantSpec(name="one", width=width, quality=80),))
    return repr(opened(develop(body, recipe).variants[0].body).quantization).encode()  # type: ignore[attr-defined]


def test_only_a_variant_that_shrinking_softened_has_the_raised_quality() -> None:
    body = jpeg(800, 600)
    plain = quality_of(body, 700)  # needs the whole picture
    assert quality_of(body, 260) != plain
    assert quality_of(body, 200) == plain


def sampling_of(body: bytes, width: int, quality: int) -> list[tuple[int, int]]:
    """How many samples of each colour a JPEG has, across and down."""
    recipe = Recipe(variants=(VariantSpec(name="one", width=width, quality=quality),))
    return [layer[1:3] for layer in opened(develop(body, recipe).variants[0].body).layer]  # type: ignore[attr-defined]


@pytest.mark.guards("shrinking-colour-sampling")
def test_a_raised_quality_does_not_double_the_resolution_of_colours() -> None:
    body = jpeg(800, 600)
    halved, full = 260, 700
    for quality in (88, 89):
        assert sampling_of(body, halved, quality) == sampling_of(body, full, quality) == [(2, 2), (1, 1), (1, 1)]
    assert sampling_of(body, halved, 90) == sampling_of(body, full, 90) == [(1, 1)] * 3


@pytest.mark.parametrize("shrink", [1, 2, 4, 8])
@pytest.mark.parametrize(("mode", "options"), [("L", {}), ("RGB", {"progressive": True}), ("RGB", {"subsampling": 0})])
def test_a_jpeg_that_is_decoded_at_once_has_the_pixels_of_a_streamed_one(
    mode: str, options: dict[str, object], shrink: int
) -> None:
    noise = Image.frombytes("RGB", (157, 91), random.Random(7).randbytes(157 * 91 * 3)).convert(mode)
    body = encoded(noise, "JPEG", **options)
    at_once = open_original(body, Limits()).opened(shrink)
    streamed = pyvips.Image.jpegload_buffer(body, shrink=shrink)
    assert (at_once.width, at_once.height, at_once.interpretation) == (
        streamed.width,
        streamed.height,
        streamed.interpretation,
    )
    assert bytes(at_once.write_to_memory()) == bytes(streamed.write_to_memory())


@pytest.mark.guards("engine-large-jpeg-streamed")
def test_a_large_jpeg_is_not_held_in_memory() -> None:
    large = open_original(jpeg(5000, 5000), Limits())
    with large.decoding(), at_most(48_000_000):
        assert large.opened(1).resize(0.01).copy_memory().width == 50
