"""The type of an upload by its first bytes."""

import pytest

from darkroom.domain.media_types import SNIFF_BYTES, media_type_of, name_of_unsupported
from tests.pictures import encoded, picture


@pytest.mark.parametrize(
    ("file_format", "media_type"),
    [("JPEG", "image/jpeg"), ("PNG", "image/png"), ("WEBP", "image/webp"), ("GIF", "image/gif")],
)
def test_real_files_are_known_by_their_first_bytes(file_format: str, media_type: str) -> None:
    assert media_type_of(encoded(picture(), file_format)[:SNIFF_BYTES]) == media_type


@pytest.mark.parametrize("file_format", ["TIFF", "BMP", "AVIF", "ICO", "PDF"])
def test_real_files_of_other_kinds_are_refused_by_name(file_format: str) -> None:
    head = encoded(picture(), file_format)[:SNIFF_BYTES]
    assert media_type_of(head) is None
    assert name_of_unsupported(head) != "of an unknown type"


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"hello, world, how", "text"),
        (b"gr\xc3\xbc\xc3\x9fe", "text"),
        (b"%PDF-1.7", "a PDF document"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "a HEIC photo"),
        (b"\0\0\0\x18ftypavif\0\0\0\0", "an AVIF image"),
        (b"\0\0\0\x18ftypisom\0\0\0\0", "a video or another ISO media file"),
        (b"\x00\x01\x02\xfe\xff\x80", "of an unknown type"),
        (b"RIFF\0\0\0\0WAVEfmt ", "of an unknown type"),
    ],
)
def test_what_is_refused_has_a_name_for_its_owner(head: bytes, name: str) -> None:
    assert media_type_of(head) is None
    assert name_of_unsupported(head) == name


def test_a_multipart_form_is_told_how_to_send_the_file() -> None:
    assert "--data-binary" in name_of_unsupported(b"------WebKitForm")


@pytest.mark.parametrize("size", range(16))
def test_a_file_of_a_few_bytes_is_no_image_and_no_error(size: int) -> None:
    head = b"RIFF\0\0\0\0WEBPVP8 "[:size]
    assert media_type_of(head) == ("image/webp" if size >= 14 else None)
    name_of_unsupported(head)
