"""When to come again, as a response says it."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from darkroom.domain.kernel.instants import Milliseconds


def seconds_until(retry_after: str | None, now: Milliseconds) -> int | None:
    """What a Retry-After says (RFC 9110, section 10.2.3): seconds, or a date; None for anything else."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return int(text[:9])
    try:
        instant = parsedate_to_datetime(text)
        return max(0, round(instant.timestamp() - now / 1000))
    except (ValueError, TypeError, OverflowError):
        return None
