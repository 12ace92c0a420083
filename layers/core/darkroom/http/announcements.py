"""How a request announces a file: its JSON, told by field what is wrong with it."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from darkroom.domain.announcement import UNKNOWN_MEDIA_TYPE, Announcement
from darkroom.domain.field_problems import FieldProblem, InvalidFields, in_words
from darkroom.domain.order import order_of
from darkroom.domain.recipes import WHOLE
from darkroom.http.timetables import read_timetable

MAX_ANNOUNCEMENT_BYTES = 16_384
"""Four times the longest recipe, so that one can be indented."""

MAX_ANNOUNCED_BYTES = 10**15

SHA256_PATTERN = "[0-9a-fA-F]{64}"

MEDIA_TYPE_PATTERN = "[a-zA-Z0-9][a-zA-Z0-9!#$&^_.+-]{0,62}/[a-zA-Z0-9][a-zA-Z0-9!#$&^_.+-]{0,62}"
"""RFC 6838, section 4.2, without parameters, which say nothing of a picture."""


class InvalidUpload(InvalidFields):
    """What was written announces no upload; `body` is the whole."""

    def __init__(self, problems: tuple[FieldProblem, ...]) -> None:
        super().__init__("invalid_upload", "The upload cannot be announced so.", problems)


class _Written(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    size_bytes: Annotated[int, Field(alias="bytes", ge=1, le=MAX_ANNOUNCED_BYTES), WHOLE]
    sha256: Annotated[str, StringConstraints(pattern=f"^{SHA256_PATTERN}$")]
    content_type: Annotated[str, StringConstraints(pattern=f"^{MEDIA_TYPE_PATTERN}$")] = UNKNOWN_MEDIA_TYPE
    preset: str | None = None
    variants: tuple[str, ...] | None = None
    recipe: dict[str, Any] | None = None
    process_at: str | None = None
    delay: str | None = None
    expires_at: str | None = None


def read_announcement(body: bytes) -> Announcement:
    """The announcement that a request's JSON makes.

    Raises Rejected: `invalid_upload`, by field, and what `order_of` and `read_timetable` raise.
    """
    if len(body) > MAX_ANNOUNCEMENT_BYTES:
        told = f"has {len(body)} bytes, and {MAX_ANNOUNCEMENT_BYTES} are the most"
        raise InvalidUpload((FieldProblem(field="body", message=told),))
    try:
        written = _Written.model_validate_json(body)
    except ValidationError as error:
        raise InvalidUpload(_problems_of(error)) from error
    return Announcement(
        size_bytes=written.size_bytes,
        sha256=written.sha256.lower(),
        media_type=written.content_type,
        order=order_of(
            preset=written.preset,
            variants=None if written.variants is None else ",".join(written.variants),
            recipe=None if written.recipe is None else json.dumps(written.recipe, separators=(",", ":")),
        ),
        timetable=read_timetable(process_at=written.process_at, delay=written.delay, expires_at=written.expires_at),
    )


_FIELDS = tuple(field.alias or name for name, field in _Written.model_fields.items())

_PATTERNS = {
    "sha256": "must be the file's SHA-256 in 64 hexadecimal digits, as sha256sum prints it",
    "content_type": "must be a media type without parameters, as in image/jpeg",
}


def _problems_of(error: ValidationError) -> tuple[FieldProblem, ...]:
    problems = []
    for details in error.errors(include_url=False):
        path = ".".join(str(part) for part in details["loc"])
        match details["type"]:
            case "string_pattern_mismatch":
                message = _PATTERNS[path]
            case "extra_forbidden":
                message = f"is no field. Known fields: {', '.join(_FIELDS)}"
            case _:
                message = in_words(details)
        problems.append(FieldProblem(field=path[:40] or "body", message=message))
    return tuple(problems[:_MOST_PROBLEMS])


_MOST_PROBLEMS = 16
