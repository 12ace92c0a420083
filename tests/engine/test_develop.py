"""Developing: upright, in sRGB, in the source's family, without metadata, and never out of bounds."""

import gc
import io
import itertools
import random
import re
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pillow_heif
import pytest
import pyvips
from PIL import Image

from darkroom.domain.images.limits import InputFormat, Limits
from darkroom.domain.images.media_types import MEDIA_TYPES
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.imaging import Developed, develop, developing
from darkroom.imaging.decode import Original, check_limits, open_original
from darkroom.imaging.headers import MAX_PIECES, ImageHeader
from darkroom.imaging.memory import at_most
from tests.engine.golden import isobmff_files
from tests.fuzz.corpus import corpus
from tests.support.fakes.pictures import encoded, jpeg, opened, picture

CONTAINERS: frozenset[InputFormat] = frozenset({"avif", "heic"})
ONE = Recipe(variants=(VariantSpec(name="one", width=100, height=100, format="png"),))


def develop_one(body: bytes, **spec: Any) -> Developed:
    return develop(body, Recipe(variants=(VariantSpec(**{"name": "one", "width": 100, "height": 100, **spec}),)))


def refusal(body: bytes) -> str:
    with pytest.raises(Rejected) as error:
        develop_one(body)
    return error.value.code


def transparent(mode: str = "RGBA") -> Image.Image:
    image = Image.new("RGBA", (40, 40), (255, 0, 0, 0))
    image.paste((0, 0, 255, 255), (20, 0, 40, 40))
    return image if mode == "RGBA" else image.convert(mode)


JPEGS: dict[str, dict[str, Any]] = {
    "baseline": {},
    "4:4:4": {"subsampling": "4:4:4"},
    "grey": {"mode": "L"},
    "restarts": {"restart_marker_blocks": 7},
    "progressive": {"progressive": True},
    "progressive with restarts": {"progressive": True, "restart_marker_blocks": 7},
}


def noisy_jpeg(*, mode: str = "RGB", **options: Any) -> bytes:
    pixels = random.Random(7).randbytes(40 * 30 * len(mode))
    return encoded(Image.frombytes(mode, (40, 30), pixels).resize((320, 240)), "JPEG", quality=90, **options)


@pytest.mark.guards("engine-jpeg-lost-end-only")
@pytest.mark.parametrize("kind", JPEGS)
@pytest.mark.parametrize("width", [320, 160, 40])  # decoded whole, at a half, at an eighth
def test_a_jpeg_that_lacks_nothing_but_its_end_is_developed_and_one_that_lacks_more_is_refused(
    kind: str, width: int
) -> None:
    body = noisy_jpeg(**JPEGS[kind])
    complete = develop_one(body, width=width, height=width)
    for missing in (1, 2):
        assert develop_one(body[:-missing], width=width, height=width) == complete
    for missing in (*range(4, 40), len(body) // 4, len(body) // 2):
        assert refusal(body[:-missing]) == "truncated"


def test_data_behind_a_jpegs_end_is_no_part_of_it_however_much_there_is() -> None:
    body = noisy_jpeg()
    film = bytes(1_000_000)  # phones put one there
    assert develop_one(body + film) == develop_one(body)


@pytest.mark.parametrize("junk", [b"\0", b"junk", b"\xff", b"\xff\0\xff\0", bytes(1000)], ids=repr)
def test_junk_between_a_jpegs_markers_is_passed_over(junk: bytes) -> None:
    body = noisy_jpeg(progressive=True)
    at = [match.start() for match in re.finditer(rb"\xff[\xdb\xc2\xc4]", body)]
    spoiled = b"".join(body[begin:end] + junk for begin, end in itertools.pairwise([0, *at])) + body[at[-1] :]
    assert len(at) > 3
    assert develop_one(spoiled) == develop_one(body)


@pytest.mark.guards("engine-nested-jpeg-refused")
def test_a_jpeg_in_another_is_refused_as_browsers_do() -> None:
    assert refusal(b"\xff\xd8" + noisy_jpeg()) == "undecodable"


@pytest.mark.parametrize("size", [(8192, 6144), (8160, 6144), (8272, 6200)])
def test_fifty_megapixels_of_phones_and_cameras_are_within_the_limit(size: tuple[int, int]) -> None:
    check_limits(header(*size), Limits())


@pytest.mark.parametrize(("name", "bytes_per_pixel"), [("avif-420", 12), ("heic-plain", 6)])
def test_avif_and_heic_are_limited_by_the_memory_that_they_take(name: str, bytes_per_pixel: int) -> None:
    body = corpus()[name]
    original = open_original(body, Limits(input_formats=CONTAINERS))
    taken = original.width * original.height * bytes_per_pixel
    open_original(body, Limits(input_formats=CONTAINERS, max_decoder_bytes=taken))
    with pytest.raises(Rejected, match=r"too many for a file of its kind\. Send a smaller version\.$"):
        open_original(body, Limits(input_formats=CONTAINERS, max_decoder_bytes=taken - 1))


def original(**more: Any) -> Original:
    return Original(width=1, height=1, opened=lambda _: pyvips.Image.black(1, 1), **more)


@pytest.mark.guards("engine-heif-memory-no-damage")
@pytest.mark.parametrize(
    "said",
    [
        "out of memory",
        "Failed to decode image: Out of memory",
        "Memory allocation error: Allocating 150994959 bytes failed",
        "Invalid input: Security limit exceeded: Image size 40000x40000 exceeds the maximum image size",
    ],
)
def test_who_sends_what_takes_too_much_memory_to_decode_is_told_so(said: str) -> None:
    file = original(allowance_bytes=1 << 40)
    with pytest.raises(Rejected, match="takes too much memory to decode") as refused, file.decoding():
        raise RuntimeError(said)
    assert refused.value.code == "too_many_pixels"
    with pytest.raises(MemoryError), original().decoding():
        raise RuntimeError(said)


@pytest.mark.guards("engine-own-bug-no-damage")
@pytest.mark.parametrize("error", [KeyError, TypeError, AttributeError, AssertionError, IndexError, ZeroDivisionError])
@pytest.mark.parametrize("complete", [True, False])
def test_a_bug_of_ours_is_not_called_damage_of_the_file(error: type[Exception], complete: bool) -> None:
    with pytest.raises(error) as raised, original(complete=complete).decoding():
        raise error
    assert raised.value.__traceback__ is not None


def with_matrix(coefficients: int) -> bytes:
    """A sound AVIF with these matrix coefficients (ITU-T H.273, 8.3)."""
    return isobmff_files.avif(SAMPLES, properties=[isobmff_files.nclx(9, 16, coefficients)])


def in_another_coding(brand: bytes, kind: bytes) -> bytes:
    coded = isobmff_files.hevc_item(SAMPLES)
    return isobmff_files.container(brand, [replace(coded, kind=kind)])


def with_fractional_sampling() -> bytes:
    """A JPEG whose components have 3, 2 and 1 samples in a row for the same pixels."""
    body = bytearray(jpeg(64, 48))
    at = body.index(b"\xff\xc0")
    body[at + 11], body[at + 14] = 0x31, 0x21
    return bytes(body)


def with_sizes(body: bytes, width: int, height: int) -> bytes:
    return body.replace(struct.pack(">II", 64, 48), struct.pack(">II", width, height))


def behind_other_sizes(body: bytes) -> bytes:
    """A container with more sizes before its own than are read."""
    end = int.from_bytes(body[:4])
    sizes = (b"\0\0\0\x14ispe" + struct.pack(">III", 0, 1, 1)) * MAX_PIECES
    return body[:end] + struct.pack(">I4s", 8 + len(sizes), b"free") + sizes + body[end:]


SAMPLES = np.full((48, 64, 3), (200, 100, 50), np.uint8)
AVIF, HEIC = isobmff_files.avif(SAMPLES), isobmff_files.heic(SAMPLES)
COLOURS, CODING = "colours are coded in a way that is not converted", "is coded in a way that is not decoded"


REFUSED: dict[str, tuple[bytes, str, str]] = {
    **{
        f"avif-matrix-{matrix}": (with_matrix(matrix), "unsupported_format", COLOURS) for matrix in (3, 10, 11, 13, 255)
    },
    "heic-matrix-14": (
        isobmff_files.heic(SAMPLES, properties=[isobmff_files.nclx(9, 16, 14)]),
        "unsupported_format",
        COLOURS,
    ),
    "heic-matrix-99": (
        isobmff_files.heic(SAMPLES, properties=[isobmff_files.nclx(9, 16, 99)]),
        "unsupported_format",
        COLOURS,
    ),
    "avif-of-hevc": (in_another_coding(b"avif", b"hvc1"), "unsupported_format", CODING),
    "heic-of-av1": (AVIF.replace(b"avif", b"heic"), "unsupported_format", "not what phones write"),
    "heic-of-vvc": (in_another_coding(b"heic", b"vvc1"), "unsupported_format", "not what phones write"),
    "jpeg-of-fractional-sampling": (with_fractional_sampling(), "unsupported_format", CODING),
    "avif-of-too-many-pixels": (with_sizes(AVIF, 20_000, 20_000), "too_many_pixels", "The image is 20000×20000 pixels"),
    "avif-of-a-long-side": (with_sizes(AVIF, 66_000, 340), "side_too_long", "The image is 66000×340 pixels"),
    "avif-of-endless-sizes": (behind_other_sizes(with_sizes(AVIF, 66_000, 340)), "undecodable", "The file is damaged"),
    "heic-of-too-many-pixels": (with_sizes(HEIC, 20_000, 20_000), "too_many_pixels", "The image is 20000×20000 pixels"),
    "avif-cut-in-its-picture": (AVIF[:-9], "truncated", "part of it is missing"),
    "avif-cut-in-its-boxes": (AVIF[:200], "truncated", "part of it is missing"),
    "heic-cut-in-its-picture": (HEIC[:-9], "truncated", "part of it is missing"),
    "heic-cut-in-its-boxes": (HEIC[:200], "truncated", "part of it is missing"),
    "avif-damaged": (AVIF[:-40] + bytes(40), "undecodable", "The file is damaged"),
    "heic-damaged": (HEIC[:-9000] + np.random.default_rng(3).bytes(9000), "undecodable", "The file is damaged"),
}


@pytest.mark.guards("engine-unsupported-no-damage", case="avif-matrix-10")
@pytest.mark.guards("engine-avif-size-limits", case="avif-of-too-many-pixels")
@pytest.mark.guards("engine-container-truncation", case="heic-cut-in-its-boxes")
@pytest.mark.parametrize("name", REFUSED)
def test_damage_is_told_from_what_is_not_supported_and_from_what_is_too_large(name: str) -> None:
    body, code, message = REFUSED[name]
    with pytest.raises(Rejected, match=message) as refused:
        develop(body, ONE, limits=Limits(input_formats=frozenset(MEDIA_TYPES)))
    assert refused.value.code == code
    assert ("damaged" in refused.value.message) == (code == "undecodable")
    if code == "unsupported_format":
        assert refused.value.message.endswith("Save it as an ordinary JPEG or PNG.")


@pytest.mark.parametrize("width", [64, 70])  # 70: the decoder's rows are longer than the picture's
def test_a_grey_heic_with_ten_bits_is_developed(width: int) -> None:
    levels = [[column * 65_535 // (width - 1) for column in range(width)]] * 64
    file = io.BytesIO()
    pillow_heif.from_bytes("I;16", (width, 64), np.array(levels, "<u2").tobytes()).save(file, quality=-1)
    recipe = Recipe(variants=(VariantSpec(name="same", width=width, format="png"),))
    (variant,) = develop(file.getvalue(), recipe, limits=Limits(input_formats=CONTAINERS)).variants
    made = np.asarray(opened(variant.body))
    assert made.shape == (64, width) and np.abs(made - np.array(levels) / 257).max() < 2


@pytest.mark.guards("engine-heic-premultiplied-alpha")
def test_a_heic_whose_colours_are_premultiplied_is_developed() -> None:
    opacity = np.full((48, 64), 128, np.uint8)
    alpha = isobmff_files.hevc_item(
        opacity,
        properties=[isobmff_files.auxiliary(b"urn:mpeg:hevc:2015:auxid:1")],
        refers=((b"auxl", (1,)),),
    )
    premultiplied = isobmff_files.hevc_item(SAMPLES // 2, refers=((b"prem", (2,)),))
    body = isobmff_files.container(b"heic", [premultiplied, alpha])
    (variant,) = develop(body, ONE, limits=Limits(input_formats=CONTAINERS)).variants
    rgba = np.asarray(opened(variant.body).convert("RGBA"))
    assert np.abs(rgba[24, 32].astype(int) - [200, 100, 50, 128]).max() <= 2


@pytest.mark.guards("engine-refused-picture-released")
@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP"])
def test_nothing_of_a_refused_file_stays_in_memory(file_format: str) -> None:
    with Image.open(io.BytesIO(noisy_jpeg())) as file:
        body = encoded(file, file_format)
    gc.collect()
    gc.disable()
    try:
        assert refusal_of(body[: len(body) // 2]) == "truncated"
        left = [
            type(survivor)
            for survivor in gc.get_objects()
            if isinstance(survivor, (Original, pyvips.Source, pyvips.Image))
        ]
    finally:
        gc.enable()
    assert left == []


def refusal_of(body: bytes) -> str:
    """The code alone: what pytest keeps of an exception has a traceback, and with it the picture."""
    try:
        develop_one(body)
    except Rejected as refused:
        return refused.code
    return "developed"


def header(width: int, height: int, **more: Any) -> ImageHeader:
    return ImageHeader(**{"format": "jpeg", "width": width, "height": height, "parts": (), **more})


@pytest.mark.parametrize(
    ("image_header", "message"),
    [
        (header(9000, 6000), "which is 54.0 megapixels; at most 52 are developed"),
        (header(8000, 6000, decoder_bytes=320_000_001), "Send a smaller version or a baseline JPEG"),
        (header(8000, 6000, format="png", raw_bytes=160_000_001), "or one with 8 bits that is not interlaced"),
        (
            header(8000, 6000, format="webp", decoder_bytes=320_000_001),
            "for a file of its kind. Send a smaller version.",
        ),
    ],
)
def test_who_sends_too_many_pixels_is_told_what_would_help(image_header: ImageHeader, message: str) -> None:
    with pytest.raises(Rejected, match=re.escape(message)):
        check_limits(image_header, Limits())


@pytest.mark.parametrize("file_format", ["JPEG", "PNG"])
@pytest.mark.parametrize("size", [(1080, 20_000), (65_500, 400)])
def test_a_long_screenshot_is_developed(file_format: str, size: tuple[int, int]) -> None:
    variant = develop_one(encoded(Image.new("RGB", size, "green"), file_format), width=400, height=400).variants[0]
    assert max(variant.width, variant.height) == 400


@pytest.mark.parametrize("body", [b"", b"hello", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"%PDF-1.7"])
def test_what_is_no_image_is_refused(body: bytes) -> None:
    assert refusal(body) in ("unsupported_format", "undecodable", "truncated")


@pytest.mark.parametrize("file_format", ["TIFF", "BMP", "ICO", "PPM"])
def test_other_decoders_stay_shut(file_format: str) -> None:
    assert refusal(encoded(picture(), file_format)) == "unsupported_format"


def test_the_first_variant_does_not_change_the_second() -> None:
    # Encoding as JPEG flattens; the WebP after it must still be transparent.
    body = encoded(transparent(), "PNG")
    recipe = Recipe(
        variants=(
            VariantSpec(name="a", width=40, height=40, format="jpeg"),
            VariantSpec(name="b", width=40, height=40, format="webp"),
        )
    )
    second = Image.open(io.BytesIO(develop(body, recipe).variants[1].body)).convert("RGBA")
    assert second.getpixel((5, 5))[3] == 0  # type: ignore[index]


@pytest.mark.guards("engine-failed-attempt-cancels")
def test_variants_that_nobody_waits_for_are_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = sys.modules[develop.__module__]
    encode_under, encoded_widths = vars(engine)["encode_under"], []

    def encode(image: Any, *arguments: Any, **options: Any) -> Any:
        encoded_widths.append(image.width)
        return encode_under(image, *arguments, **options)

    monkeypatch.setattr(engine, "encode_under", encode)
    slow = ThreadPoolExecutor(max_workers=2, initializer=partial(time.sleep, 1))
    monkeypatch.setattr(engine, "_ENCODERS", slow)
    recipe = Recipe(variants=tuple(VariantSpec(name=f"w{width}", width=width) for width in (80, 60, 40, 20)))
    with pytest.raises(ZeroDivisionError), developing(jpeg(100, 100), recipe):
        raise ZeroDivisionError("a bug")
    slow.shutdown()
    assert encoded_widths in ([], [80], [80, 60]), "no more than had begun"


@pytest.mark.guards("engine-placeholder-without-copy")
def test_the_placeholder_of_a_large_picture_takes_no_copy_of_it() -> None:
    placeholder_of = vars(sys.modules[develop.__module__])["_placeholder"]
    black = pyvips.Image.black(6000, 6000, bands=3).copy(interpretation="srgb")
    in_memory = black.linear(1, [200, 90, 30]).cast("uchar").copy_memory()
    with at_most(64_000_000):
        assert placeholder_of(in_memory).color == "#c85a1e"


@pytest.mark.parametrize(
    ("mode", "colour"),
    [("L", (90,)), ("LA", (90, 128)), ("RGB", (200, 90, 30)), ("RGBA", (200, 90, 30, 128))],
)
def test_a_placeholder_shows_the_colour_of_every_kind_of_picture(mode: str, colour: tuple[int, ...]) -> None:
    placeholder = develop_one(encoded(picture(300, 200, mode, colour), "PNG"), width=200).placeholder
    shown = [int(placeholder.color[at : at + 2], 16) for at in (1, 3, 5)]
    wanted = colour[:3] if len(colour) > 2 else colour[:1] * 3
    assert all(abs(level - other) <= 2 for level, other in zip(shown, wanted, strict=True))


FIRST = (
    VariantSpec(name="large", width=300),
    VariantSpec(name="card", width=120, height=90, fit="cover", gravity="attention"),
    VariantSpec(name="thumb", width=60, format="webp"),
)
LATER = (
    VariantSpec(name="between", width=200),
    VariantSpec(name="same", width=60, format="webp"),
    VariantSpec(name="larger", width=420),
    VariantSpec(name="largest", width=620, format="png"),
    VariantSpec(name="square", width=80, height=80, fit="cover", gravity="attention"),
    VariantSpec(name="stretched", width=90, height=40, fit="exact"),
)


@pytest.mark.guards("engine-followers-change-no-other", "engine-large-follower-alone")
@pytest.mark.parametrize(
    "original",
    [
        jpeg(640, 480),
        jpeg(48, 32),
        encoded(picture(300, 200), "PNG"),
        encoded(picture(640, 480), "WEBP"),
        encoded(picture(640, 480), "GIF", save_all=True, append_images=[picture(640, 480, colour="teal")]),
    ],
    ids=["jpeg", "small", "png", "webp", "animation"],
)
def test_a_variant_has_the_same_bytes_however_it_is_made(original: bytes) -> None:
    def bodies(*variants: VariantSpec, beside: tuple[VariantSpec, ...] = ()) -> dict[str, bytes]:
        made = develop(original, Recipe.model_construct(variants=variants), beside=beside).variants
        return {variant.name: variant.body for variant in made}

    first, added = bodies(*FIRST), bodies(*LATER, beside=FIRST)
    assert bodies(*FIRST[1:], *LATER, FIRST[0], beside=FIRST) == first | added, "made again"
    for spec in LATER:
        assert bodies(spec, beside=FIRST)[spec.name] == bodies(*FIRST, spec)[spec.name] == added[spec.name], spec.name
    assert added["same"] == first["thumb"]
