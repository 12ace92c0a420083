"""Decides whether a credential opens the API, and for whom."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.kernel.instants import Milliseconds, day_of
from darkroom.domain.kernel.tenants import ONLY_UPLOADS, Caller, TenantState
from darkroom.domain.kernel.visibility import Visibility
from darkroom.domain.tenants.api_keys import ApiKey, KeyState, Scope, bearer_token, key_id_of, matches_key
from darkroom.domain.tenants.upload_tokens import is_upload_token, read_signed_token, upload_token_in
from darkroom.ports.kernel import Clock, Secret
from darkroom.ports.tenants import Tenants


@dataclass(frozen=True, kw_only=True)
class Denied:
    """The credential opens nothing. `reason` and `key_id` are for the log; a client is not told which it was."""

    reason: Literal["malformed", "unknown", "forged", "revoked", "expired", "out of scope", "suspended"]
    key_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class AuthorizeRequestPorts:
    """What the decision on a credential needs; upload tokens are signed with a key of messages."""

    tenants: Tenants
    message_keys: Secret
    clock: Clock


def authorize_request(ports: AuthorizeRequestPorts, authorization: str) -> Caller | Denied:
    """Returns whom a request's `Authorization` header acts for, as of now.

    Raises Retryable if the table, or for an upload token the secret, cannot answer: then nobody is let in, and nobody
    is told that their key is wrong.
    """
    key = bearer_token(authorization)
    if key is not None and is_upload_token(key):
        return _by_upload_token(ports, key)
    key_id = None if key is None else key_id_of(key)
    if key is None or key_id is None:
        return Denied(reason="malformed")
    stored = ports.tenants.key(key_id)
    if not matches_key(key, stored) or stored is None:  # guard: key-secret-comparison
        return Denied(reason="unknown", key_id=key_id)
    return _by_key(ports, stored)


def _by_upload_token(ports: AuthorizeRequestPorts, text: str) -> Caller | Denied:
    """Returns whom an upload token acts for: its API key's tenant, while that key opens the API. One that was not
    signed here, or has expired, costs no look at the table."""
    signed = read_signed_token(text)
    if signed is None:
        return Denied(reason="malformed")
    secret = ports.message_keys.version(signed.signed_with)
    if secret is None or not signed.verifies(secret.text):
        return Denied(reason="forged")
    try:
        token = upload_token_in(signed.payload)
    except ValueError:  # a newer version has made it
        return Denied(reason="malformed")
    if token.expires_at <= ports.clock():  # guard: upload-token-expired-denied
        return Denied(reason="expired", key_id=token.key_id)
    stored = ports.tenants.key(token.key_id)
    if stored is None:
        return Denied(reason="unknown", key_id=token.key_id)
    if stored.scopes is not None and Scope.IMAGES_WRITE not in stored.scopes:  # guard: upload-token-key-scope
        return Denied(reason="out of scope", key_id=token.key_id)
    caller = _by_key(ports, stored)
    if isinstance(caller, Denied):
        return caller
    # guard: upload-token-earlier-functions
    return replace(caller, scopes=ONLY_UPLOADS, upload_token=signed.payload)


def _by_key(ports: AuthorizeRequestPorts, stored: ApiKey) -> Caller | Denied:
    """Returns whom a key acts for."""
    now, key_id = ports.clock(), stored.key_id
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
        visibility=tenant.visibility or Visibility.PRIVATE,
        viewer_seconds=tenant.viewer_seconds,
        scopes=None if stored.scopes is None else frozenset(stored.scopes),
        lane=tenant.lane,
    )


def _note_use(ports: AuthorizeRequestPorts, key: ApiKey, now: Milliseconds) -> None:
    """Notes the day of the key's use: one write per key and day. Whether it succeeds decides nothing."""
    today = day_of(now)
    if key.last_used_on != today:  # guard: key-use-noted-daily
        with bookkeeping("key's use not noted"):  # guard: key-use-note-failure-tolerated
            ports.tenants.note_use(key.key_id, today)
