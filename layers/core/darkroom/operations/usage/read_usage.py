"""Tells a tenant what it stores and what it used, day by day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.instants import day_of
from darkroom.domain.kernel.stored import Stored
from darkroom.domain.usage.usage import MAX_DAYS, USUAL_DAYS
from darkroom.ports.kernel import Clock, UnreadableRow
from darkroom.ports.usage import DayOfUsage, UsageCounts


@dataclass(frozen=True, kw_only=True)
class ReadUsagePorts:
    """What telling it needs."""

    sums: UsageCounts
    clock: Clock


@dataclass(frozen=True, kw_only=True)
class UsageOfTenant:
    """What a tenant stores now, and used from `since` to `until`: the days that have anything, the oldest first,
    without those that this version cannot read."""

    stored: Stored
    since: str
    until: str
    days: Sequence[DayOfUsage]
    unreadable: Sequence[UnreadableRow]


def read_usage(ports: ReadUsagePorts, *, tenant_id: str, since: str | None, until: str | None) -> UsageOfTenant:
    """The tenant's usage in these days (UTC), both included: the last 31 unless they say otherwise.

    Raises Rejected (`invalid_days`), and Retryable if the table cannot answer.
    """
    last = _day(until) if until is not None else date.fromisoformat(day_of(ports.clock()))
    first = _day(since) if since is not None else last - timedelta(days=min(USUAL_DAYS - 1, last.toordinal() - 1))
    if not 0 <= (last - first).days < MAX_DAYS:
        raise _invalid()
    days = list(ports.sums.days_of(tenant_id, since=first.isoformat(), until=last.isoformat()))
    return UsageOfTenant(
        stored=ports.sums.stored(tenant_id).shown,
        since=first.isoformat(),
        until=last.isoformat(),
        days=[day for day in days if isinstance(day, DayOfUsage)],
        unreadable=[day for day in days if isinstance(day, UnreadableRow)],
    )


def _day(text: str) -> date:
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII) is None:
            raise _invalid()
        return date.fromisoformat(text)
    except ValueError as error:
        raise _invalid() from error


def _invalid() -> Rejected:
    return Rejected(
        "invalid_days",
        f"since and until are days in UTC, as in 2026-11-23, both included: at most {MAX_DAYS} days, the first one "
        "first.",
    )
