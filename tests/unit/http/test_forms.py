"""Forms: one part called `file`, whose bytes are taken; any other form is refused with advice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.domain.kernel.errors import Rejected
from darkroom.http.kernel.forms import file_in_form, is_form

BOUNDARY = "----WebKitFormBoundaryABC"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"
PHOTO = b"\xff\xd8\xff\r\n--\r\n--almost" + bytes(range(256)) + b"\r\n"


def part(
    body: bytes = PHOTO, disposition: str = 'form-data; name="file"; filename="IMG 1.jpg"', more: str = ""
) -> bytes:
    return f"--{BOUNDARY}\r\nContent-Disposition: {disposition}\r\n{more}\r\n".encode() + body + b"\r\n"


END = f"--{BOUNDARY}--\r\n".encode()


@pytest.mark.parametrize(
    "form",
    [
        part() + END,
        part() + END.rstrip(),
        part(more="Content-Type: image/jpeg\r\n") + END,
        part(disposition="form-data; name=file") + END,
        part(disposition="form-data; name=\"file\"; filename*=UTF-8''%e2%82%ac.jpg") + END,
        part(more="Content-Transfer-Encoding: binary\r\n") + END,
        b"\r\n" + part() + END,
        part(more="Content-Type: text/plain\r\n") + END,
        part(more="Content-Type: ;;=\x00; charset=none\r\n") + END,
        part(more="Content-Transfer-Encoding: 8bit \r\n") + END,
        part(disposition='form-data;\r\n name="file";\r\n\tfilename="IMG 1.jpg"') + END,
        part(more="".join(f"X-{number}: {number}\r\n" for number in range(20))) + END,
        b"Sent by a scanner\r\n" + part() + END + b"after the end",
    ],
    ids=[
        *("browser", "no last line break", "media type", "no quotes", "extended filename", "binary"),
        *("line break first", "text", "odd media type", "blank after encoding", "folded", "many headers", "around it"),
    ],
)
def test_the_files_bytes_come_out_as_they_went_in(form: bytes) -> None:
    assert file_in_form(form, TYPE) == PHOTO


def named(filename: bytes) -> bytes:
    return part(disposition='form-data; name="file"; filename="?"').replace(b"?", filename, 1) + END


@pytest.mark.guards("form-filename-not-decoded")
@pytest.mark.parametrize("encoding", ["latin-1", "shift-jis", "gbk", "euc-kr", "iso2022_jp", "utf-16-le"])
def test_the_encoding_of_a_filename_does_not_matter(encoding: str) -> None:
    text = {"latin-1": "Grüße", "euc-kr": "사진"}.get(encoding, "表示")
    assert file_in_form(named(text.encode(encoding)), TYPE) == PHOTO


@pytest.mark.guards("form-filename-not-decoded")
@given(st.binary(max_size=255).map(lambda name: name.translate(None, b'\r\n"')))
def test_no_filename_gets_a_photo_refused(filename: bytes) -> None:
    assert file_in_form(named(filename), TYPE) == PHOTO


def test_an_empty_file_is_empty_and_no_broken_form() -> None:
    assert file_in_form(part(b"") + END, TYPE) == b""


def test_a_quoted_boundary_is_the_same_boundary() -> None:
    assert file_in_form(part() + END, f'Multipart/Form-Data; charset=utf-8; boundary="{BOUNDARY}"') == PHOTO


@pytest.mark.guards("form-part-header-bound", "form-single-part")
@pytest.mark.parametrize(
    ("form", "refusal"),
    [
        (b"", "broken or cut off"),
        (part(), "broken or cut off"),
        ((part() + END)[:-12], "broken or cut off"),
        (part() + END.replace(b"ABC", b"ABD"), "broken or cut off"),
        (PHOTO, "broken or cut off"),
        (part().replace(b"\r\n", b"\n") + END, "broken or cut off"),
        (part(disposition="attachment; name=file") + END, "broken or cut off"),
        (part(disposition="form-data") + END, "part other than"),
        (part(more="X: " + "y" * 5000 + "\r\n") + END, "one of more than 4 KiB"),
        (part(more="X: y" + "\r\n y" * 5000 + "\r\n") + END, "one of more than 4 KiB"),
        (part(more="X: y\r\n" * 64) + END, "more than 64 headers"),
        (part(more="Content-Length: 9\r\n") + END, "broken or cut off"),
        (f"--{BOUNDARY}\r\nX: ".encode() + b"\xff\r\n\r\n" + END, "broken or cut off"),
        (END, "no part `file`"),
        (part(disposition='form-data; name="photo"') + END, "part other than"),
        (part() + part(b"standard", 'form-data; name="preset"') + END, "part other than"),
        (part() + part() + END, "more than one part"),
        (part(b"/9j/", more="Content-Transfer-Encoding: base64\r\n") + END, "send the bytes as they are"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_form_that_cannot_be_used_is_refused_with_what_to_do(form: bytes, refusal: str) -> None:
    with pytest.raises(Rejected, match=refusal) as rejected:
        file_in_form(form, TYPE)
    assert rejected.value.code == "invalid_form"
    assert "curl -F file=@photo.jpg" in rejected.value.message


@pytest.mark.parametrize(
    "content_type", ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data;x"]
)
def test_a_form_without_a_boundary_is_refused(content_type: str) -> None:
    with pytest.raises(Rejected, match="names no boundary"):
        file_in_form(part() + END, content_type)


def test_a_form_says_nothing_of_itself_that_comes_back() -> None:
    with pytest.raises(Rejected) as rejected:
        file_in_form(part(disposition='form-data; name="<script>"; filename="<b>"') + END, TYPE)
    assert "<" not in rejected.value.message


def test_a_form_is_known_by_its_media_type() -> None:
    assert is_form(TYPE) and is_form("MULTIPART/FORM-DATA ; boundary=x")
    assert not is_form("image/jpeg") and not is_form(None) and not is_form("multipart/mixed; boundary=x")
