"""Replacing a key while both work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.tenants import Tenant, Tier
from darkroom.domain.tenants.api_keys import KeyState, key_id_of, matches_key
from darkroom_cli.operator.operations.tenants.create_key import CreateKeyPorts, create_key
from darkroom_cli.operator.operations.tenants.rotate_key import KeyNotActive, rotate_key
from tests.support.fakes.audit import trail_of
from tests.support.fakes.tenants import FakeTenants
from tests.support.faults import raising

NOW = 1_795_251_600_000
DAY = 24 * 3600


class RotationWorld:
    """What an operator works with: tenants, a clock, and numbers that are never the same."""

    def __init__(self) -> None:
        self.tenants = FakeTenants(tenants={"acme": Tenant(tenant_id="acme", tier=Tier.FREE, created_at=1)})
        self.now, self.made = NOW, 0
        self.ports = CreateKeyPorts(
            audit=trail_of(), tenants=self.tenants, clock=lambda: self.now, randomness=self.randomness
        )

    def randomness(self, size: int) -> bytes:
        self.made += 1
        return bytes([self.made]) * size


def test_the_new_key_may_do_the_same_and_the_old_one_ends_after_the_overlap() -> None:
    world = RotationWorld()
    _, old = create_key(world.ports, "acme", label="ci", scopes=("images:read",))
    world.now += 30 * DAY * 1000
    key, new, ending = rotate_key(world.ports, old.key_id, overlap_seconds=7 * DAY)
    assert matches_key(key, world.tenants.keys[new.key_id]) and key_id_of(key) == new.key_id != old.key_id
    assert (new.tenant_id, new.label, new.scopes, new.expires_at) == ("acme", "ci", ("images:read",), None)
    assert ending.expires_at == world.now + 7 * DAY * 1000
    both = [world.tenants.keys[returned.key_id] for returned in (old, new)]
    assert {stored.state(world.now) for stored in both} == {KeyState.ACTIVE}
    assert [stored.state(world.now + 7 * DAY * 1000) for stored in both] == [KeyState.EXPIRED, KeyState.ACTIVE]


def test_a_key_that_expires_earlier_keeps_its_end_and_is_followed_by_one_that_lives_as_long() -> None:
    world = RotationWorld()
    _, old = create_key(world.ports, "acme", label=None, lives_seconds=90 * DAY)
    world.now += 89 * DAY * 1000
    _, new, ending = rotate_key(world.ports, old.key_id, overlap_seconds=7 * DAY)
    assert ending.expires_at == NOW + 90 * DAY * 1000
    assert new.expires_at == world.now + 90 * DAY * 1000


@pytest.mark.guards("key-rotation-of-active-only")
@pytest.mark.parametrize("change", [{"revoked_at": NOW}, {"expires_at": NOW}])
def test_a_key_that_opens_nothing_is_not_replaced(change: dict[str, int]) -> None:
    world = RotationWorld()
    _, old = create_key(world.ports, "acme", label=None)
    world.tenants.keys[old.key_id] = replace(old, **change)  # type: ignore[arg-type]
    with pytest.raises(KeyNotActive):
        rotate_key(world.ports, old.key_id, overlap_seconds=DAY)
    assert len(world.tenants.keys) == 1


def test_a_rotation_that_ends_half_way_leaves_the_old_key_as_it_was() -> None:
    world = RotationWorld()
    _, old = create_key(world.ports, "acme", label=None)
    world.tenants.expire_key = raising(Retryable("changing the tenants: timeout"))  # type: ignore[method-assign]
    with pytest.raises(Retryable):
        rotate_key(world.ports, old.key_id, overlap_seconds=DAY)
    assert world.tenants.keys[old.key_id] == old
