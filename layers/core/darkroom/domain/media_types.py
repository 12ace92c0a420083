"""The media type of an image by its first bytes: what a client calls a file is never believed."""

from __future__ import annotations

SNIFF_BYTES = 16
"""How many leading bytes `media_type_of` needs."""

ACCEPTED_MEDIA_TYPES = ("image/jpeg", "image/png", "image/webp", "image/gif")


def media_type_of(head: bytes) -> str | None:
    """The accepted media type that begins with `head`, or None where the bytes are none of them.

    The signatures are those of the WHATWG MIME Sniffing Standard, section 6.1
    (https://mimesniff.spec.whatwg.org/#matching-an-image-type-pattern).
    """
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head[:4] == b"RIFF" and head[8:14] == b"WEBPVP":
        return "image/webp"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return None


def name_of_unsupported(head: bytes) -> str:
    """What the bytes of a refused upload look like, in words for its owner: "a PDF document", "text", …"""
    if head[4:8] == b"ftyp":
        brand = head[8:12]
        if brand in (b"heic", b"heix", b"hevc", b"mif1", b"msf1"):
            return "a HEIC photo"
        if brand in (b"avif", b"avis"):
            return "an AVIF image"
        return "a video or another ISO media file"
    for signature, name in _UNSUPPORTED.items():
        if head.startswith(signature):
            return name
    if b"\0" in head:
        return "of an unknown type"
    try:
        head.decode()
    except UnicodeDecodeError as error:
        # A character cut in two at the end of the head is still text.
        return "text" if error.start >= len(head) - 3 and len(head) == SNIFF_BYTES else "of an unknown type"
    return "text"


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
    b"--": "a multipart form: send the file's bytes alone as the body (curl --data-binary @photo.jpg)",
}
