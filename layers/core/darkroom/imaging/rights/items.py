"""AVIF and HEIC (ISO/IEC 14496-12 and 23008-12): the items of a file that are EXIF and XMP."""

from __future__ import annotations

from darkroom.imaging.headers.isobmff import boxes, item_kinds, item_places
from darkroom.imaging.rights.xmp import MAX_XMP_BYTES

_IN_FILE, _IN_IDAT = 0, 1


def metadata_items(body: bytes) -> dict[bytes, bytes]:
    """The first EXIF item, as `Exif`, and the first of each content type, by that type.

    Raises struct.error or ValueError if the boxes are broken.
    """
    for name, start, end in boxes(body, 0, len(body)):
        if name == b"meta":
            inside = {name: (start, end) for name, start, end in boxes(body, start + 4, end)}
            if not {b"iinf", b"iloc"} <= inside.keys():
                return {}
            kinds = _kinds(body, *inside[b"iinf"])
            return _contents(body, inside[b"iloc"][0], kinds, idat=inside.get(b"idat", (0, 0)))
    return {}


def _kinds(body: bytes, start: int, end: int) -> dict[int, bytes]:
    """The items that are metadata, by their numbers: what each is."""
    kinds: dict[int, bytes] = {}
    for item, item_type, rest, stop in item_kinds(body, start, end):
        kind = item_type
        if kind == b"mime":
            texts = body[rest:stop].split(b"\0", 2)  # a name, then the content type
            kind = texts[1] if len(texts) > 1 else b""
        if kind not in kinds.values():
            kinds[item] = kind
    return kinds


def _contents(body: bytes, at: int, kinds: dict[int, bytes], *, idat: tuple[int, int]) -> dict[bytes, bytes]:
    """The bytes of these items."""
    contents: dict[bytes, bytes] = {}
    for item, method, places in item_places(body, at):
        kind = kinds.get(item, b"")
        if not kind or kind in contents or method not in (_IN_FILE, _IN_IDAT):
            continue
        content = bytearray()
        for offset, length in places:
            if len(content) <= MAX_XMP_BYTES:
                start = offset + (idat[0] if method == _IN_IDAT else 0)
                content += body[start : start + min(length, MAX_XMP_BYTES + 1)]
        if content:
            contents[kind] = bytes(content)
    return contents
