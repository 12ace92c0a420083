"""The times of a cron expression in a time zone, with the semantics of Debian's cron on the days of clock changes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.instants import Milliseconds

MAX_CRON_CHARACTERS = 100

_CLOCK_CHANGE = timedelta(hours=3)
"""More than a clock is put back by: an hour that comes twice has one reading, and only the first is planned."""


def require_times(cron: str, timezone: str, now: Milliseconds) -> Milliseconds:
    """The first time after `now`. Raises Rejected (`unknown_timezone`, `bad_cron`)."""
    try:
        ZoneInfo(timezone)
    except (LookupError, ValueError, OSError) as error:  # ZoneInfoNotFoundError, a path, a folder
        raise Rejected("unknown_timezone", "A time zone is a name as Europe/Berlin or UTC.") from error
    fields = "five fields, minute, hour, day of month, month, day of week, as in 0 4 * * mon-fri"
    if len(cron.split()) != 5 or len(cron) > MAX_CRON_CHARACTERS:
        raise Rejected("bad_cron", f"A cron expression has {fields}.")
    try:
        return next_time(cron, timezone, after=now)
    except (CronSimError, StopIteration) as error:  # it looks for fifty years
        why = str(error) if isinstance(error, CronSimError) else "it never comes"
        raise Rejected("bad_cron", f"{why}: a cron expression has {fields}.") from error


def next_time(cron: str, timezone: str, *, after: Milliseconds) -> Milliseconds:
    """The first time after that instant: one that the clock skips comes when it has gone forward, one that comes twice
    the first time; times of every hour or minute come as they pass."""
    times = map(_milliseconds, CronSim(cron, datetime.fromtimestamp(after / 1000, ZoneInfo(timezone))))
    return next(time for time in times if time > after)  # guard: bulk-schedules-second-hour


def latest_times(cron: str, timezone: str, *, until: Milliseconds) -> Iterator[Milliseconds]:
    """The same times, from the latest that is not after that instant backwards."""
    beginning = datetime.fromtimestamp(until / 1000, UTC) + _CLOCK_CHANGE
    times = map(_milliseconds, CronSim(cron, beginning.astimezone(ZoneInfo(timezone)), reverse=True))
    return (time for time in times if time <= until)


def _milliseconds(time: datetime) -> Milliseconds:
    return round(time.timestamp()) * 1000
