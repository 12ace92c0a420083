"""Revoking an API key: an operator's verb. It opens nothing any more within the authorizer's cache time."""

from __future__ import annotations

from darkroom.domain.api_keys import ApiKey, is_key_id
from darkroom.ports import Clock, Tenants


class UnknownKey(LookupError):
    """There is no key of that id."""


def revoke_key(key_id: str, *, tenants: Tenants, clock: Clock) -> ApiKey:
    """The revoked key. Revoking it again changes nothing.

    Raises UnknownKey, and Retryable where the table cannot answer.
    """
    key = tenants.revoke_key(key_id, clock()) if is_key_id(key_id) else None
    if key is None:
        raise UnknownKey(key_id)
    return key
