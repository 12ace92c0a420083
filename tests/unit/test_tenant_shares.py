"""How much of a lane's work its tenants take: the ranking, and who is noisy."""

from __future__ import annotations

import pytest

from darkroom.domain.tenants.shares import ranking

CAPACITY = 10 * 15 * 60_000
"""What ten workers can do in the window, in milliseconds."""


def test_who_takes_the_most_is_first_beside_the_median_of_the_others() -> None:
    first, second, *_, last = ranking({"b": 300, "acme": CAPACITY // 2, "c": 100, "d": 200, "idle": 0}, 10)
    assert (first.tenant_id, first.of_capacity, first.times_median) == ("acme", 0.5, CAPACITY / 2 / 200)
    assert (second.tenant_id, second.times_median, last.tenant_id) == ("b", 300 / 200, "c")
    assert first.of_work == pytest.approx(1, abs=0.001) and ranking({}, 10) == ranking({"idle": 0}, 10) == ()


@pytest.mark.guards("noisy-part-of-capacity", "noisy-beside-the-median")
@pytest.mark.parametrize(
    ("acme", "others", "is_noisy"),
    [
        (0.2, [0.04, 0.04], True),
        (0.19, [0.001, 0.001], False),
        (0.2, [0.041, 0.041], False),
        (0.5, [0.001, 0.2, 0.3], False),
        (0.9, [], False),
    ],
    ids=["a fifth of the lane", "less than that", "one of several alike", "three large ones", "alone in it"],
)
def test_a_tenant_is_noisy_by_its_part_of_what_the_lane_can_do_beside_others(
    acme: float, others: list[float], is_noisy: bool
) -> None:
    busy = {"acme": round(acme * CAPACITY)} | {
        f"{place}": round(other * CAPACITY) for place, other in enumerate(others)
    }
    (share,) = [share for share in ranking(busy, 10) if share.tenant_id == "acme"]
    assert share.is_noisy is is_noisy
