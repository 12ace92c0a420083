"""The rate at which usage is counted, in virtual time."""

from __future__ import annotations

import pytest

from benchmarks.scale.usage import GOAL_PER_SECOND, counted


@pytest.mark.parametrize("tenants", [1, 100])
def test_a_thousand_events_a_second_are_counted_on_a_bad_day_of_one_tenant_as_of_many(tenants: int) -> None:
    row = counted(tenants=tenants, day="bad", seed=7, events=6000)
    assert row["events_per_second"] > GOAL_PER_SECOND
    assert row["came_back"] == 0
