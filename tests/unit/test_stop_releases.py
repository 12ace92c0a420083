"""All batches are stopped before a stack is removed, also those that come meanwhile."""

from __future__ import annotations

import pytest

from darkroom.domain.kernel.errors import Retryable
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.operator.operations.schedules.stop_releases import (
    SETTLE_SECONDS,
    Stopped,
    StopReleasesPorts,
    stop_releases,
)
from tests.support.fakes.audit import FakeAudit, trail_of
from tests.support.fakes.stores import FakeReleases
from tests.support.faults import Faults, failing


def ports(releases: FakeReleases, pauses: list[float], *, stop_after: int | None = None) -> StopReleasesPorts:
    return StopReleasesPorts(
        releases=releases,
        patience=TransientRetry(
            pause=pauses.append, stop=lambda: stop_after is not None and len(releases.stopped) >= stop_after
        ),
        audit=trail_of(FakeAudit()),
    )


@pytest.mark.guards("release-stop-consumer-first")
def test_what_comes_while_the_consumer_ends_is_stopped_too_and_nothing_twice() -> None:
    releases = FakeReleases(batches=["b", "a"], late=["c"])
    pauses: list[float] = []
    assert stop_releases(ports(releases, pauses)) == Stopped(batches=3, complete=True)
    assert (releases.stopped, releases.holds) == (["a", "b", "c"], False)
    assert len(pauses) == 2 * SETTLE_SECONDS


@pytest.mark.guards("release-stop-awaits-consumer")
def test_a_stack_without_batches_waits_for_the_last_one_that_may_come() -> None:
    pauses: list[float] = []
    assert stop_releases(ports(FakeReleases(), pauses)) == Stopped(batches=0, complete=True)
    assert sum(pauses) == SETTLE_SECONDS


def test_an_operator_who_ends_it_early_is_told_that_it_is_not_complete() -> None:
    releases = FakeReleases(batches=["a", "b", "c"])
    assert stop_releases(ports(releases, [], stop_after=2)) == Stopped(batches=2, complete=False)
    assert releases.stopped == ["a", "b"]


def test_a_list_that_is_not_answered_is_read_again() -> None:
    faults = Faults(
        lambda call: "throttled" if [*faults.calls].count(call.name) == 1 and call.name == "releases.waiting" else None
    )
    releases = faults.around("releases", FakeReleases(batches=["a"]))
    assert stop_releases(ports(releases, [])).batches == 1


def test_what_cannot_be_stopped_for_minutes_is_an_error() -> None:
    releases = failing(FakeReleases(batches=["a"]), "stop", Retryable("throttled"))
    with pytest.raises(Retryable):
        stop_releases(ports(releases, []))
