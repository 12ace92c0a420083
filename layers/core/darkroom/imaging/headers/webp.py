"""WebP (RFC 9649): its chunks, and the first picture among them."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from darkroom.imaging.headers.chunks import chunks
from darkroom.imaging.headers.exif import orientation_in
from darkroom.imaging.headers.header import MAX_PROFILE_BYTES, ImageHeader
from darkroom.imaging.headers.refusals import truncated, undecodable, walked

WEBP_ALPHA = 0x10
"""The flag of the VP8X chunk that says that something is transparent."""

_METADATA = {b"EXIF": 0x08, b"XMP ": 0x04}
"""The chunks that come after the frames, and the flags of VP8X that announce them."""

_LEAST_FRAME_BYTES = 8 + 16 + 8
"""A frame has its chunk's head, its own fields and the head of its picture's chunk."""

_WHOLE_PIXELS = 25_000_000
"""Up to this many pixels a picture can be decoded whole, which takes 200 MB."""

_ASKED_PER_PIXEL, _ASKED_PER_PIXEL_SHRUNK, _ASKED_BESIDES = 20, 9, 96_000_000
"""The bytes that a lossless picture, or one with separate alpha, asks for, threads' stacks included: twice what it
touches.

Measured in new processes at 12, 24 and 40 megapixels: 18 bytes per pixel, and 7 if it is shrunk while it is decoded.
"""


def webp_header(body: bytes) -> ImageHeader:
    """The header of a WebP file, simple, extended or animated."""
    (riff_size,) = struct.unpack_from("<I", body, 4)
    canvas: tuple[int, int] | None = None
    picture: Picture | None = None
    offset, frames, profile = (0, 0), 0, None
    orientation: int | None = None  # of several EXIF chunks the first counts
    file_chunks = walked(chunks(body, 12, "<4sI", trailer=0), has_enough=lambda: frames > 1)
    for name, at, length in file_chunks:
        if at > riff_size + 8:  # the rest does not belong to the file
            break
        if name == b"VP8X" and canvas is None and length >= 10:
            canvas = (uint24(body, at + 4) + 1, uint24(body, at + 7) + 1)
        elif name == b"ICCP" and length <= MAX_PROFILE_BYTES:
            profile = body[at : at + length]
        elif name == b"EXIF" and orientation is None:  # guard: engine-webp-first-exif
            orientation = orientation_in(body[at : at + length].removeprefix(b"Exif\0\0"))
        elif name == b"ANMF":
            frames += 1
            if frames == 1:
                offset = (2 * uint24(body, at), 2 * uint24(body, at + 3))
                picture = picture_at(body, at + 16, at + length)
        elif picture is None and name in (b"ALPH", b"VP8 ", b"VP8L"):
            picture = picture_at(body, at - 8)
            if picture is None:  # an alpha without colours
                break
    complete = riff_size + 8 <= len(body)
    if picture is None:
        raise undecodable("it has no picture") if complete else truncated()
    if frames == 0 and canvas not in (None, picture.size):
        raise undecodable("its picture and its canvas differ in size")
    width, height = canvas or picture.size
    if offset[0] + picture.size[0] > width or offset[1] + picture.size[1] > height:
        raise undecodable("its first frame lies outside its canvas")
    shrinks = picture.size == (width, height) and not picture.alpha_apart  # libwebp shrinks alpha apart from colours
    shrinks_to_fit = shrinks and width * height > _WHOLE_PIXELS
    # A lossless picture or alpha may bring tens of thousands of Huffman codes, in a part that is itself compressed.
    untold = picture.lossless or picture.alpha_apart
    asked_bytes = width * height * (_ASKED_PER_PIXEL_SHRUNK if shrinks_to_fit else _ASKED_PER_PIXEL) + _ASKED_BESIDES
    # Measured: the pixels twice, plus alpha; once if libwebp shrinks them while decoding.
    bytes_per_pixel = 12 if picture.alpha_apart else 4 if shrinks_to_fit and not picture.lossless else 8
    return ImageHeader(
        format="webp",
        width=width,
        height=height,
        parts=picture.parts,
        offset=offset,
        frame=picture.size,
        frames=max(1, frames + (frames > 0 and lacks_frames(body))),  # guard: animation-webp-cut-not-still
        decoder_bytes=width * height * bytes_per_pixel,
        shrinks=shrinks,
        shrinks_to_fit=shrinks_to_fit,
        lossy_bytes=0 if picture.lossless else sum(map(len, picture.parts)),
        allowance_bytes=asked_bytes if untold else None,
        complete=complete,
        orientation=orientation or 1,
        icc_profile=profile,
    )


def lacks_frames(body: bytes) -> bool:
    """Whether frames of an animation may be missing at the end of the file.

    A WebP does not say how many there are. What is missing is none of them if it is the rest of the last chunk, is too
    small for one, or may be metadata that is announced.
    """
    (riff_size,) = struct.unpack_from("<I", body, 4)
    end = riff_size + 8
    if end <= len(body):
        return False
    after, announced = 12, 0
    for name, at, length in chunks(body, 12, "<4sI", trailer=0):
        after = at + length + length % 2
        if name == b"VP8X" and length >= 10:
            announced = body[at] & sum(_METADATA.values())
        announced &= ~_METADATA.get(name, 0)
    begun = body[after : after + 4]
    # guard: animation-webp-cut-in-metadata
    return (begun != b"" and b"ANMF".startswith(begun)) or (end - after >= _LEAST_FRAME_BYTES and not announced)


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture as a file of its own. `is_whole` is whether all its data is there."""

    size: tuple[int, int]
    lossless: bool
    alpha_apart: bool = False
    is_whole: bool
    parts: tuple[bytes | memoryview, ...]

    def file(self) -> bytes:
        """The file."""
        return b"".join(self.parts)

    @property
    def lossless_bytes(self) -> int:
        """The size of what is coded without loss: the picture, or its alpha."""
        return sum(map(len, self.parts)) if self.lossless else len(self.parts[2]) if self.alpha_apart else 0


def picture_at(body: bytes, start: int, end: int | None = None) -> Picture | None:
    """The picture whose chunks (ALPH and VP8, or VP8L) begin at `start`, as a separate file; None if there is none.

    A frame's chunks must be within it, up to `end`: otherwise each frame could have the rest of the file for a picture.
    """
    alpha: memoryview | None = None
    view = memoryview(body)
    for name, at, length in chunks(body, start, "<4sI", trailer=0):
        if end is not None and at + length > end:  # guard: animation-webp-picture-in-frame
            return None
        chunk, is_whole = view[at - 8 : at + length + length % 2], at + length <= len(body)
        padding = b"\0" if is_whole and at + length + length % 2 > len(body) else b""
        if name == b"ALPH":
            alpha = chunk
        elif name == b"VP8L":
            if body[at] != 0x2F:
                raise undecodable("its picture has no signature")
            (bits,) = struct.unpack_from("<I", body, at + 1)
            size = ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
            return Picture(size=size, lossless=True, is_whole=is_whole, parts=_file(chunk, padding))
        elif name == b"VP8 ":
            width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", body, at + 6))
            if body[at + 3 : at + 6] != b"\x9d\x01\x2a":
                raise undecodable("its picture has no start code")
            if alpha is None:
                return Picture(size=(width, height), lossless=False, is_whole=is_whole, parts=_file(chunk, padding))
            extended = struct.pack("<4sIB3x", b"VP8X", 10, WEBP_ALPHA) + b"".join(
                (side - 1).to_bytes(3, "little") for side in (max(1, width), max(1, height))
            )
            parts = _file(extended, alpha, chunk, padding)
            return Picture(size=(width, height), lossless=False, alpha_apart=True, is_whole=is_whole, parts=parts)
    return None


def _file(*chunks: bytes | memoryview) -> tuple[bytes | memoryview, ...]:
    return struct.pack("<4sI4s", b"RIFF", sum(map(len, chunks)) + 4, b"WEBP"), *chunks


def uint24(body: bytes, at: int) -> int:
    """The number in three bytes."""
    low, high = struct.unpack_from("<HB", body, at)
    return int(low | high << 16)
