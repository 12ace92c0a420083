"""Opens untrusted files: checks the header before a pixel is decoded, then decodes as the pixels are read."""

from __future__ import annotations

import hashlib
import io
import re
import struct
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import pyvips
from PIL import JpegImagePlugin, _avif

from darkroom.domain.images.limits import Limits
from darkroom.domain.images.media_types import SNIFF_BYTES, input_format_of, names_of
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.sizes import excess_in_words
from darkroom.imaging.alpha import unpremultiplied
from darkroom.imaging.faults import DECODERS_ERRORS, refusal_of
from darkroom.imaging.headers import (
    END_OF_IMAGE,
    MAX_PIECES,
    ImageHeader,
    picture_alone,
    reaches_end,
    read_header,
    truncated,
    undecodable,
    without_metadata,
)
from darkroom.imaging.memory import at_most
from darkroom.imaging.scaling.shrinking import shrink_of
from darkroom.imaging.strips import strips

# A worker develops one stranger's file after another, and libvips would keep the last hundred of them in its cache.
pyvips.cache_set_max(0)

# pyvips makes GLib call Python for every warning of libvips. If the garbage collector runs in that call and frees a
# picture that warns too, GLib takes it for recursion and aborts the process: damaged files and bad luck suffice.
pyvips._remove_log_handler()

# libvips recognises no format but these, though its wheel has libraries for a dozen more, another libheif among them.
pyvips.operation_block_set("VipsForeignLoad", True)  # guard: libvips-loaders-blocked
for _known in ("Jpeg", "Png", "Nsgif", "Webp"):
    pyvips.operation_block_set(f"VipsForeignLoad{_known}", False)

_IN_MEMORY_PIXELS = 4_000_000
"""The largest JPEG, after shrinking, that is decoded at once, by Pillow's faster libjpeg-turbo, rather than streamed by
libvips's mozjpeg: above this size holding and copying the picture costs more than that saves."""

_MARGIN_BYTES = 128_000_000
"""The memory, beyond what the picture's size explains, for a decoder whose use the header does not reveal."""


@dataclass(frozen=True, kw_only=True)
class Original:
    """A file that is within the limits, not decoded yet. `width` and `height` are in pixels as stored.

    `orientation` is EXIF's number for how the stored picture must be turned, `icc_profile` what its colours mean. The
    pictures that it opens are decoded from bytes that it owns: it must outlive them until they are in memory.
    """

    width: int
    height: int
    opened: Callable[[int], pyvips.Image]
    """Opens the picture, shrunk by a factor of 1, or what `shrink_for` returned. Pixels are decoded on demand, once."""
    frames: int = 1
    shrink_for: Callable[[tuple[int, int]], int] = lambda _: 1
    """The factor by which the decoder should shrink the picture that is wanted at a size, as stored."""
    drops_rest: bool = False
    """Whether shrinking drops what does not fill a block at the end of a row or column."""
    mixes_neighbours: bool = False
    """Whether decoding gives neighbours a share of a pixel's colour, because the file has fewer samples of it."""
    complete: bool = True
    orientation: int = 1
    icc_profile: bytes | None = None
    allowance_bytes: int | None = None
    """The most memory for the decoder, if the header does not reveal how much it will take."""

    def decoding(self) -> AbstractContextManager[None]:
        """Turns every exception of a decoder into a refusal (`faults` tells which)."""
        return _decoding(complete=self.complete, allowance_bytes=self.allowance_bytes)


@contextmanager
def _decoding(*, complete: bool, allowance_bytes: int | None = None) -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning about a file is not a reason to refuse or to log it
            with nullcontext() if allowance_bytes is None else at_most(allowance_bytes):
                yield
    except Rejected:
        raise
    except DECODERS_ERRORS as error:  # guard: engine-own-bug-no-damage
        # Its traceback leads through this generator back to it: a circle that would keep the picture's memory until
        # Python's collector comes by, which may be dozens of pictures later.
        error.__traceback__ = None  # guard: engine-refused-picture-released
        raise refusal_of(error, complete=complete, is_allowance=allowance_bytes is not None) from error


def open_original(original: bytes, limits: Limits) -> Original:
    """Opens the picture in `original`, if its header is within `limits`.

    Raises Rejected: `file_too_large`, `unsupported_format`, `truncated`, `undecodable`, `too_many_pixels`,
    `side_too_long`, `aspect_too_extreme` or `too_many_scans`.
    """
    if len(original) > limits.max_bytes:
        raise _too_large(len(original), limits.max_bytes)
    file_format = input_format_of(original[:SNIFF_BYTES])
    if file_format is None or file_format not in limits.input_formats:
        raise Rejected(
            "unsupported_format",
            f"The bytes are not an accepted image. Send {names_of(limits.input_formats)}.",
        )
    if file_format in ("avif", "heic"):
        return _open_container(original, file_format, limits)
    header = read_header(original)
    if header is None:
        raise undecodable("its header is not that of its format")
    check_limits(header, limits)
    return Original(
        width=header.width,
        height=header.height,
        opened=_loader(header),
        frames=header.frames,
        shrink_for=partial(shrink_of, header),
        drops_rest=header.format == "jpeg",
        mixes_neighbours=header.format in ("jpeg", "webp"),
        complete=header.complete,
        orientation=header.orientation,
        icc_profile=header.icc_profile,
        allowance_bytes=header.allowance_bytes,
    )


def _too_large(size_bytes: int, most: int) -> Rejected:
    return Rejected(
        "file_too_large",
        f"The file has {excess_in_words(size_bytes, most)} are developed. Send a smaller version.",
    )


def check_limits(header: ImageHeader, limits: Limits) -> None:
    """Raises Rejected with the code of the first limit that the header exceeds."""
    width, height = header.width, header.height
    if 0 in (width, height):
        raise undecodable("its header gives no width or no height")
    if header.lossy_bytes > limits.max_webp_bytes:
        raise _too_large(header.lossy_bytes, limits.max_webp_bytes)
    if width * height > limits.max_pixels:
        raise Rejected(
            "too_many_pixels",
            f"The image is {width}×{height} pixels, which is {width * height / 1e6:.1f} megapixels; at most "
            f"{limits.max_pixels / 1e6:g} are developed. Send a smaller version.",
        )
    if header.decoder_bytes > limits.max_decoder_bytes or header.raw_bytes > limits.max_png_bytes:
        raise Rejected(
            "too_many_pixels",
            f"The image is {width}×{height} pixels, too many for a file of its kind. Send a smaller version"
            + {"jpeg": " or a baseline JPEG.", "png": " or one with 8 bits that is not interlaced."}.get(
                header.format, "."
            ),
        )
    if max(width, height) > limits.max_side:
        raise Rejected(
            "side_too_long",
            f"The image is {width}×{height} pixels; a side may have at most {limits.max_side}. Send a smaller version.",
        )
    if max(width, height) > limits.max_aspect * min(width, height):
        raise Rejected(
            "aspect_too_extreme",
            f"The image is {width}×{height} pixels; its longer side exceeds {limits.max_aspect} times the shorter.",
        )
    if header.scans > limits.max_scans or header.scan_samples > limits.max_scan_samples:
        raise Rejected(
            "too_many_scans",
            f"The JPEG has {header.scans} scans, too many for its size. Save it as a baseline JPEG.",
        )


def _loader(header: ImageHeader) -> Callable[[int], pyvips.Image]:
    # A source reads these bytes where they are; the loaders for buffers would copy them first.
    body = header.image_data()
    if header.format == "jpeg" and not header.complete:
        with _decoding(complete=False):
            body = _ended(body)
    image_data = pyvips.Source.new_from_memory(body)
    # Missing data is an error and other damage is not: a photo with a broken block is still worth developing.
    options = {"access": "sequential", "fail_on": "truncated"}
    match header.format:
        case "jpeg":
            return lambda shrink: (
                jpeg_at_once(body, header, shrink) or pyvips.Image.jpegload_source(image_data, shrink=shrink, **options)
            )
        case "png":
            return lambda _: _on_canvas(pyvips.Image.pngload_source(image_data, **options), header)
        case "gif":
            # libnsgif returns the whole screen, black where an opaque first frame does not reach.
            area = (*header.offset, *(header.frame or (header.width, header.height)))
            return lambda _: _on_canvas(pyvips.Image.gifload_source(image_data, **options).crop(*area), header)
        case "webp":
            return lambda shrink: _on_canvas(
                pyvips.Image.webpload_source(image_data, scale=1 / shrink, **options), header
            )


def jpeg_at_once(body: bytes, header: ImageHeader, shrink: int) -> pyvips.Image | None:
    """The pixels that libvips decodes, sooner; None if it is large or in CMYK, or for libvips to say what is wrong."""
    width, height = max(1, header.width // shrink), max(1, header.height // shrink)
    if width * height > _IN_MEMORY_PIXELS:  # guard: engine-large-jpeg-streamed
        return None
    try:
        picture = JpegImagePlugin.JpegImageFile(io.BytesIO(body))
        if picture.mode not in ("L", "RGB"):
            return None
        picture.draft(None, (width, height))
        picture.load()
    except (OSError, SyntaxError, ValueError):
        return None
    image = from_memory(picture.tobytes(), *picture.size, bands=len(picture.mode))
    return image.crop(0, 0, width, height)


_PADDINGS = tuple(
    coded * 64 + b"".join(bytes((0xFF, 0xD0 + number)) + coded * 64 for number in range(8))
    for coded in (b"\x55", b"\xc7")
)
"""Coded data, with every restart marker, in one of which a scan that stops between two of them goes on. Of 3,570 cuts
near the end of nine kinds of JPEG these two give no other the same picture; zeros and ones do for 1 in 100."""


def _ended(jpeg: bytes) -> bytes:
    """The JPEG with the end marker that it lacks. Raises Rejected if anything else of it is missing.

    A scan does not say how long it is. libjpeg takes what it needs, and makes up what is not there, with a warning that
    libvips passes on only if more rows are read after it. So the picture is decoded with two paddings: if it is the
    same, none of it depends on them.
    """
    # guard: engine-jpeg-lost-end-only
    if len({_digest_of(jpeg + padding + END_OF_IMAGE) for padding in _PADDINGS}) > 1:
        raise truncated()
    return jpeg + END_OF_IMAGE


def _digest_of(jpeg: bytes) -> bytes:
    image, digest = pyvips.Image.jpegload_buffer(jpeg, access="sequential"), hashlib.blake2b()
    for _, _, strip in strips(image):
        digest.update(strip)
    return digest.digest()


def _on_canvas(frame: pyvips.Image, header: ImageHeader) -> pyvips.Image:
    """The first frame of an animation in its place on the canvas, transparent around it, as browsers show it."""
    if header.frame in (None, (header.width, header.height)):
        return frame
    frame = frame if frame.hasalpha() else frame.bandjoin(65_535 if frame.format == "ushort" else 255)
    return frame.embed(*header.offset, header.width, header.height, extend="black")


# ── AVIF and HEIC: read by libavif through Pillow, and by libheif through pillow-heif, which is imported only then ────


def _open_container(original: bytes, file_format: str, limits: Limits) -> Original:
    # These libraries read the container's sizes, but decode whatever the picture inside declares.
    complete, is_avif = reaches_end(original), file_format == "avif"  # guard: engine-container-truncation
    # guard: engine-avif-metadata-ignored
    avif = without_metadata(original) if is_avif else b""  # a copy, which is not part of what the decoder takes
    with _decoding(complete=complete, allowance_bytes=_MARGIN_BYTES):
        opened = _open_avif(avif, limits) if is_avif else _open_heic(original, limits)
        return replace(opened, complete=complete)


def _open_avif(original: bytes, limits: Limits) -> Original:
    # The class behind Pillow's reader: that one also reads EXIF and XMP, and takes an orientation from them. An AVIF is
    # turned by its properties irot and imir alone (MIAF, ISO/IEC 23000-22, 7.3.6.7).
    try:
        decoder = _avif.AvifDecoder(original, "auto", _THREADS)
    except SyntaxError:  # libavif has one word for boxes that are broken and for pictures above its own limits
        for size_match in islice(_SIZES.finditer(original), MAX_PIECES):  # guard: engine-avif-size-limits
            check_limits(_container_header(*struct.unpack(">II", size_match[1]), bytes_per_pixel=_AVIF_BYTES), limits)
        raise
    size, frames, mode, icc_profile, _, orientation, _ = decoder.get_info()
    header = _container_header(*size, bytes_per_pixel=_AVIF_BYTES, frames=frames)
    check_limits(header, limits)

    def opened(_: int) -> pyvips.Image:
        pixels, *_ = decoder.get_frame(0)
        return from_memory(pixels, *size, bands=_BANDS[mode])

    return Original(
        width=header.width,
        height=header.height,
        opened=opened,
        frames=header.frames,
        mixes_neighbours=True,
        orientation=orientation,
        icc_profile=icc_profile,
        allowance_bytes=header.decoder_bytes + _MARGIN_BYTES,
    )


def _open_heic(original: bytes, limits: Limits) -> Original:
    import pillow_heif  # noqa: PLC0415  most deployments never need it, and a cold start pays for it

    # guard: heic-picture-alone
    file = pillow_heif.open_heif(io.BytesIO(picture_alone(original)), convert_hdr_to_8bit=True)
    if len(file) == 0:
        raise ValueError("libheif found no picture")
    width, height = file.size
    header = _container_header(width, height, bytes_per_pixel=_HEIC_BYTES)
    check_limits(header, limits)

    def opened(_: int) -> pyvips.Image:
        is_deep = file.mode == "I;16"  # grey with more than eight bits, which pillow-heif leaves as it is
        row_bytes = 2 * width if is_deep else width * _BANDS[file.mode.upper()]
        data = file.data  # libheif's own memory, which `file` owns
        if file.stride != row_bytes:
            data = b"".join(data[row * file.stride : row * file.stride + row_bytes] for row in range(height))
        if is_deep:
            data, row_bytes = bytes(data)[1::2], width  # the high bytes
        image = from_memory(data, width, height, bands=row_bytes // width)
        return unpremultiplied(image) if file.premultiplied_alpha else image  # guard: engine-heic-premultiplied-alpha

    # libheif has already turned the picture upright.
    return Original(
        width=width,
        height=height,
        opened=opened,
        mixes_neighbours=True,
        icc_profile=file.info.get("icc_profile"),
        allowance_bytes=header.decoder_bytes + _MARGIN_BYTES,
    )


_THREADS = 2
"""Those of an AVIF's decoder: the worker has hardly more processors, and each takes memory."""

_SIZES = re.compile(rb"\0\0\0\x14ispe\0{4}(.{8})", re.DOTALL)
"""The sizes that a container says its pictures have (ISO/IEC 23008-12, 6.5.3)."""

_BANDS = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4}

_AVIF_BYTES = 12
"""What an AVIF takes for each pixel, with alpha: as YUV, as RGB, and once more as the bytes that libvips reads."""

_HEIC_BYTES = 6
"""What a phone's HEIC takes for each pixel: as YUV and as RGB. Measured at 12, 27 and 50 megapixels, it is 5.6, in one
picture or in tiles; 7.5 with alpha or 10 bits, and 9.4 if the colours are not subsampled: that comes out of the margin,
up to 37 megapixels."""


def _container_header(width: int, height: int, *, bytes_per_pixel: int, frames: int = 1) -> ImageHeader:
    decoder_bytes = width * height * bytes_per_pixel
    # Of the formats that a header has, one for whose files there is no advice but to send a smaller one.
    return ImageHeader(format="webp", width=width, height=height, parts=(), frames=frames, decoder_bytes=decoder_bytes)


def from_memory(data: bytes, width: int, height: int, *, bands: int) -> pyvips.Image:
    image = pyvips.Image.new_from_memory(data, width, height, bands, "uchar")
    return image.copy(interpretation="b-w" if bands < 3 else "srgb")
