"""Detects the media type of an image from its first bytes: a client's name for a file is never believed."""

from __future__ import annotations

from collections.abc import Iterable

from darkroom.domain.images.limits import InputFormat
from darkroom.domain.kernel.errors import Rejected

SNIFF_BYTES = 128
"""How many leading bytes are examined: enough for the longest signature and for 28 brands of an ISO media file."""

MEDIA_TYPES: dict[InputFormat, str] = {
    "jpeg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
    "gif": "image/gif",
    "avif": "image/avif",
    "heic": "image/heic",
}

_NAMES: dict[InputFormat, str] = {
    "jpeg": "JPEG",
    "png": "PNG",
    "webp": "WebP",
    "gif": "GIF",
    "avif": "AVIF",
    "heic": "HEIC",
}


def input_format_of(head: bytes) -> InputFormat | None:
    """The format of a file with these first bytes, or None if it is no image that can ever be developed.

    The signatures are those of the WHATWG MIME Sniffing Standard, section 6.1
    (https://mimesniff.spec.whatwg.org/#matching-an-image-type-pattern).
    """
    if head.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if head[:4] == b"RIFF" and head[8:14] == b"WEBPVP":
        return "webp"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "gif"
    return next((_FORMAT_OF_BRAND[brand] for brand in _brands(head) if brand in _FORMAT_OF_BRAND), None)


def accepted_media_type(head: bytes, input_formats: frozenset[InputFormat]) -> str:
    """The media type of a file with these first bytes. Raises Rejected (`unsupported_format`), naming what it is and
    what is accepted."""
    input_format = input_format_of(head)
    if input_format is None or input_format not in input_formats:
        raise Rejected(
            "unsupported_format",
            f"The bytes are {name_of_unsupported(head)}, whatever the file is called. "
            f"Send a {names_of(input_formats)} image.",
        )
    return MEDIA_TYPES[input_format]


def names_of(formats: Iterable[InputFormat]) -> str:
    """Formats as a phrase: "JPEG, PNG, WebP or GIF"."""
    wanted = set(formats)
    *names, last = [name for input_format, name in _NAMES.items() if input_format in wanted]
    return f"{', '.join(names)} or {last}" if names else last


_FORMAT_OF_BRAND: dict[bytes, InputFormat] = {
    # A picture and a sequence (AV1 Image File Format, section 8).
    b"avif": "avif",
    b"avis": "avif",
    # HEVC pictures of 8 and more bits, of layers and of several views, and sequences (ISO/IEC 23008-12, annex B.4).
    b"heic": "heic",
    b"heix": "heic",
    b"heim": "heic",
    b"heis": "heic",
    b"hevc": "heic",
    b"hevx": "heic",
}


def _brands(head: bytes) -> list[bytes]:
    """The brands of an ISO media file (ISO/IEC 14496-12, section 4.3), the major one first; none for any other file.

    Many phones give a photo the general major brand `mif1` and name its coding only among the compatible brands.
    """
    if head[4:8] != b"ftyp":
        return []
    end = min(int.from_bytes(head[:4]), len(head))
    places = [8, *range(16, end - 3, 4)]  # the minor version is in between
    return [head[place : place + 4] for place in places]


def name_of_unsupported(head: bytes) -> str:
    """What the bytes of a refused upload look like, in words for its owner: "a PDF document", "text", …"""
    match input_format_of(head):
        case "avif":
            return "an AVIF image"
        case "heic":
            return "a HEIC photo"
        case _ if brands := _brands(head):
            return next((name for brand, name in _UNSUPPORTED_BRANDS.items() if brand in brands), _OTHER_MEDIA)
    for signature, name in _UNSUPPORTED.items():
        if head.startswith(signature):
            return name
    if b"\0" in head:
        return "of an unknown type"
    try:
        head.decode()
    except UnicodeDecodeError as error:
        # A character cut in two at the end of the head still means text.
        return "text" if error.start >= len(head) - 3 and len(head) == SNIFF_BYTES else "of an unknown type"
    return "text"


_OTHER_MEDIA = "a video or another ISO media file"

_UNSUPPORTED_BRANDS = {
    # H.264, H.266, JPEG, JPEG 2000 and JPEG XS (ISO/IEC 23008-12, annexes E, H, K, L; ISO/IEC 21122-3).
    **dict.fromkeys(
        (b"avci", b"avcs", b"vvic", b"vvis", b"jpeg", b"jpgs", b"j2ki", b"j2is", b"jxsc"),
        "a HEIF image whose picture is not coded in HEVC or AV1",
    ),
    b"crx ": "a raw photo of a Canon camera",
    # What every image and sequence may call itself, in any coding (ISO/IEC 23008-12, clause 10; 23000-22).
    **dict.fromkeys(
        (b"mif1", b"mif2", b"mif3", b"msf1", b"miaf"), "a HEIF image whose brands do not say how its picture is coded"
    ),
}
"""Images in the container of videos, by a brand; the first that fits."""

_UNSUPPORTED = {
    b"%PDF": "a PDF document",
    b"II*\x00": "a TIFF image",
    b"MM\x00*": "a TIFF image",
    b"BM": "a BMP image",
    b"<svg": "an SVG drawing",
    b"<?xml": "XML, perhaps an SVG drawing",
    b"8BPS": "a Photoshop file",
    b"\x00\x00\x01\x00": "an icon",
    b"\xff\x0a": "a JPEG XL image",
    b"\x00\x00\x00\x0cJXL": "a JPEG XL image",
    b"PK\x03\x04": "a ZIP archive",
    b"--": "a form without a form's Content-Type: curl -F file=@photo.jpg sends it as multipart/form-data",
}
