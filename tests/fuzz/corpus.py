"""Small valid files of every accepted format and mode, made by encoders: the files that are mutated."""

from __future__ import annotations

import functools
import io
import random
from typing import Any

import pyvips
from PIL import Image, PngImagePlugin

from darkroom.imaging.rights import Carriers, Rights, carriers_of
from tests.fuzz.handmade import gif, heic, icc, png


def picture(width: int, height: int, mode: str = "RGB", *, noise: int = 24) -> Image.Image:
    """Gradients in every channel with some noise: always the same for the same arguments."""
    shades = random.Random(f"{width}x{height}")
    across = Image.linear_gradient("L").rotate(90).resize((width, height))
    down = Image.linear_gradient("L").resize((width, height))
    round_ = Image.radial_gradient("L").resize((width, height))

    def noisy(channel: Image.Image) -> Image.Image:
        grain = Image.frombytes("L", (width, height), shades.randbytes(width * height))
        return Image.blend(channel, grain, noise / 255)

    image = Image.merge("RGBA", (noisy(across), noisy(down), noisy(round_), round_))
    return image if mode == "RGBA" else image.convert("RGB").convert(mode)


def saved(image: Image.Image, file_format: str, **options: Any) -> bytes:
    """The picture as a file's bytes."""
    file = io.BytesIO()
    image.save(file, file_format, **options)
    return file.getvalue()


@functools.cache
def corpus() -> dict[str, bytes]:
    """Every file, by a name that begins with its format."""
    rgb, rgba, grey = picture(72, 56), picture(64, 48, "RGBA"), picture(60, 45, "L")
    frames = [picture(40, 30).rotate(90 * turn) for turn in range(3)]
    quarters = [picture(40, 30, "RGBA").rotate(90 * turn) for turn in range(4)]
    profile = icc.profile()
    metadata: dict[str, Any] = {"exif": _exif(), "icc_profile": profile}
    xmp = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'></x:xmpmeta>"
    rights = _rights()
    owned: dict[str, Any] = {"exif": rights.exif, "xmp": rights.xmp}
    return {
        "jpeg-420": saved(rgb, "JPEG"),
        "jpeg-422": saved(rgb, "JPEG", subsampling=1),
        "jpeg-444": saved(rgb, "JPEG", subsampling=0, quality=90),
        "jpeg-progressive": saved(rgb, "JPEG", progressive=True),
        "jpeg-grey": saved(grey, "JPEG"),
        "jpeg-grey-progressive": saved(grey, "JPEG", progressive=True),
        "jpeg-cmyk": saved(picture(48, 40, "CMYK"), "JPEG"),
        "jpeg-restarts": saved(rgb, "JPEG", restart_marker_blocks=3),
        "jpeg-metadata": saved(rgb, "JPEG", xmp=xmp, comment=b"a comment", **metadata),
        "jpeg-rights": rights.in_jpeg(saved(rgb, "JPEG")),
        "png-1": saved(picture(70, 50, "1"), "PNG"),
        "png-grey": saved(grey, "PNG"),
        "png-grey-alpha": saved(rgba.convert("LA"), "PNG"),
        "png-grey-16": saved(grey.convert("I;16"), "PNG"),
        "png-palette": saved(rgb.quantize(200), "PNG"),
        "png-palette-4": saved(rgb.quantize(13), "PNG", bits=4),
        "png-palette-transparent": saved(rgb.quantize(16), "PNG", transparency=bytes(range(0, 256, 16))),
        "png-rgb": saved(rgb, "PNG"),
        "png-rgb-key": saved(rgb, "PNG", transparency=(10, 20, 30)),
        "png-rgba": saved(rgba, "PNG"),
        "png-rgb-16": _by_vips(rgb, ".png", bitdepth=16),
        "png-rgba-16-interlaced": _by_vips(rgba, ".png", bitdepth=16, interlace=True),
        "png-rgb-interlaced": _by_vips(rgb, ".png", interlace=True),
        "png-palette-interlaced": _by_vips(rgb, ".png", interlace=True, palette=True),
        "png-animated": saved(frames[0], "PNG", save_all=True, append_images=frames[1:]),
        "png-animated-over": saved(
            quarters[0], "PNG", save_all=True, append_images=quarters[1:], disposal=[0, 1, 2, 0], blend=1, duration=70
        ),
        "png-animated-apart": saved(
            rgb, "PNG", save_all=True, append_images=[frame.resize(rgb.size) for frame in frames], default_image=True
        ),
        "png-metadata": saved(rgb, "PNG", pnginfo=_texts(), **metadata),
        "png-rights": rights.in_png(saved(rgb, "PNG")),
        "png-by-hand": png.solid(50, 40, interlace=1, row_filter=4),
        "webp-lossy": saved(rgb, "WEBP"),
        "webp-lossless": saved(rgb, "WEBP", lossless=True),
        "webp-alpha": saved(rgba, "WEBP"),
        "webp-alpha-lossless": saved(rgba, "WEBP", lossless=True, exact=True),
        "webp-palette": saved(picture(64, 48, noise=0).quantize(9).convert("RGB"), "WEBP", lossless=True),
        "webp-animated": saved(frames[0], "WEBP", save_all=True, append_images=frames[1:]),
        "webp-animated-alpha": saved(quarters[0], "WEBP", save_all=True, append_images=quarters[1:], duration=50),
        "webp-metadata": saved(rgb, "WEBP", xmp=xmp, **metadata),
        "webp-rights": saved(rgb, "WEBP", **owned),
        "gif-plain": saved(rgb.quantize(64), "GIF", interlace=0),
        "gif-interlaced": saved(rgb.quantize(64), "GIF", interlace=1, comment=b"a comment"),
        "gif-transparent": saved(rgba, "GIF"),
        "gif-animated": saved(frames[0], "GIF", save_all=True, append_images=frames[1:], disposal=2, loop=0),
        "gif-animated-previous": saved(
            quarters[0], "GIF", save_all=True, append_images=quarters[1:], disposal=3, duration=[0, 40, 90, 20]
        ),
        "gif-by-hand": gif.gif(30, 20, gif.control(transparent=1), gif.frame(20, 10, left=5, top=5), gif.comment(b"!")),
        "avif-420": saved(rgb, "AVIF", speed=10),
        "avif-444": saved(rgb, "AVIF", speed=10, subsampling="4:4:4", quality=90),
        "avif-grey": saved(grey, "AVIF", speed=10, subsampling="4:0:0"),
        "avif-alpha": saved(rgba, "AVIF", speed=10),
        "avif-animated": _timeless(saved(frames[0], "AVIF", speed=10, save_all=True, append_images=frames[1:])),
        "avif-metadata": saved(rgb, "AVIF", speed=10, **metadata),
        "avif-rights": saved(rgb, "AVIF", speed=10, **owned),
        "heic-plain": heic.PLAIN,
        "heic-alpha": heic.ALPHA,
        "heic-metadata": heic.METADATA,
        "heic-phone": heic.PHONE,
    }


def _rights() -> Carriers:
    """Every value, so that each of them is damaged."""
    carriers = carriers_of(
        Rights(
            creators=("An author", "Another"),
            copyright="© a notice",
            credit="a credit line",
            source="a source",
            usage_terms="terms",
            web_statement="https://rights.example/",
            licence_url="https://licence.example/",
            licensor_url="https://licensor.example/",
        )
    )
    assert carriers is not None
    return carriers


def _exif() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation
    exif[0x010E] = "a description"
    exif.get_ifd(0x8825)[1] = "N"
    return exif


def _texts() -> PngImagePlugin.PngInfo:
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Comment", "a comment")
    texts.add_text("Long", "a comment " * 30, zip=True)
    texts.add_itxt("Title", "a title", lang="en")
    return texts


def _by_vips(image: Image.Image, suffix: str, **options: Any) -> bytes:
    """For what Pillow cannot write: pictures of 16 bits per channel, and interlaced ones."""
    bands = len(image.getbands())
    pixels = pyvips.Image.new_from_memory(image.tobytes(), image.width, image.height, bands, "uchar")
    pixels = pixels.copy(interpretation="srgb")
    if options.get("bitdepth") == 16:
        pixels = (pixels.cast("ushort") * 257).cast("ushort").copy(interpretation="rgb16")
    body: bytes = pixels.write_to_buffer(suffix, **options)
    return body


def _timeless(film: bytes) -> bytes:
    """An animated AVIF without its time of creation and modification, eight bytes each."""
    for box in (b"mvhd", b"tkhd", b"mdhd"):
        at = film.index(box) + 8  # the name, version and flags
        film = film[:at] + bytes(16) + film[at + 16 :]
    return film
