"""Days and hours by local clocks, also when summer time begins and ends."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from darkroom.domain.kernel.instants import rfc3339
from darkroom_cli.operator.domain.periods import day_period, days_later, hour_periods, instant_of, local_time

BERLIN = ZoneInfo("Europe/Berlin")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")
BEIRUT = ZoneInfo("Asia/Beirut")
"""A zone whose clocks skip the hour after midnight in spring."""
HOUR = 3_600_000


def at(text: str) -> int:
    return instant_of(datetime.fromisoformat(text).replace(tzinfo=BERLIN))


def test_a_day_of_utc_is_from_midnight_to_midnight() -> None:
    period = day_period(date(2026, 12, 24), UTC)
    assert (rfc3339(period.starts_at), rfc3339(period.ends_at)) == (
        "2026-12-24T00:00:00.000Z",
        "2026-12-25T00:00:00.000Z",
    )
    assert period.starts_at in period and period.ends_at not in period


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        (BERLIN, date(2026, 12, 24), 24),
        (BERLIN, date(2027, 3, 28), 23),
        (BERLIN, date(2027, 10, 31), 25),
        (BEIRUT, date(2027, 3, 28), 23),
    ],
)
def test_a_day_has_as_many_hours_as_its_clocks_show(zone: ZoneInfo, day: date, hours: int) -> None:
    day_of_clock, parts = day_period(day, zone), hour_periods(day, zone)
    assert len(parts) == hours and day_of_clock.ends_at - day_of_clock.starts_at == hours * HOUR
    assert [part.starts_at for part in parts[1:]] == [part.ends_at for part in parts[:-1]]
    assert (parts[0].starts_at, parts[-1].ends_at) == (day_of_clock.starts_at, day_of_clock.ends_at)
    assert local_time(day_of_clock.starts_at, zone).date() == day == local_time(day_of_clock.ends_at - 1, zone).date()
    assert local_time(day_of_clock.starts_at - 1, zone).date() == day - timedelta(days=1)


def test_a_day_that_is_half_an_hour_longer_ends_with_half_an_hour() -> None:
    parts = hour_periods(date(2027, 4, 4), LORD_HOWE)
    assert len(parts) == 25 and parts[-1].ends_at - parts[-1].starts_at == HOUR // 2


@pytest.mark.parametrize(
    ("before", "days", "after"),
    [
        ("2026-12-24T09:00", 1, "2026-12-25T09:00"),
        ("2027-03-27T09:00", 1, "2027-03-28T09:00"),  # 23 hours later
        ("2027-10-30T09:00", 1, "2027-10-31T09:00"),  # 25 hours later
        ("2027-10-31T23:30", -1, "2027-10-30T23:30"),
        ("2027-03-27T02:30", 1, "2027-03-28T03:30"),  # clocks skip this hour
        ("2026-12-31T23:59:59.999", 7, "2027-01-07T23:59:59.999"),
    ],
)
def test_days_later_it_is_the_same_time_of_the_day(before: str, days: int, after: str) -> None:
    assert days_later(at(before), days, BERLIN) == at(after)


def test_whatever_the_hour_of_the_long_day_a_day_later_is_another_day() -> None:
    long_day = day_period(date(2027, 10, 31), BERLIN)
    for instant in range(long_day.starts_at, long_day.ends_at, HOUR // 2):
        for days in (1, -1):
            assert days_later(instant, days, BERLIN) not in long_day
