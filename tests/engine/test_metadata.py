"""Nothing leaves except the picture: no EXIF, place, XMP, IPTC, profile, comment, thumbnail, resolution or time."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from darkroom.domain.images.limits import Limits
from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.imaging import Developed, develop
from tests.engine.golden import (
    colours,
    gif_files,
    isobmff_files,
    jpeg_files,
    png_files,
    profiles,
    scenes,
    structure,
    webp_files,
)
from tests.engine.golden.colours import Array
from tests.engine.golden.exif import exif
from tests.engine.golden.scenes import levels
from tests.fuzz.handmade.isobmff import box

EVERYTHING = Limits(input_formats=frozenset({"jpeg", "png", "webp", "gif", "avif", "heic"}))

SECRET = b"SECRET-52.5200N-13.4050E"

RECIPE = Recipe(
    variants=(
        VariantSpec(name="jpeg", width=60, format="jpeg"),
        VariantSpec(name="png", width=60, format="png"),
        VariantSpec(name="webp", width=60, format="webp"),
        VariantSpec(name="avif", width=60, format="avif", effort="fast"),
        VariantSpec(name="whole", width=96, height=64, format="png"),
        VariantSpec(name="small", width=60, format="jpeg", effort="small"),
        VariantSpec(name="squeezed", width=96, format="webp", max_bytes=1024),
    )
)

PICTURE = levels(scenes.smooth())
CLEAR = levels(np.dstack([scenes.smooth(), scenes.alpha_scene()]))
XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/">' + SECRET + b"</x:xmpmeta>"
PHOTOSHOP = b"Photoshop 3.0\x008BIM\x04\x04\0\0" + struct.pack(">I", 5 + len(SECRET)) + b"\x1c\x02\x78"
IPTC = PHOTOSHOP + struct.pack(">H", len(SECRET)) + SECRET


def secret_exif(orientation: int = 1) -> bytes:
    return exif(orientation, text=SECRET, gps=SECRET)


def profile(description: bytes) -> bytes:
    """An sRGB profile under some name."""
    return profiles.rgb(colours.SRGB, description=description.decode())


def jpeg(secrets: bool) -> bytes:
    """A phone's photo with everything that software is known to attach to one."""
    jfif = jpeg_files.JFIF
    description = SECRET if secrets else b"X" * len(SECRET)
    segments = [jfif, *jpeg_files.icc_segments(profile(description))]
    if secrets:
        thumbnail = SECRET * 2  # 4 by 4 pixels of RGB
        segments = [
            (jpeg_files.APP0, b"JFIF\0\x01\x02\x01\x01\x2c\x01\x2c\x04\x04" + thumbnail),
            (jpeg_files.APP0, b"JFXX\0\x13\x01\x01" + SECRET),
            jpeg_files.exif_segment(secret_exif()),
            (jpeg_files.APP1, b"http://ns.adobe.com/xap/1.0/\0" + XMP),
            (jpeg_files.APP1, b"http://ns.adobe.com/xmp/extension/\0" + b"0" * 40 + XMP),
            *segments[1:],
            (jpeg_files.APP2, b"MPF\0" + SECRET),
            (jpeg_files.APP11, b"JP\0\1\0\0\0\1" + box(b"jumb", SECRET)),
            (jpeg_files.APP13, IPTC),
            (jpeg_files.COM, SECRET),
            (0xEF, SECRET),
        ]
    file = jpeg_files.jpeg(PICTURE, segments=segments)
    # Phones put a second picture, or a film, after the first.
    return file + (jpeg_files.jpeg(PICTURE[::-1], segments=[(jpeg_files.COM, SECRET)]) + SECRET if secrets else b"")


def cmyk_jpeg(secrets: bool) -> bytes:
    segments = [jpeg_files.adobe(0), *jpeg_files.icc_segments(profiles.press())]
    if secrets:
        segments += [(jpeg_files.APP13, IPTC), (jpeg_files.COM, SECRET), jpeg_files.exif_segment(secret_exif())]
    return jpeg_files.jpeg((1 - scenes.inks()) * 255, transform="none", segments=segments)


def png(samples: Array, colour_type: int, *, depth: int = 8) -> Callable[[bool], bytes]:
    def made(secrets: bool) -> bytes:
        description = SECRET if secrets else b"X" * len(SECRET)
        is_grey = colour_type in (png_files.GREY, png_files.GREY_ALPHA)
        before = [] if is_grey else [png_files.iccp(profile(description))]
        if not secrets:
            return png_files.png(samples, colour_type, depth=depth, before=before)
        packed = zlib.compress(SECRET)
        before += [
            (b"pHYs", struct.pack(">IIB", 11811, 11811, 1)),
            (b"tIME", struct.pack(">HBBBBB", 2026, 5, 4, 3, 2, 1)),
            (b"eXIf", secret_exif()),
            (b"tEXt", b"Comment\0" + SECRET),
            (b"tEXt", b"Raw profile type exif\0\nexif\n 24\n" + SECRET.hex().encode()),
            (b"zTXt", b"Author\0\0" + packed),
            (b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + XMP),
            (b"sPLT", SECRET[:20] + b"\0\x08"),
            (b"bKGD", b"\0\x07" if is_grey else b"\0\x07\0\x08\0\x09"),
            (b"seCr", SECRET),
        ]
        after = [(b"tEXt", b"Software\0" + SECRET), (b"tIME", struct.pack(">HBBBBB", 2026, 5, 4, 3, 2, 1))]
        return png_files.png(samples, colour_type, depth=depth, before=before, after=after[:1]) + b"PK\x03\x04" + SECRET

    return made


def apng(secrets: bool) -> bytes:
    before = [(b"tEXt", b"Comment\0" + SECRET), (b"eXIf", secret_exif())] if secrets else []
    return png_files.apng([PICTURE, 255 - PICTURE], png_files.RGB, before=before)


def webp(samples: Array, quality: int | None) -> Callable[[bool], bytes]:
    def made(secrets: bool) -> bytes:
        before = [(b"ICCP", profile(SECRET if secrets else b"X" * len(SECRET)))]
        after = [(b"EXIF", secret_exif()), (b"XMP ", XMP), (b"SECR", SECRET)] if secrets else []
        return webp_files.webp(samples, quality=quality, before=before, after=after) + (SECRET if secrets else b"")

    return made


def animated_webp(secrets: bool) -> bytes:
    after = [(b"EXIF", secret_exif()), (b"XMP ", XMP)] if secrets else []
    return webp_files.animation((96, 64), [(PICTURE, 0, 0), (255 - PICTURE, 0, 0)], after=after)


def gif(secrets: bool) -> bytes:
    extensions = []
    if secrets:
        extensions = [
            gif_files.comment(SECRET),
            gif_files.extension(0xFF, b"XMP DataXMP", XMP),
            gif_files.extension(0xFF, b"ICCRGBG1012", profile(SECRET)),
            gif_files.extension(0x01, bytes(12), SECRET),
        ]
    table = levels(scenes.vivid(256, 3)[1])
    frames = [gif_files.Frame(indices=levels(scenes.grey_scene()), transparent=3)]
    return gif_files.gif((96, 64), frames, colours=table, extensions=extensions) + (SECRET if secrets else b"")


def avif(secrets: bool) -> bytes:
    others = [isobmff_files.exif_item(secret_exif()), isobmff_files.xmp_item(XMP)] if secrets else []
    tagged = isobmff_files.colour_profile(profile(SECRET if secrets else b"X" * len(SECRET)))
    extra = box(b"uuid", SECRET) if secrets else b""
    return isobmff_files.avif(PICTURE, properties=[tagged], others=others, extra=extra)


def heic(secrets: bool) -> bytes:
    others = [isobmff_files.exif_item(secret_exif()), isobmff_files.xmp_item(XMP)] if secrets else []
    tagged = isobmff_files.colour_profile(profile(SECRET if secrets else b"X" * len(SECRET)))
    extra = box(b"uuid", SECRET) if secrets else b""
    return isobmff_files.heic(PICTURE, properties=[tagged], others=others, extra=extra)


SOURCES: dict[str, Callable[[bool], bytes]] = {
    "jpeg": jpeg,
    "jpeg-cmyk": cmyk_jpeg,
    "png": png(PICTURE, png_files.RGB),
    "png-grey": png(PICTURE[..., 0], png_files.GREY),
    "png-alpha": png(CLEAR, png_files.RGBA),
    "png-16-bit": png(levels(scenes.smooth(), 65535), png_files.RGB, depth=16),
    "png-animated": apng,
    "webp": webp(PICTURE, None),
    "webp-lossy-alpha": webp(CLEAR, 90),
    "webp-animated": animated_webp,
    "gif": gif,
    "avif": avif,
    "heic": heic,
}


@cache
def developed(source: str, secrets: bool) -> Developed:
    return develop(SOURCES[source](secrets), RECIPE, limits=EVERYTHING)


def bodies(source: str) -> dict[str, bytes]:
    """What a source full of secrets is developed into, by the variants' names."""
    return {variant.name: variant.body for variant in developed(source, True).variants}


@pytest.mark.parametrize("source", SOURCES)
def test_the_files_that_are_tried_do_carry_secrets(source: str) -> None:
    full, bare = SOURCES[source](True), SOURCES[source](False)
    assert SECRET in full and SECRET not in bare
    assert full.count(SECRET) >= (3 if source != "png-animated" else 2)


@pytest.mark.parametrize("source", SOURCES)
def test_metadata_changes_not_one_byte_of_what_comes_out(source: str) -> None:
    with_secrets, without = developed(source, True), developed(source, False)
    for variant, other in zip(with_secrets.variants, without.variants, strict=True):
        assert variant == other, variant.name
    assert with_secrets.placeholder == without.placeholder
    assert with_secrets.notices == without.notices


@pytest.mark.parametrize("source", SOURCES)
def test_no_secret_and_no_name_of_a_carrier_is_in_the_bytes(source: str) -> None:
    for name, body in bodies(source).items():
        for trace in (SECRET, SECRET[:8], SECRET.hex().encode(), SECRET.decode().encode("utf-16-be")):
            assert trace not in body, (name, trace)
        for trace in (b"Exif", b"EXIF", b"http", b"xmp", b"XMP", b"ICC", b"iCCP", b"eXIf", b"tEXt", b"8BIM", b"rdf"):
            assert trace not in body, (name, trace)
        for trace in (b"libvips", b"Pillow", b"libwebp", b"Lavc", b"aom v", b"2026"):
            assert trace not in body, (name, trace)


@pytest.mark.parametrize("variant", ["jpeg", "small"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_jpeg_has_no_segment_that_decoding_does_not_need(source: str, variant: str) -> None:
    segments = structure.jpeg_segments(bodies(source)[variant])
    markers = [marker for marker, _ in segments]
    needed = {0xD8, 0xDB, 0xC4, 0xDA, 0xD9}  # SOI, DQT, DHT, SOS, EOI
    frame, restarts, jfif = {0xC0, 0xC2}, {0xDD}, {0xE0}
    assert needed <= set(markers) <= needed | frame | restarts | jfif
    for marker, data in segments:
        if marker == 0xE0:
            # JFIF states the colour model. No resolution of the source's, and no thumbnail.
            assert data in JFIF_WITHOUT_WORDS, data


JFIF_WITHOUT_WORDS = {
    b"JFIF\0\x01\x01" + struct.pack(">BHHBB", units, density, density, 0, 0)
    for units, density in ((0, 1), (1, 72), (2, 10), (2, 28))
}
"""Pixel shape, or resolutions that encoders assume; the sources of these tests say 300 dots per inch."""


@pytest.mark.parametrize("variant", ["png", "whole"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_png_has_no_chunk_that_decoding_does_not_need(source: str, variant: str) -> None:
    chunks = structure.png_chunks(bodies(source)[variant])
    assert chunks[0][0] == b"IHDR" and chunks[-1][0] == b"IEND"
    assert {name for name, _ in chunks[1:-1]} <= {b"PLTE", b"tRNS", b"IDAT", b"pHYs"}
    for name, data in chunks:
        if name == b"pHYs":
            # libvips writes a resolution into every PNG: its own default, never the source's.
            assert data == struct.pack(">IIB", 1000, 1000, 1)


@pytest.mark.parametrize("variant", ["webp", "squeezed"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_webp_has_no_chunk_that_decoding_does_not_need(source: str, variant: str) -> None:
    chunks = structure.webp_chunks(bodies(source)[variant])
    names = [name for name, _ in chunks]
    assert names in ([b"VP8 "], [b"VP8L"], [b"VP8X", b"ALPH", b"VP8 "], [b"VP8X", b"VP8L"])
    if names[0] == b"VP8X":
        assert chunks[0][1][0] == 0x10  # alpha; neither ICC, EXIF, XMP nor animation


@pytest.mark.parametrize("source", SOURCES)
def test_an_avif_has_no_box_that_decoding_does_not_need(source: str) -> None:
    boxes = structure.avif_boxes(bodies(source)["avif"])
    file = {b"ftyp", b"meta", b"mdat"}
    meta = {b"hdlr", b"pitm", b"iloc", b"iinf", b"infe", b"iprp", b"iref", b"auxl"}
    properties = {b"ipco", b"ipma", b"ispe", b"pixi", b"av1C", b"colr", b"auxC"}
    assert {name for name, _ in boxes} <= file | meta | properties
    for name, data in boxes:
        if name == b"colr":
            assert data[:4] == b"nclx"
        if name == b"infe":
            assert data[8:12] == b"av01"
        if name == b"mdat":
            # Temporal delimiter, sequence header, frame and its parts: no metadata unit (5), no padding (15).
            assert set(structure.av1_units(data)) <= {1, 2, 3, 4, 6}


def test_an_orientation_is_applied_and_not_passed_on() -> None:
    body = jpeg_files.jpeg(PICTURE, segments=[jpeg_files.exif_segment(secret_exif(6))])
    for variant in develop(body, RECIPE).variants:
        assert variant.height > variant.width
        assert b"Exif" not in variant.body
        if variant.format == "avif":
            assert not {b"irot", b"imir"} & {name for name, _ in structure.avif_boxes(variant.body)}
