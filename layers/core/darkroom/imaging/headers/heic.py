"""HEIC (ISO/IEC 14496-12 and 23008-12): the one change to a file before its library sees it."""

from __future__ import annotations

import struct

from darkroom.imaging.headers.header import MAX_PIECES


def without_metadata(heic: bytes) -> bytes:
    """The file without any item that describes another: EXIF and XMP are still in it, but not found.

    pi-heif reads them while it opens a file, and crashes if an item's type is not text. Of the metadata only the
    references of type `cdsc` ("content describes") in the `meta` box are changed, so that no offset moves.
    """
    at = 0
    for _ in range(MAX_PIECES):
        if at + 8 > len(heic):
            break
        length, name = struct.unpack_from(">I4s", heic, at)
        if name == b"meta":
            end = min(len(heic), at + length) if length else len(heic)
            return heic[:at] + heic[at:end].replace(b"cdsc", b"free") + heic[end:]
        if length == 1 and at + 16 <= len(heic):
            (length,) = struct.unpack_from(">Q", heic, at + 8)
        if length < 8:
            break
        at += length
    return heic
