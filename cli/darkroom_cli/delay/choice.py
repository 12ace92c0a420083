"""Which scheduled images a command is about, from its options, and the period of time that these mean."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from zoneinfo import ZoneInfo

import typer

from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.schedules.schedule import MAX_DELAY_SECONDS
from darkroom_cli.images.ids import checked_image_id
from darkroom_cli.operator.domain.periods import Period, day_period, hour_periods, instant_of, local_time
from darkroom_cli.operator.operations.schedules.list_scheduled import ScheduledSelection

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_HOUR = re.compile(r"([01]?\d|2[0-3])(:00)?")
_DAYS = re.compile(r"[+-]?\d{1,3}d")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The chosen images: those that match every given option. A day, an hour and a time without an offset are in
    `zone`, or in UTC if none is given. An option that cannot be understood raises typer.BadParameter."""

    day: str | None = None
    hour: str | None = None
    from_: str | None = None
    to: str | None = None
    lane: str | None = None
    tenant: str | None = None
    zone: str | None = None
    image: tuple[str, ...] = ()

    def typed(self, **instead: str | None) -> str:
        """The options as they are typed again, each with a space before it; `instead` replaces some."""
        values = vars(self) | instead
        return "".join(
            f" --{name.rstrip('_')} {shlex.quote(argument)}"
            for name, value in values.items()
            for argument in (value if isinstance(value, tuple) else (value,))
            if argument is not None
        )

    @property
    def stretch(self) -> str:
        """The day and the hour, for people."""
        return " ".join(filter(None, (self.day, self.hour and f"{int(self.hour.partition(':')[0]):02d}:00")))

    @property
    def tzinfo(self) -> tzinfo:
        """The time zone of days and hours."""
        if self.zone is None or self.zone == "UTC":
            return UTC
        try:
            return ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError) as error:  # no such zone, no name of one, a folder of zones
            raise _unclear(
                "--zone", f"{self.zone!r} is not in the time zone database, like Europe/Berlin or America/New_York."
            ) from error

    def selection(self, now: Milliseconds) -> ScheduledSelection:
        """The chosen images; without a time, those that are ahead."""
        if self.day is not None and (self.from_ is not None or self.to is not None):
            raise _unclear("--day", "a day already is a period: leave out --from and --to.")
        if self.hour is not None and self.day is None:
            raise _unclear("--hour", "of which day? Use --day too.")
        if self.image and self.day is None:
            raise _unclear("--image", "of which day? Use --day too.")
        if self.lane is not None and self.lane not in LANES:
            raise _unclear("--lane", f"{self.lane!r} is not one of: {', '.join(LANES)}.")
        try:
            period = self._period(now)
        except OverflowError as error:
            raise _unclear("--from" if self.day is None else "--day", "the calendar ends there.") from error
        if period.starts_at > period.ends_at:
            raise _unclear("--to", "it is before --from, or before now.")
        return ScheduledSelection(
            period=period,
            lanes=tuple(LANES) if self.lane is None else (self.lane,),
            tenant_id=self.tenant,
            image_ids=frozenset(map(checked_image_id, self.image)) or None,
        )

    def hours(self) -> tuple[Period, ...]:
        """The hours of the given day, or the given one of them: two if clocks are set back in it."""
        zone = self.tzinfo
        hours = () if self.day is None else hour_periods(_date("--day", self.day), zone)
        if self.hour is None:
            return hours
        match = _HOUR.fullmatch(self.hour)
        if match is None:
            raise _unclear("--hour", f"{self.hour!r} is not an hour from 0 to 23, as in the first column of the list.")
        chosen = tuple(hour for hour in hours if local_time(hour.starts_at, zone).hour == int(match[1]))
        if not chosen:
            raise _unclear("--hour", f"clocks skip {match[1]}:00 on that day.")
        return chosen

    def _period(self, now: Milliseconds) -> Period:
        if self.day is not None:
            hours = self.hours()
            if not hours:
                raise _unclear("--day", f"clocks skip {self.day} there.")
            return Period(starts_at=hours[0].starts_at, ends_at=hours[-1].ends_at)
        # Nothing is further ahead than twice what a client may ask for, whatever its clock said.
        return Period(
            starts_at=now if self.from_ is None else self._instant("--from", self.from_).starts_at,
            ends_at=now + 2 * MAX_DELAY_SECONDS * 1000 if self.to is None else self._instant("--to", self.to).ends_at,
        )

    def _instant(self, option: str, text: str) -> Period:
        """A day from its beginning to its end; an instant as an empty period."""
        if _DAY.fullmatch(text):
            return day_period(_date(option, text), self.tzinfo)
        try:
            local = datetime.fromisoformat(text)
        except ValueError as error:
            raise _unclear(
                option,
                f"{text!r} is neither a day nor a time: 2026-12-24, 2026-12-24T18:00, 2026-12-24T18:00:00+01:00.",
            ) from error
        at = instant_of(local if local.tzinfo is not None else local.replace(tzinfo=self.tzinfo))
        return Period(starts_at=at, ends_at=at)


def _unclear(option: str, message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint=option)


def _date(option: str, text: str) -> date:
    try:
        if _DAY.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise _unclear(option, f"{text!r} is not a day like 2026-12-24.")


def days_of(text: str) -> int:
    """How many days "1d", "+7d" or "-1d" are. Raises typer.BadParameter for anything else, and for "0d"."""
    if not _DAYS.fullmatch(text) or int(text[:-1]) == 0:
        raise _unclear("--by", f"{text!r} is not a number of whole days like 1d, 7d or -1d.")
    return int(text[:-1])
