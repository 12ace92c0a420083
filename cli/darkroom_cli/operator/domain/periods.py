"""Days and hours by local clocks: when summer time begins or ends, a day has 23 or 25 hours."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from darkroom.domain.kernel.instants import Milliseconds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_DAY = timedelta(days=1)
_HOUR_MILLISECONDS = 3_600_000


@dataclass(frozen=True, kw_only=True)
class Period:
    """A stretch of time: from `starts_at` until just before `ends_at`."""

    starts_at: Milliseconds
    ends_at: Milliseconds

    def __contains__(self, instant: Milliseconds) -> bool:
        return self.starts_at <= instant < self.ends_at


def local_time(instant: Milliseconds, zone: tzinfo) -> datetime:
    """The time that a clock in `zone` shows at that instant."""
    return (_EPOCH + instant * _MILLISECOND).astimezone(zone)


def instant_of(local: datetime) -> Milliseconds:
    """The instant at which its zone's clocks show `local`; the first if they show it twice. A time that they skip in
    spring counts on from before the gap: 02:30 is 03:30."""
    return (local.replace(fold=0).astimezone(UTC) - _EPOCH) // _MILLISECOND


def day_period(day: date, zone: tzinfo) -> Period:
    """That day from its first instant on, even if its clocks skip midnight. Raises OverflowError for the last day of
    the calendar."""
    return Period(starts_at=_midnight(day, zone), ends_at=_midnight(day + _DAY, zone))


def hour_periods(day: date, zone: tzinfo) -> tuple[Period, ...]:
    """The hours of that day: 24, or 23 or 25; the last is shorter if clocks change by half an hour. Raises
    OverflowError as `day_period` does."""
    whole_day = day_period(day, zone)
    starts = range(whole_day.starts_at, whole_day.ends_at, _HOUR_MILLISECONDS)
    return tuple(
        Period(starts_at=start, ends_at=min(start + _HOUR_MILLISECONDS, whole_day.ends_at)) for start in starts
    )


def days_later(instant: Milliseconds, days: int, zone: tzinfo) -> Milliseconds:
    """The same time of day in `zone`, that many days later, or earlier. Raises OverflowError if the calendar ends."""
    return instant_of(local_time(instant, zone) + days * _DAY)


def _midnight(day: date, zone: tzinfo) -> Milliseconds:
    return instant_of(datetime.combine(day, time.min, zone))
