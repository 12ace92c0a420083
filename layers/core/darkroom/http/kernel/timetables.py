"""Reads when an image is to be processed: instants as in RFC 3339, durations as in ISO 8601."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from pydantic import TypeAdapter, ValidationError

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom.domain.schedules.schedule import Timetable

INSTANT_PATTERN = "([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2})([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
"""RFC 3339, section 5.6, with the zone that it requires. Text that matches may still be no date."""

DURATION_PATTERN = r"P(?=.)([0-9]+W)?([0-9]+D)?(T(?=.)([0-9]+H)?([0-9]+M)?([0-9]+([.,][0-9]+)?S)?)?"
"""ISO 8601, without years and months, whose length depends on the start date."""

# A plus sign that was not percent-encoded comes out of a query as a space.
_INSTANT = re.compile(INSTANT_PATTERN.replace("[+-]", "[+ -]"))
_DURATION = re.compile(DURATION_PATTERN)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_instants: TypeAdapter[datetime] = TypeAdapter(datetime)
_durations: TypeAdapter[timedelta] = TypeAdapter(timedelta)


def read_timetable(
    *, process_at: str | None = None, delay: str | None = None, expires_at: str | None = None
) -> Timetable:
    """Returns the times that a request's parameters ask for. Raises Rejected (`invalid_process_at`, `invalid_delay`,
    `invalid_expires_at`, `conflicting_parameters`)."""
    if process_at is not None and delay is not None:
        raise Rejected(
            "conflicting_parameters", "process_at names an instant and delay counts from now: send one of them."
        )
    return Timetable(
        process_at=None if process_at is None else read_instant("process_at", process_at),
        delay_milliseconds=None if delay is None else read_duration(delay),
        expires_at=None if expires_at is None else read_instant("expires_at", expires_at),
    )


def read_instant(name: str, text: str) -> Milliseconds:
    """Returns the instant that a text names. Raises Rejected (`invalid_` and the name)."""
    code = f"invalid_{name}"
    problem = Rejected(
        code, f'{name} is an instant with its zone, as in RFC 3339: 2027-03-01T09:00:00+01:00. It is "{text[:40]}".'
    )
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise problem
    try:
        second = _instants.validate_python((match[1] + match[3].replace(" ", "+")).upper())
        instant = (second - _EPOCH) // timedelta(milliseconds=1) + _milliseconds_of(match[2])
        # guard: schedules-nameable-instant
        rfc3339(instant)  # raises ValueError for what is in the year 0 or 10000 in UTC
    except (ValueError, OverflowError):
        raise problem from None
    return instant


def read_duration(text: str) -> int:
    """Returns a duration in milliseconds. Raises Rejected (`invalid_delay`)."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise Rejected(
            "invalid_delay",
            "A delay is an ISO 8601 duration of weeks, days, hours, minutes and seconds: PT90S, PT15M, P2DT12H, P52W. "
            f'A day is 24 hours. It is "{text[:40]}". For a date in a calendar send process_at.',
        )
    fraction: str | None = match[7]
    try:
        seconds = _durations.validate_python(f"{text.removesuffix(fraction + 'S')}S" if fraction else text)
    except (ValidationError, OverflowError):
        raise Rejected("invalid_delay", "A delay is at most P364D.") from None
    return seconds // timedelta(milliseconds=1) + _milliseconds_of(fraction)


def _milliseconds_of(fraction: str | None) -> int:
    """Returns a fraction of a second, such as ".1234567", rounded up: no image begins early."""
    digits = (fraction or "")[1:]
    return int(digits[:3].ljust(3, "0")) + bool(digits[3:].strip("0"))  # guard: schedules-rounded-up
