"""Tenants and keys in their table: the fake that the other tests use and the adapter, by one suite."""

from __future__ import annotations

import json
from dataclasses import replace

import boto3
import pytest

from darkroom.domain.kernel.tenants import Tenant, TenantState, Tier
from darkroom.domain.tenants.api_keys import ApiKey
from darkroom_cli.operator.aws.tenant_registry import TenantRegistryTable
from darkroom_cli.operator.operations.tenants.create_key import CreateKeyPorts, create_key
from darkroom_cli.operator.ports import TenantRegistry
from tests.contract.conftest import Aws
from tests.contract.stores import ACME, STORED, tenants_table_of
from tests.support.fakes.audit import trail_of
from tests.support.fakes.tenants import FakeTenants


@pytest.fixture
def tenants(kind: str, aws: Aws) -> TenantRegistry:
    return FakeTenants() if kind == "fake" else tenants_table_of(aws)


@pytest.mark.parametrize(
    "tenant",
    [
        ACME,
        replace(ACME, state=TenantState.SUSPENDED, requests_per_second=3, burst=4),
        replace(ACME, import_from=("s3://photos/acme/", "s3://exports/")),
    ],
)
def test_a_tenant_is_read_as_it_was_added(tenants: TenantRegistry, tenant: Tenant) -> None:
    assert tenants.tenant("acme") is None
    assert tenants.add_tenant(tenant) == tenant == tenants.tenant("acme")


def test_the_first_tenant_of_a_name_and_the_first_key_of_an_id_stay(tenants: TenantRegistry) -> None:
    tenants.add_tenant(ACME)
    assert tenants.add_tenant(replace(ACME, tier=Tier.FREE)) == ACME == tenants.tenant("acme")
    tenants.add_key(STORED)
    assert tenants.add_key(replace(STORED, tenant_id="other")) == STORED == tenants.key(STORED.key_id)


@pytest.mark.parametrize("label", ["ci", None])
def test_a_key_is_read_as_it_was_added_and_revoked_once(tenants: TenantRegistry, label: str | None) -> None:
    key = replace(STORED, label=label)
    assert tenants.key(key.key_id) is None and tenants.revoke_key(key.key_id, 5) is None
    assert tenants.key(key.key_id) is None, "what is not there is not made by revoking it"
    assert tenants.add_key(key) == key == tenants.key(key.key_id)
    assert tenants.revoke_key(key.key_id, 5) == replace(key, revoked_at=5)
    assert tenants.revoke_key(key.key_id, 6) == replace(key, revoked_at=5) == tenants.key(key.key_id)


def test_a_key_for_some_time_and_some_things_is_read_as_it_was_added(tenants: TenantRegistry) -> None:
    key = replace(STORED, expires_at=9, scopes=("images:read", "images:write"), last_used_on="2026-11-20")
    assert tenants.add_key(key) == key == tenants.key(key.key_id)


@pytest.mark.guards("key-rotation-never-prolongs")
def test_a_key_expires_at_the_earliest_instant_that_anybody_gave_it(tenants: TenantRegistry) -> None:
    assert tenants.expire_key(STORED.key_id, 50) is None and tenants.key(STORED.key_id) is None
    tenants.add_key(STORED)
    for at, then in ((50, 50), (60, 50), (50, 50), (40, 40)):
        assert tenants.expire_key(STORED.key_id, at) == replace(STORED, expires_at=then) == tenants.key(STORED.key_id)


def test_the_latest_day_of_a_keys_use_is_kept(tenants: TenantRegistry) -> None:
    tenants.note_use(STORED.key_id, "2026-11-20")
    assert tenants.key(STORED.key_id) is None, "what is not there is not made by its use"
    tenants.add_key(STORED)
    for day, then in (("2026-11-20", "2026-11-20"), ("2026-11-19", "2026-11-20"), ("2026-11-21", "2026-11-21")):
        tenants.note_use(STORED.key_id, day)
        assert tenants.key(STORED.key_id) == replace(STORED, last_used_on=then)


def test_what_is_removed_is_gone_and_nothing_else(tenants: TenantRegistry) -> None:
    other = replace(STORED, key_id="00000000")
    for key in (STORED, other):
        tenants.add_key(key)
    tenants.add_tenant(ACME)
    for _ in range(2):
        tenants.remove_key(STORED.key_id)
        tenants.remove_tenant("nobody")
    assert (tenants.key(STORED.key_id), tenants.key(other.key_id), tenants.tenant("acme")) == (None, other, ACME)
    tenants.remove_tenant("acme")
    assert (tenants.tenant("acme"), tenants.key(other.key_id)) == (None, other)


def test_of_a_tenant_only_what_differs_is_changed(tenants: TenantRegistry) -> None:
    assert tenants.change_tenant(ACME, replace(ACME, tier=Tier.FREE)) is None
    assert tenants.tenant("acme") is None, "what is not there is not made by changing it"
    tenants.add_tenant(ACME)
    tenants.change_tenant(ACME, replace(ACME, burst=9))
    changed = tenants.change_tenant(ACME, replace(ACME, state=TenantState.SUSPENDED, tier=Tier.FREE))
    assert changed == replace(ACME, state=TenantState.SUSPENDED, tier=Tier.FREE, burst=9) == tenants.tenant("acme")
    assert changed is not None
    assert tenants.change_tenant(changed, replace(changed, burst=None)) == replace(changed, burst=None)
    assert tenants.change_tenant(changed, changed) == replace(changed, burst=None), "no change is none"


def test_tenants_and_keys_are_listed_in_order_and_apart(tenants: TenantRegistry) -> None:
    others = [replace(ACME, tenant_id=name) for name in ("key", "Zeta", "zeta")]
    keys = [replace(STORED, key_id=f"0000000{n}", created_at=9 - n, tenant_id="zeta") for n in range(3)]
    for tenant in (ACME, *others):
        tenants.add_tenant(tenant)
    for key in (*keys, STORED):
        tenants.add_key(key)
    assert [tenant.tenant_id for tenant in tenants.all_tenants()] == ["Zeta", "acme", "key", "zeta"]
    assert [key.key_id for key in tenants.all_keys() if isinstance(key, ApiKey)] == [
        STORED.key_id,
        "00000002",
        "00000001",
        "00000000",
    ]


def test_a_listing_reads_every_page(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    client = boto3.client("dynamodb")
    tenants = TenantRegistryTable(client, aws.tenants_table)
    for number in range(5):
        tenants.add_key(replace(STORED, key_id=f"0000000{number}"))
    client.meta.events.register("provide-client-params.dynamodb.Scan", lambda params, **_: params | {"Limit": 2})
    assert len(tenants.all_keys()) == 5


@pytest.mark.promise("no-secret-kept")
def test_nothing_in_the_table_opens_anything(aws: Aws) -> None:
    tenants = tenants_table_of(aws)
    tenants.add_tenant(ACME)
    key, _ = create_key(
        CreateKeyPorts(audit=trail_of(), tenants=tenants, clock=lambda: 1, randomness=lambda size: bytes(range(size))),
        "acme",
        label=None,
    )
    assert key.rpartition("_")[2][:32] not in json.dumps(
        boto3.client("dynamodb").scan(TableName=aws.tenants_table)["Items"]
    )
