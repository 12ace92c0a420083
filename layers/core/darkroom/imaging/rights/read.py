"""Reads whose picture a file is, from all the places where software writes it, and decides where they differ."""

from __future__ import annotations

import csv
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from xml.parsers.expat import ExpatError

from darkroom.domain.kernel.errors import Rejected
from darkroom.imaging.rights.exif import rights_in_exif
from darkroom.imaging.rights.iptc import rights_in_iptc
from darkroom.imaging.rights.places import Blocks, blocks_in
from darkroom.imaging.rights.rights import Rights, bounded, decoded, plain
from darkroom.imaging.rights.xmp import rights_in_xmp

SHORTENED = "Author and copyright: what was too long was cut, and what is no http URL was left out."

_BROKEN = (ValueError, struct.error, IndexError, ExpatError, zlib.error, csv.Error, Rejected)
"""What reading a damaged block raises."""


@dataclass(frozen=True, kw_only=True)
class FoundRights:
    """What a file says of its owner, within all limits, and what its owner should know about that."""

    rights: Rights = field(default_factory=Rights)
    notices: tuple[str, ...] = ()


def unreadable(kind: str, *, part: bool = False) -> str:
    """The notice of a block that could not be read, or of which a part could not."""
    return f"Author and copyright: {'part of ' * part}the file's {kind} could not be read and was left out."


def read_rights(original: bytes) -> FoundRights:
    """Whose picture it is. Damaged metadata never fails: it is left out, with a notice; what is sound beside it in
    EXIF and IPTC counts."""
    notices: list[str] = []

    def tried[T](kind: str, read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except _BROKEN:  # guard: rights-damage-tolerated
            notices.append(unreadable(kind))
            return otherwise

    blocks = tried("metadata", lambda: blocks_in(original), Blocks())
    nothing = Rights()
    exif, is_whole = tried("EXIF", lambda: rights_in_exif(blocks.exif), (nothing, True))
    if not is_whole:
        notices.append(unreadable("EXIF", part=exif != nothing))
    iptc, iptc_is_newer, is_whole = tried("IPTC", lambda: rights_in_iptc(blocks.resources), (nothing, False, True))
    if not is_whole:
        notices.append(unreadable("IPTC", part=iptc != nothing))
    xmp = tried("XMP", lambda: rights_in_xmp(blocks.xmp), nothing) if blocks.xmp else nothing
    texts = {keyword: plain(decoded(text)) for keyword, text in blocks.texts.items()}
    author, notice = texts.get(b"Author", ""), texts.get(b"Copyright", "")
    text = Rights(creators=(author,) if author else (), copyright=notice)

    rights, was_cut = bounded(_reconciled(exif, *((iptc, xmp) if iptc_is_newer else (xmp, iptc)), text))
    if was_cut:
        notices.append(SHORTENED)
    return FoundRights(rights=rights, notices=tuple(notices))


def _reconciled(exif: Rights, newer: Rights, older: Rights, text: Rights) -> Rights:
    """Each value from the first place that has it: EXIF, then XMP, then IPTC-IIM; IIM before XMP if it was changed by
    software that does not know XMP (Metadata Working Group, Guidelines for Handling Image Metadata 2.0, on reconciling
    Exif, IIM and XMP; the IPTC Photo Metadata Standard maps the fields). PNG's own texts come last."""
    ranked = (exif, newer, older, text)
    chosen = {
        name: next((value for value in (getattr(rights, name) for rights in ranked) if value), nothing)
        for name, nothing in vars(Rights()).items()
    }
    return Rights(**chosen)
