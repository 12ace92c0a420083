"""Makes an API key: an operator command. Only its return value contains the secret."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.tenants.api_keys import RANDOM_BYTES, ApiKey, digest_of, key_from_bits, key_id_of
from darkroom.ports.kernel import Clock, Randomness
from darkroom_cli.operator.operations.kernel.audit_trail import Trail
from darkroom_cli.operator.operations.tenants.change_tenant import UnknownTenant
from darkroom_cli.operator.ports import TenantRegistry

_TRIES = 3
"""With a million keys, one in a million new ones gets an id that is taken."""


@dataclass(frozen=True, kw_only=True)
class MakePorts:
    """What making a key needs."""

    tenants: TenantRegistry
    clock: Clock
    randomness: Randomness


@dataclass(frozen=True, kw_only=True)
class CreateKeyPorts(MakePorts):
    """What an operator's making a key needs besides that."""

    audit: Trail


def create_key(
    ports: CreateKeyPorts,
    tenant_id: str,
    *,
    label: str | None,
    scopes: tuple[str, ...] | None = None,
    lives_seconds: float | None = None,
) -> tuple[str, ApiKey]:
    """A new key of the tenant, in full and as it is stored: for these scopes (None: everything), and for so long (None:
    until it is revoked).

    Raises UnknownTenant, and Retryable if the table cannot answer: a key that was stored all the same is known to
    nobody.
    """
    if ports.tenants.tenant(tenant_id) is None:
        raise UnknownTenant(tenant_id)
    with ports.audit.action("create_key", tenant_id=tenant_id) as audited:
        key, stored = make_key(ports, tenant_id, label=label, scopes=scopes, lives_seconds=lives_seconds)
        audited.add(stored.key_id, "created")
    return key, stored


def make_key(
    ports: MakePorts, tenant_id: str, *, label: str | None, scopes: tuple[str, ...] | None, lives_seconds: float | None
) -> tuple[str, ApiKey]:
    """The same as a part of another action, which is in the audit log, or of no operator's at all."""
    for _ in range(_TRIES):
        key, now = key_from_bits(ports.randomness(RANDOM_BYTES)), ports.clock()
        stored = ApiKey(
            key_id=key_id_of(key) or "",
            tenant_id=tenant_id,
            digest=digest_of(key),
            created_at=now,
            label=label,
            expires_at=None if lives_seconds is None else now + round(lives_seconds * 1000),
            scopes=scopes,
        )
        if ports.tenants.add_key(stored) == stored:
            return key, stored
    raise RuntimeError("every new key has an id that is taken: the source of randomness is broken")
