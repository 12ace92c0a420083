"""Where each format keeps EXIF, IPTC-IIM, XMP and text: finds the blocks, and reads nothing in them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from darkroom.domain.images.media_types import SNIFF_BYTES, input_format_of
from darkroom.imaging.headers.chunks import chunks
from darkroom.imaging.headers.jpeg import segments
from darkroom.imaging.rights.items import metadata_items
from darkroom.imaging.rights.xmp import MAX_XMP_BYTES

_APP1, _APP13, _SOS = 0xE1, 0xED, 0xDA

EXIF_SIGNATURE = b"Exif\0\0"
XMP_SIGNATURE = b"http://ns.adobe.com/xap/1.0/\0"
PHOTOSHOP_SIGNATURE = b"Photoshop 3.0\0"
PNG_XMP_KEYWORD = b"XML:com.adobe.xmp"

_MAX_RESOURCES_BYTES = 1_000_000
_TEXT_BYTES = 65_536
_XMP_CHUNK_BYTES = MAX_XMP_BYTES + 4096  # with its keywords


@dataclass(kw_only=True)
class Blocks:
    """A file's blocks, each the first of its kind: empty if there is none. `texts` are PNG's, by their keywords."""

    exif: bytes = b""
    xmp: bytes = b""
    resources: bytes = b""
    texts: dict[bytes, bytes] = field(default_factory=dict)


def blocks_in(original: bytes) -> Blocks:
    """The blocks of a JPEG, PNG, WebP, AVIF or HEIC file; GIF has no field for an author.

    Raises what the walks of these formats raise: Rejected, struct.error or IndexError.
    """
    match input_format_of(original[:SNIFF_BYTES]):
        case "jpeg":
            return _in_jpeg(original)
        case "png":
            return _in_png(original)
        case "webp":
            return _in_webp(original)
        case "avif" | "heic":
            items = metadata_items(original)
            # The item begins with the offset of the TIFF file in it (ISO/IEC 23008-12, A.2.1).
            exif = items.get(b"Exif", b"")
            return Blocks(exif=exif[4 + int.from_bytes(exif[:4]) :], xmp=items.get(b"application/rdf+xml", b""))
    return Blocks()


def _in_jpeg(body: bytes) -> Blocks:
    blocks = Blocks()
    for marker, start, end in segments(body):
        if marker == _SOS:
            break
        data = body[start + 4 : end] if marker in (_APP1, _APP13) else b""
        if data.startswith(EXIF_SIGNATURE):
            blocks.exif = blocks.exif or data.removeprefix(EXIF_SIGNATURE)
        elif data.startswith(XMP_SIGNATURE):  # what did not fit in it is in other segments, and is not read
            blocks.xmp = blocks.xmp or data.removeprefix(XMP_SIGNATURE)
        elif data.startswith(PHOTOSHOP_SIGNATURE) and len(blocks.resources) < _MAX_RESOURCES_BYTES:
            blocks.resources += data.removeprefix(PHOTOSHOP_SIGNATURE)  # long ones are in several segments
    return blocks


def _in_png(body: bytes) -> Blocks:
    blocks = Blocks()
    for name, at, length in chunks(body, 8, ">I4s", trailer=4):
        if name == b"IEND":
            break
        if name == b"eXIf":
            blocks.exif = blocks.exif or body[at : at + length].removeprefix(EXIF_SIGNATURE)
        elif name in (b"tEXt", b"zTXt", b"iTXt"):
            keyword, _, rest = body[at : at + min(length, 80)].partition(b"\0")
            if keyword == PNG_XMP_KEYWORD and name == b"iTXt":
                blocks.xmp = blocks.xmp or _text(name, body[at : at + min(length, _XMP_CHUNK_BYTES)], MAX_XMP_BYTES + 1)
            elif keyword in (b"Author", b"Copyright") and rest and keyword not in blocks.texts:
                blocks.texts[keyword] = _text(name, body[at : at + min(length, _TEXT_BYTES)], _TEXT_BYTES)
    return blocks


def _text(name: bytes, chunk: bytes, most: int) -> bytes:
    """The text in a PNG's chunk, inflated if need be; if that fails, a zero byte, which is neither XML nor a name."""
    _, _, rest = chunk.partition(b"\0")
    compressed = name == b"zTXt" or rest[:1] == b"\1"
    if name == b"zTXt":
        rest = rest[1:]
    elif name == b"iTXt":  # two flags, a language and the keyword in it
        rest = rest[2:].split(b"\0", 2)[-1]
    else:
        compressed = False
    if not compressed:
        return rest[:most]
    try:
        return zlib.decompressobj().decompress(rest, most)
    except zlib.error:
        return b"\0"


def _in_webp(body: bytes) -> Blocks:
    blocks = Blocks()
    end = int.from_bytes(body[4:8], "little") + 8
    for name, at, length in _chunks_until(body, end):
        if name == b"EXIF":
            blocks.exif = blocks.exif or body[at : at + length].removeprefix(EXIF_SIGNATURE)
        elif name == b"XMP ":
            blocks.xmp = blocks.xmp or body[at : at + length]
    return blocks


def _chunks_until(body: bytes, end: int) -> Iterator[tuple[bytes, int, int]]:
    for name, at, length in chunks(body, 12, "<4sI", trailer=0):
        if at > end:  # the rest does not belong to the file
            return
        yield name, at, length
