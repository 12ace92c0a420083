"""The rights in IPTC-IIM (version 4.2), which JPEG carries among Photoshop's image resources."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

from darkroom.imaging.headers.header import MAX_PIECES
from darkroom.imaging.rights.rights import Rights, decoded, plain

_IIM, _IIM_DIGEST = 0x0404, 0x0425
_CHARACTER_SET, _UTF_8 = (1, 90), b"\x1b%G"  # ISO 2022's escape sequence
_VERSION, _BY_LINE, _CREDIT, _SOURCE, _COPYRIGHT = (2, 0), (2, 80), (2, 110), (2, 115), (2, 116)
_EXTENDED, _MAX_LENGTH_BYTES = 0x8000, 4
"""The flag of an extended dataset: the other bits of its length say how many bytes hold the actual length."""

_MAX_BYTES = {_BY_LINE: 32, _CREDIT: 32, _SOURCE: 32, _COPYRIGHT: 128}
"""The most bytes of a text in IIM: what is longer is whole in XMP."""


def rights_in_iptc(resources: bytes) -> tuple[Rights, bool, bool]:
    """What the image resources say, whether IIM was changed by software that does not know XMP, and whether the
    resources are whole: what comes after damage is not read.

    The resource 0x0425 is IIM's MD5 at the time when XMP had the same.
    """
    iim, digest = b"", b""
    values: dict[tuple[int, int], list[str]] = {}
    is_whole = True
    try:
        for number, data in _resources(resources):
            if number == _IIM and not iim:
                iim = data
            elif number == _IIM_DIGEST:
                digest = data
    except (ValueError, struct.error):
        is_whole = False
    try:
        for name, text in _datasets(iim):
            if name in _MAX_BYTES:
                values.setdefault(name, []).append(plain(decoded(text)))
    except (ValueError, struct.error):
        is_whole = False
    rights = Rights(
        creators=tuple(filter(None, values.get(_BY_LINE, ()))),
        copyright=values.get(_COPYRIGHT, [""])[0],
        credit=values.get(_CREDIT, [""])[0],
        source=values.get(_SOURCE, [""])[0],
    )
    return rights, bool(digest) and digest != _digest(iim), is_whole


def _resources(body: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    for _ in range(MAX_PIECES):
        if body[at : at + 4] != b"8BIM":
            return
        number, name_length = struct.unpack_from(">HB", body, at + 4)
        at += 6 + (name_length + 2) // 2 * 2  # the name and its length, padded to an even number
        (length,) = struct.unpack_from(">I", body, at)
        at += 4
        if at + length > len(body):
            raise ValueError("a resource is longer than the block")
        yield number, body[at : at + length]
        at += length + length % 2


def _datasets(iim: bytes) -> Iterator[tuple[tuple[int, int], bytes]]:
    at = 0
    for _ in range(MAX_PIECES):
        if iim[at : at + 1] != b"\x1c":  # the end, or padding
            return
        record, number, length = struct.unpack_from(">BBH", iim, at + 1)
        at += 5
        if length & _EXTENDED:  # guard: rights-iptc-extended-dataset
            size = length & ~_EXTENDED
            if size > _MAX_LENGTH_BYTES:  # guard: rights-iptc-length-bound
                raise ValueError("a dataset has too long a length")
            length = int.from_bytes(iim[at : at + size])
            at += size
        if at + length > len(iim):
            raise ValueError("a dataset is longer than the block")
        yield (record, number), iim[at : at + length]
        at += length


def iptc_with(rights: Rights) -> bytes:
    """Photoshop's image resources that have the rights as IIM, in UTF-8, with its digest; empty if IIM has no field for
    what is known."""
    texts = [
        *((_BY_LINE, name) for name in rights.creators),
        (_CREDIT, rights.credit),
        (_SOURCE, rights.source),
        (_COPYRIGHT, rights.copyright),
    ]
    datasets = [_dataset(name, _cut(text, _MAX_BYTES[name])) for name, text in texts if text]
    if not datasets:
        return b""
    iim = _dataset(_CHARACTER_SET, _UTF_8) + _dataset(_VERSION, b"\0\x04") + b"".join(datasets)
    return _resource(_IIM, iim) + _resource(_IIM_DIGEST, _digest(iim))


def _cut(text: str, most: int) -> bytes:
    return text.encode()[:most].decode(errors="ignore").encode()


def _digest(iim: bytes) -> bytes:
    return hashlib.md5(iim, usedforsecurity=False).digest()


def _dataset(name: tuple[int, int], data: bytes) -> bytes:
    return struct.pack(">BBBH", 0x1C, *name, len(data)) + data


def _resource(number: int, data: bytes) -> bytes:
    return struct.pack(">4sHHI", b"8BIM", number, 0, len(data)) + data + b"\0" * (len(data) % 2)
