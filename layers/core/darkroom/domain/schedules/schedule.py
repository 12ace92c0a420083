"""When an image is to be processed: what a client may ask for, and the limits."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.instants import Milliseconds, rfc3339

MAX_DELAY_SECONDS = 364 * 24 * 3600
"""The furthest ahead that an image can be scheduled: an execution that holds a batch lives a year at most
(https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html)."""

PAST_TOLERANCE_SECONDS = 60
"""An instant that has just passed, by the client's clock or during the request, means now."""


@dataclass(frozen=True, kw_only=True)
class Timetable:
    """What a client asked for: an instant, or a delay from acceptance, and an instant after which the image is useless
    to it. None of these is set if it wants its image now, however long it takes."""

    process_at: Milliseconds | None = None
    delay_milliseconds: int | None = None
    expires_at: Milliseconds | None = None

    @property
    def asked_for(self) -> str:
        """What makes the timetables of two requests under one Idempotency-Key the same; empty if nothing was asked
        for."""
        parts = (("at", self.process_at), ("delay", self.delay_milliseconds), ("expires", self.expires_at))
        return "".join(f"\0{name}:{value}" for name, value in parts if value is not None)


@dataclass(frozen=True, kw_only=True)
class Appointment:
    """When an image is due to be processed (None: at once) and when it expires (None: never)."""

    process_at: Milliseconds | None = None
    expires_at: Milliseconds | None = None


AT_ONCE = Timetable()


def appoint(timetable: Timetable, *, now: Milliseconds) -> Appointment:
    """The instants that the timetable means now. Raises Rejected, with the limits, if they are past or too far ahead
    (`invalid_process_at`, `invalid_delay`, `invalid_expires_at`)."""
    latest = now + MAX_DELAY_SECONDS * 1000
    process_at = timetable.process_at
    if timetable.delay_milliseconds is not None:
        if timetable.delay_milliseconds > MAX_DELAY_SECONDS * 1000:
            raise Rejected("invalid_delay", "A delay is at most P364D.")
        process_at = now + timetable.delay_milliseconds
    elif process_at is not None and not now - PAST_TOLERANCE_SECONDS * 1000 <= process_at <= latest:
        raise Rejected(
            "invalid_process_at",
            f"process_at must be between now and 364 days from now: {rfc3339(now)} to {rfc3339(latest)}. "
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
                "expires_at must be after the image's time, by at most 364 days: "
                f"{rfc3339(begins_at)} to {rfc3339(last)}. It is {rfc3339(timetable.expires_at)}.",
            )
    return Appointment(process_at=process_at, expires_at=timetable.expires_at)
