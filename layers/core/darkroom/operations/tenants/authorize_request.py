"""Decides whether a credential opens the API, and for whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.kernel.instants import Milliseconds, day_of
from darkroom.domain.kernel.tenants import Caller, TenantState
from darkroom.domain.tenants.api_keys import ApiKey, KeyState, bearer_token, key_id_of, matches_key
from darkroom.ports.kernel import Clock
from darkroom.ports.tenants import Tenants


@dataclass(frozen=True, kw_only=True)
class Denied:
    """The credential opens nothing. `reason` and `key_id` are for the log; a client is not told which it was."""

    reason: Literal["malformed", "unknown", "revoked", "expired", "suspended"]
    key_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class AuthorizeRequestPorts:
    """What the decision on a credential needs."""

    tenants: Tenants
    clock: Clock


def authorize_request(ports: AuthorizeRequestPorts, authorization: str) -> Caller | Denied:
    """Returns whom a request's `Authorization` header acts for, as of now.

    Raises Retryable if the table cannot answer: then nobody is let in, and nobody is told that their key is wrong.
    """
    key = bearer_token(authorization)
    key_id = None if key is None else key_id_of(key)
    if key is None or key_id is None:
        return Denied(reason="malformed")
    stored = ports.tenants.key(key_id)
    if not matches_key(key, stored) or stored is None:  # guard: key-secret-comparison
        return Denied(reason="unknown", key_id=key_id)
    now = ports.clock()
    match stored.state(now):
        case KeyState.REVOKED:
            return Denied(reason="revoked", key_id=key_id)
        case KeyState.EXPIRED:
            return Denied(reason="expired", key_id=key_id)
    tenant = ports.tenants.tenant(stored.tenant_id)
    if tenant is None or tenant.state is not TenantState.ACTIVE:  # guard: key-of-suspended-tenant-denied
        return Denied(reason="suspended", key_id=key_id)
    _note_use(ports, stored, now)
    return Caller(
        tenant_id=tenant.tenant_id,
        tier=tenant.tier,
        allowance=tenant.allowance,
        quota=tenant.quota,
        key_id=key_id,
        scopes=None if stored.scopes is None else frozenset(stored.scopes),
    )


def _note_use(ports: AuthorizeRequestPorts, key: ApiKey, now: Milliseconds) -> None:
    """Notes the day of the key's use: one write per key and day. Whether it succeeds decides nothing."""
    today = day_of(now)
    if key.last_used_on != today:  # guard: key-use-noted-daily
        with bookkeeping("key's use not noted"):  # guard: key-use-note-failure-tolerated
            ports.tenants.note_use(key.key_id, today)
