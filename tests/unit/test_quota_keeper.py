"""The keeper of quotas: how often it looks, what it lets in, and that nothing broken refuses anybody."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.kernel.errors import Rejected, TurnedAway
from darkroom.domain.kernel.stored import NOTHING, QuotaExceeded, Stored
from darkroom.domain.kernel.tenants import NO_QUOTA, Quota
from darkroom.operations.tenants.quota_keeper import KNOWN_MILLISECONDS, QuotaKeeper
from tests.support.fakes import World
from tests.support.fakes.events import FakeUsage
from tests.support.fakes.pictures import jpeg
from tests.support.faults import raising

NOW = 1_795_251_600_000
QUOTA = Quota(stored_bytes=1_000, images=10)
PHOTO = jpeg(64, 48)


class House:
    """A keeper, its clock, and the tenant's sum."""

    def __init__(self, stored: Stored = NOTHING) -> None:
        self.now = NOW
        self.sums = FakeUsage(store={"acme": stored})
        self.keeper = QuotaKeeper(sums=self.sums, clock=lambda: self.now)

    def takes(self, size_bytes: int = 1, quota: Quota = QUOTA, tenant_id: str = "acme") -> bool:
        try:
            self.keeper.require_room(tenant_id, quota, size_bytes=size_bytes)
        except QuotaExceeded:
            return False
        return True


def test_a_file_that_fits_is_let_in_and_one_that_does_not_is_refused() -> None:
    house = House(Stored(size_bytes=950, images=9))
    assert house.takes(50)
    assert not house.takes(51)
    assert house.takes(51, tenant_id="globex"), "another's sum"


def test_it_falls_again_when_something_is_deleted() -> None:
    house = House(Stored(size_bytes=1_000, images=3))
    assert not house.takes()
    house.sums.store["acme"] = Stored(size_bytes=600, images=2)
    assert house.takes()


def test_without_a_quota_nothing_is_read() -> None:
    house = House(Stored(size_bytes=10**18, images=10**9))
    assert house.takes(10**9, NO_QUOTA)
    assert house.sums.reads == 0


def test_far_from_its_quota_a_busy_tenant_costs_one_read_in_ten_seconds() -> None:
    house = House(Stored(size_bytes=500))
    for _ in range(100):
        assert house.takes()
        house.now += KNOWN_MILLISECONDS // 50
    assert house.sums.reads == 2


@pytest.mark.guards("quotas-known-sum-expiry", case="too long ago")
@pytest.mark.parametrize("passed", [KNOWN_MILLISECONDS, -1], ids=["too long ago", "in the future"])
def test_a_sum_of_another_time_is_not_relied_on(passed: int) -> None:
    house = House(Stored(size_bytes=500))
    assert house.takes()
    house.sums.store["acme"] = Stored(size_bytes=1_000)
    house.now += passed
    assert not house.takes()


@pytest.mark.guards("quotas-fresh-read-near-limit")
def test_near_its_quota_each_upload_looks() -> None:
    house = House(Stored(size_bytes=901))
    for used in (950, 999, 1_000):
        assert house.takes()
        house.sums.store["acme"] = Stored(size_bytes=used)
    assert not house.takes()
    assert house.sums.reads == 4


def test_a_quota_that_was_lowered_counts_at_once() -> None:
    house = House(Stored(size_bytes=500))
    assert house.takes()
    assert not house.takes(quota=Quota(stored_bytes=400, images=10))


@pytest.mark.guards("quotas-negative-sum-no-credit")
def test_a_sum_below_zero_is_no_credit() -> None:
    house = House(Stored(size_bytes=-5_000, images=-3))
    assert not house.takes(1_001)
    assert house.takes(1_000)


@pytest.mark.guards("quotas-unreadable-sum-admits")
@pytest.mark.parametrize("error", [None, PermissionError("not allowed"), KeyError("stored")])
def test_a_sum_that_cannot_be_read_refuses_nobody_and_is_told(
    error: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    house = House(Stored(size_bytes=1_000))
    if error is None:
        house.sums.is_down = True
    else:
        house.sums.stored = raising(error)  # type: ignore[method-assign]
    assert house.takes()
    assert caplog.messages == ["what a tenant stores not read"]


def test_tenants_do_not_fill_the_memory() -> None:
    house = House()
    for number in range(2_500):
        house.takes(tenant_id=f"tenant-{number}")
    assert len(house.keeper._known) <= 1_000


# ── The operations ───────────────────────────────────────────────────────────────────────────────────────────────────


def ways(world: World, **more: Any) -> dict[str, Any]:
    """The three ways in which a photo comes."""
    return {
        "sent": lambda: world.submit(PHOTO, tenant_id="acme", **more),
        "announced": lambda: world.begin(PHOTO, tenant_id="acme", **more),
        "fetched": lambda: world.ask("https://photos.example/a.jpg", tenant_id="acme", **more),
    }


@pytest.mark.guards("quotas-room-required")
@pytest.mark.parametrize("way", ["sent", "announced", "fetched"])
def test_whichever_way_it_comes_what_does_not_fit_is_refused_and_leaves_nothing(world: World, way: str) -> None:
    world.sums.store["acme"] = Stored(size_bytes=1_000, images=3)
    with pytest.raises(Rejected) as refused:
        ways(world, quota=QUOTA)[way]()
    assert refused.value.code == "quota_exceeded"
    assert (world.images.rows, world.originals.objects) == ({}, {})


@pytest.mark.parametrize("way", ["sent", "announced", "fetched"])
def test_a_repetition_of_what_was_accepted_is_answered_although_the_quota_is_used_up(world: World, way: str) -> None:
    first = ways(world, quota=Quota(), idempotency_key="k")[way]()
    world.sums.store["acme"] = Stored(size_bytes=1_000, images=10)
    again = ways(world, quota=QUOTA, idempotency_key="k")[way]()
    assert (again.image.image_id, again.replayed) == (first.image.image_id, True)


def test_a_file_from_a_url_needs_room_for_the_largest(world: World) -> None:
    largest = world.limits.max_bytes
    world.sums.store["acme"] = Stored(size_bytes=1, images=1)
    with pytest.raises(QuotaExceeded):
        ways(world, quota=Quota(stored_bytes=largest))["fetched"]()
    assert ways(world, quota=Quota(stored_bytes=largest + 1))["fetched"]()


FEW = Quota(unfinished=100)


@pytest.mark.guards("unfinished-unlimited-unread")
def test_unfinished_images_are_looked_at_only_for_who_may_have_a_certain_number() -> None:
    house = House(Stored(unfinished=120))

    def unfinished(tenant_id: str = "acme", quota: Quota = FEW) -> int:
        return house.keeper.require_room(tenant_id, quota, size_bytes=1).unfinished

    assert (unfinished(quota=NO_QUOTA), house.sums.reads) == (0, 0)
    assert (unfinished(), unfinished("globex")) == (120, 0)
    house.sums.store["acme"] = Stored(unfinished=20)
    assert unfinished() == 20, "near the number each upload looks"
    house.sums.is_down, house.now = True, house.now + KNOWN_MILLISECONDS
    assert unfinished() == 0, "and what cannot be read refuses nobody"


@pytest.mark.guards("unfinished-turn-required", "unfinished-scheduled-accepted", "unfinished-scheduled-or-uncounted")
@pytest.mark.parametrize("way", ["sent", "announced", "fetched"])
def test_who_has_too_many_unfinished_images_waits_while_its_lane_has_as_many(world: World, way: str) -> None:
    world.sums.store["acme"] = Stored(unfinished=150)
    world.depths.depths["slow"] = 99
    assert ways(world, quota=FEW)[way](), "what the lane does not have is scheduled, or ended and not counted yet"
    world.depths.depths["slow"] = 200
    world.advance(60_000)
    reads = world.sums.reads
    with pytest.raises(TurnedAway) as refused:
        ways(world, quota=FEW)[way]()
    assert world.sums.reads == reads + 1, "one look at the sum is for both bounds"
    assert (refused.value.code, refused.value.retry_after_seconds) == ("too_many_unfinished", 26), (
        "51 images at 2 a second"
    )
    assert way == "sent" or ways(world, quota=FEW, delay="PT1H")[way](), "it begins when those have ended"
    assert ways(world, quota=replace(FEW, unfinished=151))[way]()
