"""PNG (W3C Portable Network Graphics, third edition): its chunks, and which of them make the picture."""

from __future__ import annotations

import struct
import zlib

from darkroom.imaging.headers.apng import FrameChunks, shared_chunks, still_png
from darkroom.imaging.headers.chunks import chunks
from darkroom.imaging.headers.exif import orientation_in
from darkroom.imaging.headers.header import MAX_PROFILE_BYTES, ImageHeader
from darkroom.imaging.headers.refusals import truncated, undecodable, walked

_PALETTE = 3
_CHANNELS = {0: 1, 2: 3, _PALETTE: 3, 4: 2, 6: 4}
_PNG_KEPT = frozenset({b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"})


def png_header(body: bytes) -> ImageHeader:
    """The header of a PNG file, or of an APNG by its first frame: a default picture that is none of the frames is for
    decoders without animation."""
    if body[12:16] != b"IHDR":
        raise undecodable("a PNG file begins with its header, and this one does not")
    width, height, depth, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", body, 16)
    view = memoryview(body)
    parts: list[bytes | memoryview] = []
    kept_from = 0  # one part is a run of consecutive kept chunks
    complete, keyed = False, False
    orientation: int | None = None  # PNG allows one eXIf and one iCCP: the first counts
    profile: bytes | None = None
    frames = FrameChunks()
    for name, at, length in walked(chunks(body, 8, ">I4s", trailer=4), has_enough=lambda: frames.count > 1):
        frames.take(name, view[at : at + length], length)
        if name not in _PNG_KEPT:
            if kept_from < at - 8:
                parts.append(view[kept_from : at - 8])
            kept_from = at + length + 4
        if name == b"tRNS":
            keyed = True
        elif name == b"eXIf" and orientation is None:
            orientation = orientation_in(body[at : at + length])
        elif name == b"iCCP" and profile is None:
            profile = _inflated_profile(body[at : at + length])
        elif name == b"IEND":
            complete = at + length + 4 <= len(body)
            parts.append(view[kept_from : at + length + 4])
            break
    else:
        parts.append(view[kept_from:])
    goes_on = not complete and at + length + 12 <= len(body)  # with more frames than were walked
    if frames.claimed and not frames.count and not complete:  # guard: animation-apng-no-first-frame
        raise truncated()  # the frames may be what is missing, and what is there none of them
    size, offset, frame = (width, height), (0, 0), None
    if frames.hides_default or goes_on:  # guard: animation-apng-default-image
        control, picture = frames.frame(0, size)
        size = frame = control.width, control.height
        offset = control.left, control.top
        parts = [still_png(body, control, shared_chunks(body), picture, ended=complete or goes_on)]
    # With a colour key or a palette's alphas the picture is decoded as RGBA.
    pixel_bytes = (4 if keyed else _CHANNELS.get(colour, 4)) * max(depth, 8) // 8
    pixels = size[0] * size[1]
    return ImageHeader(
        format="png",
        width=width,
        height=height,
        parts=tuple(parts),
        offset=offset,
        frame=frame,
        frames=max(1, frames.count if complete else frames.claimed),  # guard: animation-apng-cut-not-still
        # An interlaced picture comes in seven passes over the whole, which libspng keeps in memory and which take twice
        # as long; others stream row by row.
        decoder_bytes=pixels * max(4, pixel_bytes) if interlaced else 0,
        raw_bytes=pixels * pixel_bytes * (2 if interlaced else 1),
        complete=complete,
        orientation=orientation or 1,
        icc_profile=profile,
    )


def _inflated_profile(chunk: bytes) -> bytes:
    """The profile in an iCCP chunk; empty, which is no usable profile, if it is broken or too large."""
    _, separator, rest = chunk.partition(b"\0")  # the profile's name
    if not separator or not rest.startswith(b"\0"):  # compression method 0 is the only one
        return b""
    try:
        inflater = zlib.decompressobj()
        profile = inflater.decompress(rest[1:], MAX_PROFILE_BYTES)
    except zlib.error:
        return b""
    return b"" if inflater.unconsumed_tail else profile
