"""Reads a request's announcement of a file: its JSON, with every problem reported by field."""

import re
from typing import Annotated, NotRequired, TypedDict

from pydantic import AfterValidator, Field
from pydantic_core import PydanticKnownError

from darkroom.domain.recipes.recipes import WHOLE
from darkroom.domain.tenants.upload_tokens import UploadToken
from darkroom.domain.uploads.announcement import UNKNOWN_MEDIA_TYPE, AnnouncedFile
from darkroom.http.images.order_fields import OnDuplicate
from darkroom.http.images.request_models import STRICT, OrderFields, RequestReader, order_in
from darkroom.http.tenants.upload_tokens import refuse_order_beside_token

MAX_ANNOUNCED_BYTES = 10**15

_MEDIA_TYPE = re.compile("[a-zA-Z0-9][a-zA-Z0-9!#$&^_.+-]{0,62}/[a-zA-Z0-9][a-zA-Z0-9!#$&^_.+-]{0,62}")
"""RFC 6838, section 4.2, without parameters, which mean nothing for a picture."""


def _media_type(text: str) -> str:
    if not _MEDIA_TYPE.fullmatch(text):
        raise PydanticKnownError("string_pattern_mismatch", {"pattern": _MEDIA_TYPE.pattern})
    return text


class _FileFields(TypedDict):
    __pydantic_config__ = STRICT  # type: ignore[misc]
    bytes: Annotated[
        int, Field(ge=1, le=MAX_ANNOUNCED_BYTES, description="Its size; each stack has its own limit."), WHOLE
    ]
    sha256: Annotated[str, Field(pattern="^[0-9a-fA-F]{64}$", description="In hexadecimal, as sha256sum prints it.")]
    content_type: NotRequired[
        Annotated[
            str,
            Field(
                json_schema_extra={"pattern": f"^{_MEDIA_TYPE.pattern}$", "default": UNKNOWN_MEDIA_TYPE},
                description="The form's field Content-Type. The file's bytes decide what it is.",
            ),
            AfterValidator(_media_type),
        ]
    ]


class Announcement(_FileFields, OrderFields):
    """A file to come and how to develop it: `preset` with or without `variants`, or `recipe`; and when."""

    on_duplicate: NotRequired[OnDuplicate | None]


_reader = RequestReader(
    Announcement,
    code="invalid_upload",
    sentence="The announcement is invalid.",
    patterns={
        "sha256": "must be the file's SHA-256 in 64 hexadecimal digits, as sha256sum prints it",
        "content_type": "must be a media type without parameters, as in image/jpeg",
    },
)


def read_announcement(body: bytes, token: UploadToken | None = None) -> AnnouncedFile:
    """Returns the announcement in a request's JSON, by somebody with an upload token, if there is one: then that says
    how to develop the file.

    Raises Rejected: `invalid_upload`, by field, and what `order_in` raises; and Problem (`upload_token_refused`).
    """
    written = _reader.read(body)
    if token is not None:
        refuse_order_beside_token(written.keys() - _FileFields.__annotations__.keys())
    return AnnouncedFile(
        size_bytes=written["bytes"],
        sha256=written["sha256"].lower(),
        media_type=written.get("content_type", UNKNOWN_MEDIA_TYPE),
        order=order_in(written if token is None else token.order),
    )
