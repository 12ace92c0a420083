"""Backfills in virtual time, as `make bench-scale` plays them, with fewer images."""

from __future__ import annotations

import pytest

from benchmarks.scale.backfills import MOST_RATIO, PER_SECOND, SMALL_ACCOUNT, beside, interrupted
from darkroom.domain.kernel.lanes import LIVE_LANES

pytestmark = pytest.mark.promise("backfill-gives-way")


def test_live_lanes_keep_their_service_levels_beside_a_backfill_even_where_it_takes_of_their_workers() -> None:
    without, with_it = (beside(seed=7, images=images, minutes=1.2, most_running=SMALL_ACCOUNT) for images in (0, 1_000))
    assert with_it["made_again"] == 1_000 and with_it["live"] == without["live"]
    for lane in PER_SECOND:
        took = with_it[f"{lane}_p99_seconds"]
        assert without[f"{lane}_p99_seconds"] < took < MOST_RATIO * without[f"{lane}_p99_seconds"]
        assert took < LIVE_LANES[lane].sla_seconds


@pytest.mark.promise("backfill-faults")
def test_after_ten_interruptions_each_image_was_made_again_and_counted_once() -> None:
    row = interrupted(seed=7, images=600)
    assert (row["made_again"], row["counted"], row["wrong"]) == (600, 600, 0)
