"""Writes whose picture it is into a variant: XMP, EXIF and, in JPEG, IPTC-IIM."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from darkroom.imaging.headers.chunks import chunks
from darkroom.imaging.rights.exif import exif_with
from darkroom.imaging.rights.iptc import iptc_with
from darkroom.imaging.rights.places import EXIF_SIGNATURE, PHOTOSHOP_SIGNATURE, PNG_XMP_KEYWORD, XMP_SIGNATURE
from darkroom.imaging.rights.rights import Rights
from darkroom.imaging.rights.xmp import xmp_with


@dataclass(frozen=True, kw_only=True)
class Carriers:
    """The blocks that carry the rights. EXIF and IPTC are empty if they have no field for what is known."""

    xmp: bytes
    exif: bytes
    resources: bytes

    def fit_under(self, ceiling_bytes: int | None) -> bool:
        """Whether they take at most a quarter of a file's ceiling. The least that they take, half a KB, then leaves
        more than any encoder's smallest file has."""
        size_bytes = len(self.xmp) + len(self.exif) + len(self.resources)
        return ceiling_bytes is None or 4 * size_bytes <= ceiling_bytes  # guard: rights-share-of-ceiling

    def in_jpeg(self, jpeg: bytes) -> bytes:
        """The file with them: after JFIF's segment, which must come first, in the order that cameras write."""
        at = 2
        if jpeg[2:4] == b"\xff\xe0":
            at += 2 + struct.unpack_from(">H", jpeg, 4)[0]
        added = b"".join(
            marker + struct.pack(">H", 2 + len(signature) + len(block)) + signature + block
            for marker, signature, block in (
                (b"\xff\xe1", EXIF_SIGNATURE, self.exif),
                (b"\xff\xe1", XMP_SIGNATURE, self.xmp),
                (b"\xff\xed", PHOTOSHOP_SIGNATURE, self.resources),
            )
            if block
        )
        return jpeg[:at] + added + jpeg[at:]

    def in_png(self, png: bytes) -> bytes:
        """The file with them, before the picture, so that a reader need not look behind it."""
        at = next(start - 8 for name, start, _ in chunks(png, 8, ">I4s", trailer=4) if name == b"IDAT")
        added = [(b"iTXt", PNG_XMP_KEYWORD + bytes(5) + self.xmp)]
        if self.exif:
            added.insert(0, (b"eXIf", self.exif))
        return png[:at] + b"".join(_chunk(*chunk) for chunk in added) + png[at:]


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def carriers_of(rights: Rights) -> Carriers | None:
    """The blocks that say `rights`; None if nothing is known, and a variant carries nothing."""
    xmp = xmp_with(rights)
    return Carriers(xmp=xmp, exif=exif_with(rights), resources=iptc_with(rights)) if xmp else None
