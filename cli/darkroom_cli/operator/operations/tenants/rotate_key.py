"""Replaces an API key by a new one, while both work: an operator command."""

from __future__ import annotations

from darkroom.domain.tenants.api_keys import ApiKey, KeyState, is_key_id
from darkroom_cli.operator.operations.tenants.change_tenant import UnknownTenant
from darkroom_cli.operator.operations.tenants.create_key import CreateKeyPorts, make_key
from darkroom_cli.operator.operations.tenants.revoke_key import UnknownKey


class KeyNotActive(ValueError):
    """The key opens nothing any more, so there is nothing to replace; `key` is that key."""

    def __init__(self, key: ApiKey) -> None:
        super().__init__(key.key_id)
        self.key = key


def rotate_key(ports: CreateKeyPorts, key_id: str, *, overlap_seconds: float) -> tuple[str, ApiKey, ApiKey]:
    """A new key for the same tenant, scopes and label, in full and as it is stored; and the old one, which expires when
    the overlap is over, if not before. A key that was made to live for some time is replaced by one that lives as long.

    The new key comes first: if this ends half way, the old one still works. Raises UnknownKey, KeyNotActive,
    UnknownTenant, and Retryable if the table cannot answer.
    """
    old = ports.tenants.key(key_id) if is_key_id(key_id) else None
    if old is None:
        raise UnknownKey(key_id)
    now = ports.clock()
    if old.state(now) is not KeyState.ACTIVE:  # guard: key-rotation-of-active-only
        raise KeyNotActive(old)
    if ports.tenants.tenant(old.tenant_id) is None:
        raise UnknownTenant(old.tenant_id)
    with ports.audit.action("rotate_key", key_id, tenant_id=old.tenant_id) as audited:
        key, stored = make_key(
            ports,
            old.tenant_id,
            label=old.label,
            scopes=old.scopes,
            lives_seconds=None if old.expires_at is None else (old.expires_at - old.created_at) / 1000,
        )
        audited.add(stored.key_id, "created")
        ending = ports.tenants.expire_key(key_id, now + round(overlap_seconds * 1000))
    return key, stored, old if ending is None else ending
