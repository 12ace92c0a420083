"""Forms (`multipart/form-data`, RFC 7578): reads the bytes of their one part, `file`, and nothing else."""

from __future__ import annotations

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.sizes import limit_in_words

FORM_MEDIA_TYPE = "multipart/form-data"

FILE_PART = "file"
"""The one part that a form has. What the part says about itself, such as its filename, is neither kept nor logged."""

_HOW = "Send the photo as the one part `file`: curl -F file=@photo.jpg"

_MOST_HEADERS = 64
_LONGEST_HEADER = 4096
"""Of a part: RFC 7578 has three headers, and clients add their own. Joining folded lines takes quadratic time."""

_PLAIN_ENCODINGS = frozenset({"7bit", "8bit", "binary"})


def is_form(content_type: str | None) -> bool:
    """Whether a body of this `Content-Type` is a form."""
    return content_type is not None and content_type.partition(";")[0].strip().lower() == FORM_MEDIA_TYPE


def file_in_form(body: bytes, content_type: str) -> bytes:
    """Returns the bytes of the form's part `file`.

    Raises Rejected (`invalid_form`) if the form is broken, lacks that part, or has two of them or other parts.
    """
    # Imported here because most uploads are not forms: only the first form of a process pays the 10 ms.
    from multipart import (  # noqa: PLC0415
        MultipartError,
        ParserLimitReached,
        PushMultipartParser,
        parse_options_header,
    )

    boundary = parse_options_header(content_type)[1].get("boundary")
    if not boundary:
        raise _invalid("Its Content-Type names no boundary; leave that header to your HTTP client.")
    chunks: list[bytes] = []
    is_there = False
    try:
        # In Latin-1 every byte is a character: a filename is not used, so its encoding does not matter.
        with PushMultipartParser(
            boundary,
            header_charset="latin1",  # guard: form-filename-not-decoded
            max_header_count=_MOST_HEADERS,
            max_header_size=_LONGEST_HEADER,  # guard: form-part-header-bound
        ) as parser:
            for event in parser.parse(body):
                if isinstance(event, bytes):
                    chunks.append(event)
                elif event is not None:
                    if event.name != FILE_PART:  # guard: form-single-part
                        raise _invalid("It has a part other than `file`; parameters go into the query.")
                    if is_there:
                        raise _invalid("It has more than one part `file`; send one request per photo.")
                    if (event.header("Content-Transfer-Encoding") or "binary").strip().lower() not in _PLAIN_ENCODINGS:
                        raise _invalid("Its part is encoded; send the bytes as they are (RFC 7578, 4.7).")
                    is_there = True
    except ParserLimitReached as error:
        message = (
            f"Its part has more than {_MOST_HEADERS} headers, or one of more than {limit_in_words(_LONGEST_HEADER)}."
        )
        raise _invalid(message) from error
    except MultipartError as error:
        raise _invalid(
            "It is broken or cut off: its parts do not match its boundary, or their headers are invalid."
        ) from error
    if not is_there:
        raise _invalid("It has no part `file`.")
    return b"".join(chunks)


def _invalid(what: str) -> Rejected:
    return Rejected("invalid_form", f"{what} {_HOW}")
