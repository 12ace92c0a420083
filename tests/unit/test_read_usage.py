"""Telling a tenant what it stores and used: which days, and what is no day."""

from __future__ import annotations

import pytest

from darkroom.domain.kernel.errors import Rejected, Retryable
from darkroom.domain.kernel.stored import Stored
from darkroom.domain.usage.usage import Usage
from darkroom.operations.usage.read_usage import ReadUsagePorts, read_usage
from tests.support.fakes.events import FakeUsage

NOW = 1_795_251_600_000  # 2026-11-21T09:00:00Z


def ports(usage: FakeUsage) -> ReadUsagePorts:
    return ReadUsagePorts(sums=usage, clock=lambda: NOW)


def used() -> FakeUsage:
    days = ("2026-11-21", "2026-10-22", "2026-10-21")
    sums = {("acme", day): Usage(images=number) for number, day in enumerate(days, start=1)}
    return FakeUsage(sums={**sums, ("globex", "2026-11-21"): Usage(images=9)}, store={"acme": Stored(size_bytes=-1)})


def test_the_last_31_days_are_told_the_oldest_first() -> None:
    usage = read_usage(ports(used()), tenant_id="acme", since=None, until=None)
    assert (usage.since, usage.until, usage.stored) == ("2026-10-22", "2026-11-21", Stored())
    assert [(day.day, day.usage.images) for day in usage.days] == [("2026-10-22", 2), ("2026-11-21", 1)]


def test_a_range_is_told_with_both_of_its_ends() -> None:
    usage = read_usage(ports(used()), tenant_id="acme", since="2026-10-21", until="2026-10-22")
    assert [day.day for day in usage.days] == ["2026-10-21", "2026-10-22"]
    assert read_usage(ports(used()), tenant_id="initech", since="2026-10-21", until=None).days == []
    assert read_usage(ports(used()), tenant_id="acme", since=None, until="0001-01-05").since == "0001-01-01"
    assert read_usage(ports(used()), tenant_id="acme", since="2025-11-21", until="2026-11-21").days


@pytest.mark.parametrize(
    ("since", "until"),
    [
        ("2026-11-22", None),
        ("2026-11-22", "2026-11-21"),
        ("2025-11-20", "2026-11-21"),
        ("yesterday", None),
        (None, "2026-02-30"),
        ("2026-1-1", None),
        ("20261101", None),
        (None, ""),
        ("stored", None),
        ("\u0662026-11-01", None),
    ],
)
def test_what_is_no_range_of_days_is_refused(since: str | None, until: str | None) -> None:
    with pytest.raises(Rejected) as refused:
        read_usage(ports(used()), tenant_id="acme", since=since, until=until)
    assert refused.value.code == "invalid_days"


def test_a_table_that_does_not_answer_is_no_empty_month() -> None:
    with pytest.raises(Retryable):
        read_usage(ports(FakeUsage(is_down=True)), tenant_id="acme", since=None, until=None)
