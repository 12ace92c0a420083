"""Revoking an API key: an operator's verb. It opens nothing any more within the authorizer's cache time."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.api_keys import ApiKey, is_key_id
from darkroom.ports import Clock, Tenants


class UnknownKey(LookupError):
    """There is no key of that id."""


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What revoking a key needs from outside."""

    tenants: Tenants
    clock: Clock


def revoke_key(ports: Ports, key_id: str) -> ApiKey:
    """The revoked key. Revoking it again changes nothing.

    Raises UnknownKey, and Retryable where the table cannot answer.
    """
    key = ports.tenants.revoke_key(key_id, ports.clock()) if is_key_id(key_id) else None
    if key is None:
        raise UnknownKey(key_id)
    return key
