"""The author and the copyright in EXIF (CIPA DC-008): the tags Artist and Copyright."""

from __future__ import annotations

import csv
import struct

from darkroom.imaging.headers.exif import Entry, first_directory
from darkroom.imaging.rights.rights import Rights, decoded, plain

_ARTIST, _COPYRIGHT = 0x013B, 0x8298
_ASCII, _UTF_8 = 2, 129  # EXIF 3.0 added UTF-8

_MAX_VALUE_BYTES = 65_535


def rights_in_exif(exif: bytes) -> Rights:
    """What the first directory says. Raises ValueError or struct.error if the block is broken."""
    if exif[:4] not in (b"II*\0", b"MM\0*"):
        raise ValueError("it is no TIFF file")
    creators: tuple[str, ...] = ()
    notice = ""
    for entry in first_directory(exif):
        if entry.kind not in (_ASCII, _UTF_8):
            continue
        if entry.tag == _ARTIST:
            creators = creators_of(plain(decoded(_value(exif, entry).partition(b"\0")[0])))
        elif entry.tag == _COPYRIGHT:
            # The photographer's notice, then, after a zero byte, the editor's.
            parts = [plain(decoded(part)) for part in _value(exif, entry).split(b"\0", 2)[:2]]
            notice = "; ".join(filter(None, parts))
    return Rights(creators=creators, copyright=notice)


def _value(exif: bytes, entry: Entry) -> bytes:
    at = entry.at
    if entry.count > 4:
        (at,) = struct.unpack_from(f"{entry.endian}I", exif, at)
    if entry.count > _MAX_VALUE_BYTES or at + entry.count > len(exif):
        raise ValueError("a text lies outside it")
    return exif[at : at + entry.count]


def creators_of(artist: str) -> tuple[str, ...]:
    """The names in one text: separated by semicolons, in quotes where a name has one (Metadata Working Group 2.0,
    Creator)."""
    (names,) = csv.reader([artist], delimiter=";", skipinitialspace=True)
    return tuple(filter(None, (name.strip() for name in names)))


def artist_of(creators: tuple[str, ...]) -> str:
    """The names as one text, which `creators_of` reads."""
    return "; ".join(
        '"' + name.replace('"', '""') + '"' if ";" in name or name.startswith('"') else name for name in creators
    )


def exif_with(rights: Rights) -> bytes:
    """EXIF that has the author and the copyright and nothing else; empty if neither is known.

    The texts are in UTF-8, as the Metadata Working Group recommends, under the type that every reader knows.
    """
    texts = {_ARTIST: artist_of(rights.creators), _COPYRIGHT: rights.copyright}
    values = {tag: text.encode() + b"\0" for tag, text in texts.items() if text}
    if not values:
        return b""
    at = 8 + 2 + 12 * len(values) + 4
    entries = data = b""
    for tag, value in values.items():
        if len(value) <= 4:
            entries += struct.pack(">HHI4s", tag, _ASCII, len(value), value)
            continue
        entries += struct.pack(">HHII", tag, _ASCII, len(value), at + len(data))
        data += value + b"\0" * (len(value) % 2)
    return struct.pack(">2sHIH", b"MM", 42, 8, len(values)) + entries + bytes(4) + data
