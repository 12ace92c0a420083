"""Decides whether a credential opens the API, and for whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from darkroom.domain.api_keys import bearer_token, key_id_of, opens
from darkroom.domain.tenants import Caller, TenantState
from darkroom.ports import Tenants


@dataclass(frozen=True, kw_only=True)
class Denied:
    """The credential opens nothing. `reason` and `key_id` are for the log; a client is not told which it was."""

    reason: Literal["malformed", "unknown", "revoked", "suspended"]
    key_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What the decision on a credential needs."""

    tenants: Tenants


def authorize_request(ports: Ports, authorization: str) -> Caller | Denied:
    """Returns whom a request's `Authorization` header acts for, as of now.

    Raises Retryable if the table cannot answer: then nobody is let in, and nobody is told that their key is wrong.
    """
    key = bearer_token(authorization)
    key_id = None if key is None else key_id_of(key)
    if key is None or key_id is None:
        return Denied(reason="malformed")
    stored = ports.tenants.key(key_id)
    if not opens(key, stored) or stored is None:
        return Denied(reason="unknown", key_id=key_id)
    if stored.revoked_at is not None:
        return Denied(reason="revoked", key_id=key_id)
    tenant = ports.tenants.tenant(stored.tenant_id)
    if tenant is None or tenant.state is not TenantState.ACTIVE:
        return Denied(reason="suspended", key_id=key_id)
    return Caller(tenant_id=tenant.tenant_id, tier=tenant.tier, allowance=tenant.allowance, key_id=key_id)
