"""Reads a file's structure without decoding: its size, frames and scans, and which of its bytes make the picture.

A decoder never sees the file itself. It gets the image data: a file of the same format, assembled from the parts that
make the first picture. Metadata is where decoders are attacked (an EXIF directory that points at itself costs libexif
seconds, compressed text costs libpng gigabytes), and what a decoder never saw cannot leak into a variant. The two
useful facts in the metadata, the orientation and the colour profile, are read here, within limits.

Only structure is walked, by lengths that are checked against the file and in a bounded number of steps. The headers of
AVIF and HEIC are read by their libraries: see `decode`. A HEIC's gets a file of the picture alone, an AVIF's the whole.
"""

from __future__ import annotations

import struct

from darkroom.imaging.headers.gif import gif_header
from darkroom.imaging.headers.header import MAX_PIECES, ImageHeader
from darkroom.imaging.headers.heic import picture_alone
from darkroom.imaging.headers.isobmff import reaches_end, without_metadata
from darkroom.imaging.headers.jpeg import END_OF_IMAGE, jpeg_header
from darkroom.imaging.headers.png import png_header
from darkroom.imaging.headers.refusals import truncated, undecodable, unsupported
from darkroom.imaging.headers.webp import webp_header

__all__ = [
    "END_OF_IMAGE",
    "MAX_PIECES",
    "ImageHeader",
    "picture_alone",
    "reaches_end",
    "read_header",
    "truncated",
    "undecodable",
    "unsupported",
    "without_metadata",
]


def read_header(original: bytes) -> ImageHeader | None:
    """The header of a JPEG, PNG, WebP or GIF file, or None if the bytes start like none of them.

    Raises Rejected: `truncated` if the file ends before its picture begins, `undecodable` if the structure is invalid,
    `unsupported_format` if it is a kind that nobody sends (arithmetic coding, 12 bits, lossless JPEG).
    """
    try:
        if original.startswith(b"\xff\xd8\xff"):
            header = jpeg_header(original)
        elif original.startswith(b"\x89PNG\r\n\x1a\n"):
            header = png_header(original)
        elif original[:4] == b"RIFF" and original[8:12] == b"WEBP":
            header = webp_header(original)
        elif original.startswith((b"GIF87a", b"GIF89a")):
            header = gif_header(original)
        else:
            return None
    except (struct.error, IndexError) as error:  # the file is too short for a field
        raise truncated() from error
    if header.frame is not None and 0 in header.frame:
        raise undecodable("its first frame has no width or no height")
    return header
