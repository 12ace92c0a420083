"""Tenants: their names, their allowance, their lane, and what an operator does to them and their keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from darkroom.domain.kernel.lanes import FAST, LANES, LIVE_LANES, SLOW, lane_for, lane_of_upload, live_lane_for
from darkroom.domain.kernel.tenants import (
    MAX_BURST,
    MAX_REQUESTS_PER_SECOND,
    NO_QUOTA,
    NOBODY_IN_PARTICULAR,
    Allowance,
    Caller,
    Quota,
    Tenant,
    TenantState,
    Tier,
    caller_from,
    context_of,
    is_tenant_id,
    tier_named,
)
from darkroom.domain.tenants.api_keys import ApiKey, key_id_of, matches_key
from darkroom_cli.operator.operations.tenants.add_tenant import AddTenantPorts, add_tenant
from darkroom_cli.operator.operations.tenants.change_tenant import ChangeTenantPorts, change_tenant
from darkroom_cli.operator.operations.tenants.create_key import CreateKeyPorts, create_key
from darkroom_cli.operator.operations.tenants.revoke_key import RevokeKeyPorts, UnknownKey, revoke_key
from tests.support.fakes.audit import trail_of
from tests.support.fakes.tenants import FakeTenants

ACME = Tenant(tenant_id="acme", tier=Tier.PAID, created_at=1)


def house(*tenants: Tenant) -> FakeTenants:
    return FakeTenants(tenants={tenant.tenant_id: tenant for tenant in tenants})


def add(tenants: FakeTenants, tenant_id: str = "acme", tier: Tier = Tier.PAID) -> Tenant:
    ports = AddTenantPorts(audit=trail_of(), tenants=tenants, clock=lambda: 1)
    return add_tenant(ports, tenant_id, tier=tier, requests_per_second=None, burst=None)


def key_of(tenants: FakeTenants, *numbers: int) -> tuple[str, ApiKey]:
    """A new key of acme, made of these numbers."""
    ports = CreateKeyPorts(audit=trail_of(), tenants=tenants, clock=lambda: 5, randomness=bits(*numbers))
    return create_key(ports, "acme", label="ci")


def revoke(tenants: FakeTenants, key_id: str, now: int = 1) -> ApiKey:
    return revoke_key(RevokeKeyPorts(audit=trail_of(), tenants=tenants, clock=lambda: now), key_id)


def bits(*numbers: int) -> Callable[[int], bytes]:
    """Randomness that gives these numbers, one after another."""
    left = iter(numbers)
    return lambda size: next(left).to_bytes(size)


def test_what_identity_providers_call_their_subjects_names_a_tenant_and_nothing_else_does() -> None:
    named = ["acme", "A", "7", "auth0|5f7c8ec7", "eu-west-1:0a1b", "a@b.example", "x" * 128]
    others = ["", "-a", "a b", "a#b", "a/b", "é", "a\n", "[a]", "x" * 129]
    assert [name for name in [*named, *others] if is_tenant_id(name)] == named


def test_who_pays_travels_in_the_fast_lane_and_every_tier_has_one_lane_and_all_but_bulk_have_one() -> None:
    assert (lane_for(Tier.PAID), lane_for(Tier.FREE)) == (FAST, SLOW)
    for tier in Tier:
        assert [lane for lane in LANES.values() if tier in lane.tiers] == [lane_for(tier)], tier
    assert LANES.keys() - {"bulk"} == LIVE_LANES.keys() == {lane_for(tier).name for tier in Tier}


@pytest.mark.guards("tenants-moved-to-known-lane", "tenants-moved-with-old-images")
def test_who_is_moved_to_another_lane_takes_it_for_everything_unless_there_is_none_of_that_name() -> None:
    assert [lane_of_upload(Tier.PAID, moved_to) for moved_to in ("slow", "bulk", None)] == ["slow", "bulk", "fast"]
    assert live_lane_for("fast", Tier.PAID, "bulk") == "bulk" and live_lane_for("slow", Tier.PAID) == "slow"
    assert lane_of_upload(Tier.PAID, "of a later version") == "fast"
    assert live_lane_for("slow", Tier.PAID, "of a later version") == "fast"


@pytest.mark.parametrize("tier", Tier)
def test_a_tier_is_stored_by_its_name_and_may_ask_for_something(tier: Tier) -> None:
    assert tier_named(tier.value) is tier and f"{tier}" == tier.value == tier.name.lower()
    assert 0 < tier.backlog_share <= 1
    assert 0 < tier.allowance.requests_per_second <= MAX_REQUESTS_PER_SECOND
    assert 0 < tier.allowance.burst <= MAX_BURST


def test_a_tenant_may_ask_for_what_its_tier_may_unless_something_else_was_agreed() -> None:
    assert ACME.allowance == Tier.PAID.allowance
    assert replace(ACME, tier=Tier.FREE).allowance == Tier.FREE.allowance
    assert replace(ACME, burst=7).allowance == Allowance(
        requests_per_second=Tier.PAID.allowance.requests_per_second, burst=7
    )


@pytest.mark.guards("quotas-older-authorizer")
def test_a_caller_comes_through_the_gateway_as_it_was() -> None:
    caller = Caller(
        tenant_id="acme",
        tier=Tier.PAID,
        allowance=Allowance(requests_per_second=5, burst=9),
        quota=Quota(stored_bytes=7_000_000_000_000, images=3),
        key_id="k",
    )
    for scopes in (None, frozenset({"images:read", "images:write"}), frozenset[str]()):
        known = replace(caller, scopes=scopes)
        assert caller_from(context_of(known)) == known
        few = replace(known, quota=replace(known.quota, unfinished=500), lane="bulk")
        assert caller_from(context_of(few)) == few
    assert caller_from(context_of(replace(caller, quota=NO_QUOTA))).quota == NO_QUOTA
    known_to_all = {name: value for name, value in context_of(caller).items() if not name.startswith("max_")}
    assert caller_from(known_to_all).quota == NO_QUOTA, "an authorizer without quotas refuses nobody for a minute"
    of_before = {name: value for name, value in context_of(caller).items() if name != "scopes"}
    assert caller_from(of_before) == caller, "what an authorizer without scopes has said, and the gateway still caches"
    with pytest.raises(KeyError):
        caller_from({})


def test_who_names_no_tenant_is_the_default_one_and_pays_nothing() -> None:
    assert (NOBODY_IN_PARTICULAR.tenant_id, NOBODY_IN_PARTICULAR.tier) == ("default", Tier.FREE)


def test_what_cannot_name_a_tenant_is_not_added() -> None:
    tenants = house()
    with pytest.raises(ValueError, match="matches"):
        add(tenants, "a#b")
    assert tenants.tenants == {}


def test_a_tenant_is_changed_and_what_another_operator_changed_stays() -> None:
    tenants = house(ACME)

    def suspend(tenant: Tenant) -> Tenant:
        tenants.change_tenant(tenant, replace(tenant, burst=3))
        return replace(tenant, state=TenantState.SUSPENDED)

    assert change_tenant(ChangeTenantPorts(audit=trail_of(), tenants=tenants), "acme", suspend) == replace(
        ACME, state=TenantState.SUSPENDED, burst=3
    )


def test_a_key_is_made_once_and_its_secret_is_not_kept() -> None:
    tenants = house(ACME)
    key, stored = key_of(tenants, 7)
    assert tenants.keys == {key_id_of(key): stored}
    assert (stored.tenant_id, stored.label, stored.created_at, stored.revoked_at) == ("acme", "ci", 5, None)
    assert matches_key(key, stored)


def test_a_key_whose_id_is_taken_is_made_anew() -> None:
    tenants = house(ACME)
    first, _ = key_of(tenants, 1)
    # The id is in the first five bytes: these two numbers differ only in the secret.
    second, stored = key_of(tenants, 2, 1 << 190)
    assert key_id_of(second) != key_id_of(first)
    assert stored == tenants.key(key_id_of(second) or "")
    with pytest.raises(RuntimeError, match="randomness"):
        key_of(tenants, 2, 3, 4)


def test_a_key_is_revoked_once_and_for_all() -> None:
    tenants = house(ACME)
    _, stored = key_of(tenants, 1)
    assert [revoke(tenants, stored.key_id, now).revoked_at for now in (8, 9)] == [8, 8]


@pytest.mark.parametrize("key_id", ["00000000", "", "no id", "#"])
def test_an_unknown_key_cannot_be_revoked(key_id: str) -> None:
    with pytest.raises(UnknownKey):
        revoke(house(), key_id)
