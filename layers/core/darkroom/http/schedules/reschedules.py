"""Reads a request to reschedule an image: its JSON, as openapi.json describes it."""

from __future__ import annotations

import json
from typing import TypedDict

from pydantic import ConfigDict

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.sizes import limit_in_words
from darkroom.domain.schedules.schedule import Timetable
from darkroom.http.images.order_fields import WrittenDuration, WrittenInstant
from darkroom.http.kernel.timetables import read_timetable

MAX_RESCHEDULE_BYTES = 1024
"""The largest body of a request to reschedule an image: its three values and their names take a fifth of it."""


class Reschedule(TypedDict, total=False):
    """The new time of a scheduled image: `process_at` or `delay`, and `expires_at` if it changes."""

    __pydantic_config__ = ConfigDict(  # type: ignore[misc]
        extra="forbid", json_schema_extra={"oneOf": [{"required": ["process_at"]}, {"required": ["delay"]}]}
    )
    process_at: WrittenInstant
    delay: WrittenDuration
    expires_at: WrittenInstant


def read_reschedule(body: bytes) -> Timetable:
    """Returns the times in the JSON of a request to reschedule an image. Raises Rejected (`invalid_schedule`, and as
    `read_timetable` does)."""
    try:
        words = json.loads(body) if len(body) <= MAX_RESCHEDULE_BYTES else None
    except (ValueError, RecursionError):  # no JSON, or a thousand brackets
        words = None
    if (
        not isinstance(words, dict)
        or not words.keys() <= Reschedule.__annotations__.keys()
        or not all(isinstance(word, str) for word in words.values())
    ):
        raise Rejected(
            "invalid_schedule",
            f"The body is a JSON object of strings, in at most {limit_in_words(MAX_RESCHEDULE_BYTES)}, that gives a "
            'time: {"process_at": "2027-03-01T09:00:00Z"} or {"delay": "PT2H"}, and expires_at if it is to change.',
        )
    return read_timetable(**words)
