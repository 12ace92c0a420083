"""Reads a request's announcement of a file: its JSON, with every problem reported by field."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from darkroom.domain.kernel.field_problems import FieldProblem, InvalidFields
from darkroom.domain.recipes.recipes import WHOLE
from darkroom.domain.uploads.announcement import UNKNOWN_MEDIA_TYPE, Announcement
from darkroom.http.images.written_orders import WrittenOrder

MAX_ANNOUNCED_BYTES = 10**15

SHA256_PATTERN = "[0-9a-fA-F]{64}"

MEDIA_TYPE_PATTERN = "[a-zA-Z0-9][a-zA-Z0-9!#$&^_.+-]{0,62}/[a-zA-Z0-9][a-zA-Z0-9!#$&^_.+-]{0,62}"
"""RFC 6838, section 4.2, without parameters, which mean nothing for a picture."""


class InvalidUpload(InvalidFields):
    """The JSON is not a valid announcement; `body` names the whole document."""

    def __init__(self, problems: tuple[FieldProblem, ...]) -> None:
        super().__init__("invalid_upload", "The announcement is invalid.", problems)


class _Written(WrittenOrder):
    size_bytes: Annotated[int, Field(alias="bytes", ge=1, le=MAX_ANNOUNCED_BYTES), WHOLE]
    sha256: Annotated[str, StringConstraints(pattern=f"^{SHA256_PATTERN}$")]
    content_type: Annotated[str, StringConstraints(pattern=f"^{MEDIA_TYPE_PATTERN}$")] = UNKNOWN_MEDIA_TYPE


def read_announcement(body: bytes) -> Announcement:
    """Returns the announcement in a request's JSON.

    Raises Rejected: `invalid_upload`, by field, and what `order_of` and `read_timetable` raise.
    """
    written = _Written.read(body, InvalidUpload, patterns=_PATTERNS)
    return Announcement(
        size_bytes=written.size_bytes,
        sha256=written.sha256.lower(),
        media_type=written.content_type,
        order=written.order,
        timetable=written.timetable,
    )


_PATTERNS = {
    "sha256": "must be the file's SHA-256 in 64 hexadecimal digits, as sha256sum prints it",
    "content_type": "must be a media type without parameters, as in image/jpeg",
}
