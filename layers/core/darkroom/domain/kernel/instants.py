"""Instants in the forms that people and clients read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import overload

type Milliseconds = int
"""An instant: whole milliseconds since 1970-01-01T00:00:00Z. Every `*_at` and `*_until` of a row is one."""


@overload
def rfc3339(instant: Milliseconds) -> str: ...


@overload
def rfc3339(instant: Milliseconds | None) -> str | None: ...


def rfc3339(instant: Milliseconds | None) -> str | None:
    """An instant as RFC 3339 in UTC with milliseconds, or None."""
    if instant is None:
        return None
    return datetime.fromtimestamp(instant / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def day_of(instant: Milliseconds) -> str:
    """The day of an instant in UTC, as in 2026-11-23."""
    return rfc3339(instant)[:10]


def timestamp(instant: Milliseconds) -> str:
    """An instant in RFC 3339 for a state machine's Wait state. That truncates milliseconds, so it must be a whole
    second: raises ValueError for any other."""
    if instant % 1000:
        raise ValueError(f"{instant} is no whole second")
    return datetime.fromtimestamp(instant // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def from_rfc3339(text: str) -> Milliseconds:
    """The instant of a text in RFC 3339. Raises ValueError for any other, and for one without an offset."""
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text!r} has no offset")
    return round(instant.timestamp() * 1000)
