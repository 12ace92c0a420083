"""Reads a request to change an image, its time or its visibility: its JSON, as openapi.json describes it."""

from __future__ import annotations

import json
from typing import TypedDict

from pydantic import ConfigDict

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.sizes import limit_in_words
from darkroom.domain.kernel.visibility import Visibility, visibility_named
from darkroom.domain.schedules.schedule import Timetable
from darkroom.http.images.order_fields import VisibilityName, WrittenDuration, WrittenInstant
from darkroom.http.kernel.timetables import read_timetable

MAX_RESCHEDULE_BYTES = 1024
"""The largest body of a request to change an image: its three values and their names take a fifth of it."""


class ImageChange(TypedDict, total=False):
    """The new time of a scheduled image: `process_at` or `delay`, and `expires_at` if it changes; or the new
    `visibility` of one that is done."""

    __pydantic_config__ = ConfigDict(  # type: ignore[misc]
        extra="forbid",
        json_schema_extra={
            "oneOf": [
                {"required": ["process_at"]},
                {"required": ["delay"]},
                {"required": ["visibility"], "not": {"required": ["expires_at"]}},
            ]
        },
    )
    process_at: WrittenInstant
    delay: WrittenDuration
    expires_at: WrittenInstant
    visibility: VisibilityName


def read_change(body: bytes) -> Timetable | Visibility:
    """Returns the times or the visibility in the JSON of a request to change an image. Raises Rejected
    (`invalid_schedule`, `unknown_visibility`, and as `read_timetable` does)."""
    try:
        words = json.loads(body) if len(body) <= MAX_RESCHEDULE_BYTES else None
    except (ValueError, RecursionError):  # no JSON, or a thousand brackets
        words = None
    if (
        not isinstance(words, dict)
        or not words.keys() <= ImageChange.__annotations__.keys()
        or not all(isinstance(word, str) for word in words.values())
        or ("visibility" in words and len(words) > 1)
    ):
        raise Rejected(
            "invalid_schedule",
            f"The body is a JSON object of strings, in at most {limit_in_words(MAX_RESCHEDULE_BYTES)}, that gives a "
            'time: {"process_at": "2027-03-01T09:00:00Z"} or {"delay": "PT2H"}, and expires_at if it is to change; or '
            'a visibility alone: {"visibility": "public"}.',
        )
    if "visibility" in words:
        return visibility_named(words["visibility"])
    return read_timetable(**words)
