"""Revokes an API key: an operator command. The key stops working within the authorizer's cache time."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.tenants.api_keys import ApiKey, is_key_id
from darkroom.ports.kernel import Clock
from darkroom_cli.operator.operations.kernel.audit_trail import Trail
from darkroom_cli.operator.ports import TenantRegistry


class UnknownKey(LookupError):
    """There is no key with that id."""


@dataclass(frozen=True, kw_only=True)
class RevokeKeyPorts:
    """What revoking a key needs."""

    tenants: TenantRegistry
    clock: Clock
    audit: Trail


def revoke_key(ports: RevokeKeyPorts, key_id: str) -> ApiKey:
    """Returns the revoked key. Revoking it again changes nothing.

    Raises UnknownKey, and Retryable if the table cannot answer.
    """
    if not is_key_id(key_id):
        raise UnknownKey(key_id)
    with ports.audit.action("revoke_key", key_id):
        key = ports.tenants.revoke_key(key_id, ports.clock())
        if key is None:
            raise UnknownKey(key_id)
    return key
