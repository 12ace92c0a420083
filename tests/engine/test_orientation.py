"""What turns a picture: where each format says that its picture is stored turned, and nothing else in a file does."""

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from darkroom.domain.images.limits import Limits
from darkroom.domain.images.media_types import MEDIA_TYPES
from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.imaging import develop
from tests.engine.golden import animations, gif_files, isobmff_files, jpeg_files, png_files, webp_files
from tests.engine.golden.animations import BLUE, GOLD, GREEN, RED, Step, block
from tests.engine.golden.colours import Array
from tests.engine.golden.decoders import decoded
from tests.engine.golden.exif import exif, stored

UPRIGHT = np.ascontiguousarray(np.vstack([block(32, 12, RED, GREEN), block(32, 12, BLUE, GOLD)])[..., :3])
"""Another colour in each corner: no turn and no mirroring of it looks like another."""


def xmp(orientation: int) -> bytes:
    return (
        b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        b'<rdf:Description xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="%d"/></rdf:RDF></x:xmpmeta>'
    ) % orientation


def raw_profile(orientation: int) -> bytes:
    """EXIF as ImageMagick writes it into a PNG's text."""
    block = b"Exif\0\0" + exif(orientation)
    return b"\nexif\n%8d\n" % len(block) + block.hex().encode()


def jpeg(*segments: jpeg_files.Segment) -> bytes:
    return jpeg_files.jpeg(UPRIGHT.astype(float), segments=segments)


def png(*before: png_files.Chunk, after: tuple[png_files.Chunk, ...] = ()) -> bytes:
    return png_files.png(UPRIGHT, png_files.RGB, before=before, after=after)


def apng(*before: png_files.Chunk, hidden: bool) -> bytes:
    frames = [255 - UPRIGHT] * hidden + [UPRIGHT, 255 - UPRIGHT]
    return png_files.apng(frames, png_files.RGB, before=before, hidden=hidden)


def webp(*after: webp_files.Chunk) -> bytes:
    return webp_files.webp(UPRIGHT, after=after)


def animated_webp(*after: webp_files.Chunk) -> bytes:
    return webp_files.animation((32, 24), [(UPRIGHT, 0, 0), (255 - UPRIGHT, 0, 0)], after=after)


def gif(extension: bytes) -> bytes:
    file = animations.gif((32, 24), [Step(samples=np.dstack([UPRIGHT, np.full((24, 32), 255, np.uint8)]))])
    at = 13 + 3 * 256
    return file[:at] + extension + file[at:]


def container(write: Callable[..., bytes], *properties: bytes, exif_of: int = 0, xmp_of: int = 0) -> bytes:
    others = [isobmff_files.exif_item(exif(exif_of))] if exif_of else []
    others += [isobmff_files.xmp_item(xmp(xmp_of))] if xmp_of else []
    return write(UPRIGHT, properties=properties, others=others)


in_jpeg = jpeg_files.exif_segment
XMP_IN_JPEG = (0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp(3))
XMP_IN_PNG = (b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp(3))
WITHOUT = exif(6).replace(b"\x12\x01", b"\x0e\x01", 1)
"""EXIF that has no orientation."""

# As Chromium shows them too, except what its decoders do not read: EXIF of a WebP, and of a PNG behind its picture.
FILES: dict[str, tuple[bytes, int]] = {
    "jpeg: EXIF": (jpeg(in_jpeg(exif(6))), 6),
    "jpeg: XMP": (jpeg(XMP_IN_JPEG), 1),
    "jpeg: EXIF before XMP": (jpeg(in_jpeg(exif(6)), XMP_IN_JPEG), 6),
    "jpeg: XMP before EXIF": (jpeg(XMP_IN_JPEG, in_jpeg(exif(6))), 6),
    "jpeg: the first EXIF of two": (jpeg(in_jpeg(exif(6)), in_jpeg(exif(3))), 6),
    "jpeg: the first EXIF of two, without": (jpeg(in_jpeg(WITHOUT), in_jpeg(exif(6))), 1),
    "jpeg: the first EXIF of two, broken": (jpeg(in_jpeg(b"broken"), in_jpeg(exif(6))), 1),
    "jpeg: EXIF without orientation, and XMP": (jpeg(in_jpeg(WITHOUT), XMP_IN_JPEG), 1),
    "png: EXIF": (png((b"eXIf", exif(6))), 6),
    "png: EXIF behind the picture": (png(after=((b"eXIf", exif(6)),)), 6),
    "png: XMP": (png(XMP_IN_PNG), 1),
    "png: EXIF before XMP": (png((b"eXIf", exif(6)), XMP_IN_PNG), 6),
    "png: the first EXIF of two": (png((b"eXIf", exif(6)), (b"eXIf", exif(3))), 6),
    "png: EXIF with JPEG's prefix": (png((b"eXIf", b"Exif\0\0" + exif(6))), 1),
    "png: EXIF in a text": (png((b"tEXt", b"Raw profile type exif\0" + raw_profile(6))), 1),
    "png: EXIF in a compressed text": (
        png((b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(raw_profile(6)))),
        1,
    ),
    "png: EXIF of an animation": (apng((b"eXIf", exif(6)), hidden=False), 6),
    "png: EXIF of an animation with a picture apart": (apng((b"eXIf", exif(6)), hidden=True), 6),
    "webp: EXIF": (webp((b"EXIF", exif(6))), 6),
    "webp: EXIF with JPEG's prefix": (webp((b"EXIF", b"Exif\0\0" + exif(6))), 6),
    "webp: XMP": (webp((b"XMP ", xmp(3))), 1),
    "webp: the first EXIF of two": (webp((b"EXIF", exif(6)), (b"EXIF", exif(3))), 6),
    "webp: EXIF of an animation": (animated_webp((b"EXIF", exif(6))), 6),
    "webp: XMP of an animation": (animated_webp((b"XMP ", xmp(3))), 1),
    "gif: XMP": (gif(b"!\xff\x0bXMP DataXMP" + xmp(3) + b"\x01" + bytes(range(255, -1, -1)) + b"\0"), 1),
    "gif: EXIF in a comment": (gif(gif_files.comment(b"Exif\0\0" + exif(6))), 1),
}
for _name, _write in (("avif", isobmff_files.avif), ("heic", isobmff_files.heic)):
    FILES |= {
        f"{_name}: EXIF": (container(_write, exif_of=6), 1),
        f"{_name}: XMP": (container(_write, xmp_of=3), 1),
        f"{_name}: EXIF and XMP": (container(_write, exif_of=6, xmp_of=3), 1),
        f"{_name}: its rotation": (container(_write, isobmff_files.irot(3)), 6),
        f"{_name}: its mirroring": (container(_write, isobmff_files.imir(1)), 2),
        f"{_name}: both": (container(_write, isobmff_files.irot(1), isobmff_files.imir(0)), 5),
        f"{_name}: its rotation, with EXIF of the same": (container(_write, isobmff_files.irot(3), exif_of=6), 6),
        f"{_name}: its rotation, with EXIF and XMP of others": (
            container(_write, isobmff_files.irot(3), exif_of=8, xmp_of=3),
            6,
        ),
    }


def developed(body: bytes, **spec: Any) -> Array:
    recipe = Recipe(variants=(VariantSpec(**{"name": "one", "width": 32, "height": 32, "format": "png", **spec}),))
    (variant,) = develop(body, recipe, limits=Limits(input_formats=frozenset(MEDIA_TYPES))).variants
    return decoded(variant.body, "png")


@pytest.mark.guards("engine-webp-first-exif", case="webp: the first EXIF of two")
@pytest.mark.parametrize("name", FILES)
def test_a_picture_is_turned_by_what_its_format_says_and_by_nothing_else(name: str) -> None:
    body, orientation = FILES[name]
    # A picture that is stored turned is seen as it is stored by the orientation that undoes this one.
    seen = stored(UPRIGHT, {6: 8, 8: 6}.get(orientation, orientation))
    upright = developed(body)[..., :3]
    assert upright.shape == seen.shape
    assert np.abs(upright.astype(int) - seen.astype(int)).mean() < 3


@pytest.mark.guards("engine-avif-metadata-ignored", case="avif-no EXIF")
@pytest.mark.parametrize("block", [b"broken", b"II*\0\xff\xff\xff\x7f"], ids=["no EXIF", "EXIF that ends too early"])
@pytest.mark.parametrize("write", [isobmff_files.avif, isobmff_files.heic], ids=["avif", "heic"])
def test_a_container_with_broken_exif_is_still_a_picture(write: Callable[..., bytes], block: bytes) -> None:
    plain, turned = (
        developed(write(UPRIGHT, properties=properties, others=[isobmff_files.exif_item(block)]))
        for properties in ((), (isobmff_files.irot(3),))
    )
    assert np.array_equal(plain, developed(write(UPRIGHT)))
    assert np.array_equal(turned, np.rot90(plain, 3))
