"""What is paused, and from when an image counts that waited meanwhile."""

from __future__ import annotations

import pytest

from darkroom.domain.pauses.pauses import NOTHING_PAUSED, Pause, Pauses

LANE = Pause(kind="lane", name="fast", since=20)
ACME = Pause(kind="tenant", name="acme", since=10)


@pytest.mark.parametrize(
    ("pauses", "paused"),
    [
        ((), (None, None)),
        ((LANE,), (LANE, LANE)),
        ((ACME,), (ACME, None)),
        ((LANE, ACME), (LANE, LANE)),
        ((Pause(kind="lane", name="slow", since=1), Pause(kind="tenant", name="fast", since=1)), (None, None)),
        ((Pause(kind="lane", name="fast", since=1, resumed_at=2), ACME), (ACME, None)),
    ],
)
def test_a_pause_is_of_its_lane_or_its_tenant(
    pauses: tuple[Pause, ...], paused: tuple[Pause | None, Pause | None]
) -> None:
    known = Pauses.of_all(pauses)
    assert (known.of("fast", "acme"), known.of("fast")) == paused


@pytest.mark.guards("pause-end-begins-service-level")
def test_what_waited_counts_from_the_end_of_the_pause() -> None:
    ended = Pauses.of_all(
        [
            Pause(kind="lane", name="fast", since=20, resumed_at=50),
            Pause(kind="tenant", name="acme", since=10, resumed_at=60),
        ]
    )
    assert [ended.counted_since(since, "fast", "acme") for since in (5, 55, 70)] == [60, 60, 70]
    assert [ended.counted_since(since, "fast", "zeta") for since in (5, 55)] == [50, 55]
    assert NOTHING_PAUSED.counted_since(5, "fast", "acme") == 5


def test_the_oldest_pause_is_that_in_force_for_the_longest_time() -> None:
    ended = Pause(kind="lane", name="slow", since=1, resumed_at=2)
    assert Pauses.of_all([LANE, ACME, ended]).oldest() == ACME
    assert NOTHING_PAUSED.oldest() is None
