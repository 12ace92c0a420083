"""The author and the copyright in EXIF (CIPA DC-008): the tags Artist and Copyright."""

from __future__ import annotations

import csv
import struct

from darkroom.imaging.headers.exif import ExifEntry, first_directory
from darkroom.imaging.rights.rights import Rights, decoded, plain

_ARTIST, _COPYRIGHT = 0x013B, 0x8298
_ASCII, _UTF_8 = 2, 129  # EXIF 3.0 added UTF-8

_MAX_VALUE_BYTES = 65_535


def rights_in_exif(exif: bytes) -> tuple[Rights, bool]:
    """What the first directory says, and whether all of it could be read."""
    values: dict[int, bytes] = {}
    if exif[:4] not in (b"II*\0", b"MM\0*"):
        return Rights(), not exif
    is_whole = True
    try:
        for entry in first_directory(exif):
            if entry.kind in (_ASCII, _UTF_8) and entry.tag in (_ARTIST, _COPYRIGHT):
                value = _value(exif, entry)
                if value is None:
                    is_whole = False
                else:
                    values[entry.tag] = value
    except struct.error:  # guard: rights-exif-damage-partial
        is_whole = False
    artist = values.get(_ARTIST, b"").partition(b"\0")[0]
    # The photographer's notice, then, after a zero byte, the editor's.
    notices = [plain(decoded(part)) for part in values.get(_COPYRIGHT, b"").split(b"\0", 2)[:2]]
    return Rights(creators=creators_of(plain(decoded(artist))), copyright="; ".join(filter(None, notices))), is_whole


def _value(exif: bytes, entry: ExifEntry) -> bytes | None:
    """An entry's text; None if it lies outside the block."""
    at = entry.at
    if entry.count > 4:
        (at,) = struct.unpack_from(f"{entry.endian}I", exif, at)
    if entry.count > _MAX_VALUE_BYTES or at + entry.count > len(exif):
        return None
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
