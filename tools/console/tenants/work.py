"""The work of `darkroom tenants` and `darkroom keys`, once the command line is parsed."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from console.api.client import ApiError
from console.stack.operators import Stack
from console.terminal import display
from darkroom.domain.instants import rfc3339
from darkroom.domain.tenants import AUTHORIZER_CACHE_SECONDS, Tenant, TenantState, Tier
from darkroom.operations.add_tenant import Ports as AddPorts
from darkroom.operations.add_tenant import TenantExists, add_tenant
from darkroom.operations.change_tenant import Ports as ChangePorts
from darkroom.operations.change_tenant import UnknownTenant, change_tenant
from darkroom.operations.create_key import Ports as CreatePorts
from darkroom.operations.create_key import create_key as create_key_of
from darkroom.operations.revoke_key import Ports as RevokePorts
from darkroom.operations.revoke_key import UnknownKey
from darkroom.operations.revoke_key import revoke_key as revoke_key_of
from darkroom.ports import UnreadableRow


def add(stack: Stack, tenant_id: str, *, tier: Tier, requests_per_second: int | None, burst: int | None) -> None:
    """`tenants add`."""
    try:
        with stack.explained():
            tenant = add_tenant(
                AddPorts(tenants=stack.tenants, clock=stack.clock),
                tenant_id,
                tier=tier,
                requests_per_second=requests_per_second,
                burst=burst,
            )
    except TenantExists as error:
        raise ApiError(
            f"The tenant {tenant_id} already exists: {_agreed(error.tenant)}. "
            f"To change it: ./darkroom tenants change {tenant_id}{stack.options}"
        ) from error
    out = display.output()
    display.line(out, f"Added {tenant_id}: {_agreed(tenant)}.")
    display.line(out, f"A key for it:  ./darkroom keys create {tenant_id}{stack.options}")


def change(
    stack: Stack,
    tenant_id: str,
    *,
    tier: Tier | None,
    requests_per_second: int | None,
    burst: int | None,
    usual_limits: bool,
) -> None:
    """`tenants change`."""

    def changed(tenant: Tenant) -> Tenant:
        if usual_limits:
            tenant = replace(tenant, requests_per_second=None, burst=None)
        return replace(
            tenant,
            tier=tier or tenant.tier,
            requests_per_second=requests_per_second or tenant.requests_per_second,
            burst=burst or tenant.burst,
        )

    tenant = _changed(stack, tenant_id, changed)
    display.line(display.output(), f"Changed {tenant_id}: {_agreed(tenant)}. {_IN_FORCE}")


def set_state(stack: Stack, tenant_id: str, state: TenantState) -> None:
    """`tenants suspend` and `tenants resume`."""
    _changed(stack, tenant_id, lambda tenant: replace(tenant, state=state))
    display.line(display.output(), f"{tenant_id} is {state}. {_IN_FORCE}")


def list_tenants(stack: Stack, *, as_json: bool) -> None:
    """`tenants ls`."""
    with stack.explained():
        tenants, keys = _readable(stack.tenants.all_tenants()), _readable(stack.tenants.all_keys())
    open_keys = Counter(key.tenant_id for key in keys if key.revoked_at is None)
    out = display.output()
    if as_json:
        display.print_json(
            [
                {
                    "tenant": tenant.tenant_id,
                    "tier": tenant.tier,
                    "state": tenant.state,
                    "requests_per_second": tenant.allowance.requests_per_second,
                    "burst": tenant.allowance.burst,
                    "keys": open_keys[tenant.tenant_id],
                    "created_at": rfc3339(tenant.created_at),
                }
                for tenant in tenants
            ]
        )
        return
    if not tenants:
        display.line(out, f"No tenants yet. The first one:  ./darkroom tenants add NAME{stack.options}")
        return
    rows = [
        (
            tenant.tenant_id,
            tenant.tier.value,
            tenant.state.value,
            f"{tenant.allowance.requests_per_second:,}",
            f"{tenant.allowance.burst:,}",
            str(open_keys[tenant.tenant_id]),
            _day(tenant.created_at),
        )
        for tenant in tenants
    ]
    heads = ("tenant", "tier", "state", "requests/s", "burst", "keys", "since")
    display.table(out, heads, rows, right=frozenset({"requests/s", "burst", "keys"}))


def create_key(stack: Stack, tenant_id: str, *, label: str | None) -> None:
    """`keys create`: the key is all that goes to standard output."""
    with stack.explained():
        access = stack.access
        try:
            key, stored = create_key_of(
                CreatePorts(tenants=stack.tenants, clock=stack.clock, randomness=secrets.token_bytes),
                tenant_id,
                label=label,
            )
        except UnknownTenant as error:
            raise _no_tenant(stack, tenant_id) from error
    display.line(display.output(), key)
    notes = display.errors()
    display.line(notes, f"The key is shown only this once. In lists and logs it is {stored.key_id}.")
    if access != "keys":
        display.line(
            notes,
            f"It does not work yet: {stack.name} is deployed with Access={access}, not Access=keys.",
            style="yellow",
        )


def list_keys(stack: Stack, tenant_id: str | None, *, as_json: bool) -> None:
    """`keys ls`."""
    with stack.explained():
        if tenant_id is not None and stack.tenants.tenant(tenant_id) is None:
            raise _no_tenant(stack, tenant_id)
        keys = [key for key in _readable(stack.tenants.all_keys()) if tenant_id in (None, key.tenant_id)]
    out = display.output()
    if as_json:
        display.print_json(
            [
                {
                    "id": key.key_id,
                    "tenant": key.tenant_id,
                    "label": key.label,
                    "created_at": rfc3339(key.created_at),
                    "revoked_at": rfc3339(key.revoked_at),
                }
                for key in keys
            ]
        )
        return
    if not keys:
        display.line(out, f"No keys yet. The first one:  ./darkroom keys create {tenant_id or 'TENANT'}{stack.options}")
        return
    rows = [
        (
            key.key_id,
            key.tenant_id,
            "active" if key.revoked_at is None else f"revoked {_day(key.revoked_at)}",
            _day(key.created_at),
            key.label or "",
        )
        for key in keys
    ]
    display.table(out, ("key", "tenant", "state", "since", "label"), rows, right=frozenset())


def revoke_key(stack: Stack, key_id: str) -> None:
    """`keys revoke`."""
    try:
        with stack.explained():
            key = revoke_key_of(RevokePorts(tenants=stack.tenants, clock=stack.clock), key_id)
    except UnknownKey as error:
        raise ApiError(f"There is no key {key_id} here. To list the keys: ./darkroom keys ls{stack.options}") from error
    display.line(display.output(), f"{key_id} of {key.tenant_id} was revoked at {rfc3339(key.revoked_at)}. {_IN_FORCE}")


_IN_FORCE = f"This takes effect within {AUTHORIZER_CACHE_SECONDS} seconds."


def _changed(stack: Stack, tenant_id: str, change: Callable[[Tenant], Tenant]) -> Tenant:
    try:
        with stack.explained():
            return change_tenant(ChangePorts(tenants=stack.tenants), tenant_id, change)
    except UnknownTenant as error:
        raise _no_tenant(stack, tenant_id) from error


def _no_tenant(stack: Stack, tenant_id: str) -> ApiError:
    return ApiError(
        f"There is no tenant {display.printable(tenant_id)} in {stack.name}. "
        f"To list the tenants: ./darkroom tenants ls{stack.options}"
    )


def _readable[Row](rows: Sequence[Row | UnreadableRow]) -> list[Row]:
    """The rows that can be read; the others are reported as errors."""
    for row in rows:
        if isinstance(row, UnreadableRow):
            display.complain(str(row))
    return [row for row in rows if not isinstance(row, UnreadableRow)]


def _agreed(tenant: Tenant) -> str:
    allowance = tenant.allowance
    return f"{tenant.tier}, {allowance.requests_per_second:,} requests per second, {allowance.burst:,} at once"


def _day(instant: int) -> str:
    return str(rfc3339(instant))[:10]
