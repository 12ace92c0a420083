"""The type of an upload by its first bytes."""

import pytest

from darkroom.domain.images.media_types import (
    MEDIA_TYPES,
    SNIFF_BYTES,
    input_format_of,
    name_of_unsupported,
    names_of,
)
from tests.support.fakes.pictures import encoded, picture


def ftyp(major: bytes, *compatible: bytes, size: int | None = None, minor: bytes = b"\0\0\0\0") -> bytes:
    """The box that an ISO media file begins with, and what may follow it."""
    body = major + minor + b"".join(compatible)
    return (8 + len(body) if size is None else size).to_bytes(4) + b"ftyp" + body + b"\0\0\0\x08free"


@pytest.mark.parametrize(
    ("file_format", "input_format"),
    [("JPEG", "jpeg"), ("PNG", "png"), ("WEBP", "webp"), ("GIF", "gif"), ("AVIF", "avif")],
)
def test_real_files_are_known_by_their_first_bytes(file_format: str, input_format: str) -> None:
    head = encoded(picture(), file_format)[:SNIFF_BYTES]
    assert input_format_of(head) == input_format


@pytest.mark.parametrize("file_format", ["TIFF", "BMP", "ICO", "PDF"])
def test_real_files_of_other_kinds_are_refused_by_name(file_format: str) -> None:
    head = encoded(picture(), file_format)[:SNIFF_BYTES]
    assert input_format_of(head) is None
    assert name_of_unsupported(head) != "of an unknown type"


@pytest.mark.parametrize(
    ("head", "input_format"),
    [
        (ftyp(b"avif", b"mif1", b"miaf"), "avif"),
        (ftyp(b"avis", b"msf1", b"avif"), "avif"),
        (ftyp(b"mif1", b"avif", b"miaf"), "avif"),
        (ftyp(b"heic", b"mif1", b"MiHE", b"MiPr", b"miaf", b"MiHB", b"heic"), "heic"),  # an iPhone's
        (ftyp(b"heix", b"mif1"), "heic"),
        (ftyp(b"hevc", b"msf1"), "heic"),
        (ftyp(b"mif1", b"mif1", b"heic"), "heic"),
        (ftyp(b"heic", b"avif"), "heic"),  # the major brand is the file's own
        (ftyp(b"mif1", *[b"isom"] * 27, b"heic"), "heic"),
        (ftyp(b"mif1", *[b"isom"] * 28, b"heic"), None),  # beyond the sniffed bytes
        (ftyp(b"mif1", b"miaf"), None),  # a picture in an unnamed coding
        (ftyp(b"isom", b"mp41"), None),
        (ftyp(b"isom", minor=b"avif"), None),  # a version, not a brand
        (ftyp(b"mif1", b"isom", b"avif", size=20), None),  # beyond the end of the box
        (ftyp(b"mif1", b"avif", size=19), None),  # not entirely within the box
        (ftyp(b"mif1", b"avif", size=0), None),
        (ftyp(b"avif", size=2**32 - 1), "avif"),
        (b"\0\0\0\x18ftyp", None),
        (b"\0\0\0\x18ftypav", None),
    ],
)
def test_an_iso_media_file_is_known_by_its_brands(head: bytes, input_format: str | None) -> None:
    assert input_format_of(head[:SNIFF_BYTES]) == input_format


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"hello, world, how", "text"),
        (b"gr\xc3\xbc\xc3\x9fe", "text"),
        (b"x" * (SNIFF_BYTES - 1) + b"\xc3", "text"),
        (b"%PDF-1.7", "a PDF document"),
        (ftyp(b"heic"), "a HEIC photo"),
        (ftyp(b"mif1", b"heic"), "a HEIC photo"),
        (ftyp(b"avif"), "an AVIF image"),
        (ftyp(b"isom"), "a video or another ISO media file"),
        (ftyp(b"mif1", b"miaf"), "a HEIF image whose brands do not say how its picture is coded"),
        (ftyp(b"miaf"), "a HEIF image whose brands do not say how its picture is coded"),
        (ftyp(b"msf1", b"iso8"), "a HEIF image whose brands do not say how its picture is coded"),
        (ftyp(b"avci", b"mif1"), "a HEIF image whose picture is not coded in HEVC or AV1"),
        (ftyp(b"mif1", b"jpeg"), "a HEIF image whose picture is not coded in HEVC or AV1"),
        (ftyp(b"crx ", b"isom"), "a raw photo of a Canon camera"),
        (b"\x00\x01\x02\xfe\xff\x80", "of an unknown type"),
        (b"RIFF\0\0\0\0WAVEfmt ", "of an unknown type"),
    ],
)
def test_what_is_refused_has_a_name_for_its_owner(head: bytes, name: str) -> None:
    assert name_of_unsupported(head) == name


def test_a_multipart_form_is_told_how_to_send_the_file() -> None:
    assert "curl -F file=@photo.jpg" in name_of_unsupported(b"------WebKitForm")


@pytest.mark.parametrize("size", range(16))
def test_a_file_of_a_few_bytes_is_no_image_and_no_error(size: int) -> None:
    head = b"RIFF\0\0\0\0WEBPVP8 "[:size]
    assert input_format_of(head) == ("webp" if size >= 14 else None)
    name_of_unsupported(head)
    name_of_unsupported(ftyp(b"avif")[:size])


def test_formats_are_named_as_in_a_sentence_always_in_one_order() -> None:
    assert names_of({"gif", "jpeg", "webp", "png"}) == "JPEG, PNG, WebP or GIF"
    assert names_of(MEDIA_TYPES) == "JPEG, PNG, WebP, GIF, AVIF or HEIC"
    assert names_of({"png"}) == "PNG"
