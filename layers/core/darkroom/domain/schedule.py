"""When an image is to be processed: how clients say it, and what bounds it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import TypeAdapter, ValidationError

from darkroom.domain.errors import Rejected
from darkroom.domain.instants import Milliseconds, rfc3339

MAX_DELAY_SECONDS = 364 * 24 * 3600
"""The furthest ahead that an image can be scheduled: an execution that holds a batch lives a year in all
(https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html)."""

MAX_MOVE_BYTES = 1024
"""What a request to move an image may have: its three words and their names take a fifth of it."""

INSTANT_PATTERN = (
    "([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?)([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
"""RFC 3339, section 5.6, with the zone that it asks for. What the pattern lets through may still be no date."""

DURATION_PATTERN = r"P(?=.)([0-9]+W)?([0-9]+D)?(T(?=.)([0-9]+H)?([0-9]+M)?([0-9]+([.,][0-9]+)?S)?)?"
"""ISO 8601, without years and months: how long those are depends on where one begins to count."""

PAST_TOLERANCE_SECONDS = 60
"""An instant that has just passed, by a client's clock or on the way here, means now."""

# A plus sign that nobody has percent-encoded comes out of a query as a space.
_INSTANT = re.compile(INSTANT_PATTERN.replace("[+-]", "[+ -]"))
_DURATION = re.compile(DURATION_PATTERN)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_instants: TypeAdapter[datetime] = TypeAdapter(datetime)
_durations: TypeAdapter[timedelta] = TypeAdapter(timedelta)


@dataclass(frozen=True, kw_only=True)
class Timetable:
    """What a client asked for: an instant, or a delay from when it is accepted, and an instant after which the image is
    of no use to it. None of these is set where it wants its image now and at any price."""

    process_at: Milliseconds | None = None
    delay_milliseconds: int | None = None
    expires_at: Milliseconds | None = None

    @property
    def asked_for(self) -> str:
        """What makes two requests under one Idempotency-Key ask for the same; empty where nothing was said."""
        parts = (("at", self.process_at), ("delay", self.delay_milliseconds), ("expires", self.expires_at))
        return "".join(f"\0{name}:{value}" for name, value in parts if value is not None)


@dataclass(frozen=True, kw_only=True)
class Appointment:
    """When an image is due to be processed (None: at once) and when it expires (None: never)."""

    process_at: Milliseconds | None = None
    expires_at: Milliseconds | None = None


AT_ONCE = Timetable()


def read_timetable(
    *, process_at: str | None = None, delay: str | None = None, expires_at: str | None = None
) -> Timetable:
    """What the words of a request ask for. Raises Rejected (`invalid_process_at`, `invalid_delay`,
    `invalid_expires_at`, `conflicting_parameters`)."""
    if process_at is not None and delay is not None:
        raise Rejected(
            "conflicting_parameters", "process_at names an instant and delay counts from now: send one of them."
        )
    return Timetable(
        process_at=None if process_at is None else _instant("process_at", process_at),
        delay_milliseconds=None if delay is None else _duration(delay),
        expires_at=None if expires_at is None else _instant("expires_at", expires_at),
    )


def appoint(timetable: Timetable, *, now: Milliseconds) -> Appointment:
    """The instants that the timetable comes to now. Raises Rejected, with the bounds, where they are past or too far
    ahead (`invalid_process_at`, `invalid_delay`, `invalid_expires_at`)."""
    latest = now + MAX_DELAY_SECONDS * 1000
    process_at = timetable.process_at
    if timetable.delay_milliseconds is not None:
        if timetable.delay_milliseconds > MAX_DELAY_SECONDS * 1000:
            raise Rejected("invalid_delay", "A delay is at most P364D.")
        process_at = now + timetable.delay_milliseconds
    elif process_at is not None and not now - PAST_TOLERANCE_SECONDS * 1000 <= process_at <= latest:
        raise Rejected(
            "invalid_process_at",
            f"process_at must lie between now and 364 days from now: {rfc3339(now)} to {rfc3339(latest)}. "
            f"It is {rfc3339(process_at)}.",
        )
    if process_at is not None and process_at <= now:
        process_at = None
    begins_at = now if process_at is None else process_at
    if timetable.expires_at is not None:
        last = begins_at + MAX_DELAY_SECONDS * 1000
        if not begins_at < timetable.expires_at <= last:
            raise Rejected(
                "invalid_expires_at",
                "expires_at must lie after the image's time, and at most 364 days after it: "
                f"{rfc3339(begins_at)} to {rfc3339(last)}. It is {rfc3339(timetable.expires_at)}.",
            )
    return Appointment(process_at=process_at, expires_at=timetable.expires_at)


def _instant(name: str, text: str) -> Milliseconds:
    code = f"invalid_{name}"
    problem = Rejected(
        code, f'{name} is an instant with its zone, as in RFC 3339: 2027-03-01T09:00:00+01:00. It is "{text[:40]}".'
    )
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise problem
    try:
        instant = _instants.validate_python((match[1] + match[3].replace(" ", "+")).upper())
        return -((_EPOCH - instant) // timedelta(milliseconds=1))  # rounded up: never early
    except (ValidationError, OverflowError):
        raise problem from None


def _duration(text: str) -> int:
    if not _DURATION.fullmatch(text):
        raise Rejected(
            "invalid_delay",
            "A delay is an ISO 8601 duration of weeks, days, hours, minutes and seconds: PT90S, PT15M, P2DT12H, P52W. "
            f'A day is 24 hours. It is "{text[:40]}". For a date in a calendar send process_at.',
        )
    try:
        duration = _durations.validate_python(text.replace(",", "."))
    except (ValidationError, OverflowError):
        raise Rejected("invalid_delay", "A delay is at most P364D.") from None
    return -(-duration // timedelta(milliseconds=1))
