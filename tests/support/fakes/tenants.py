"""Tenants and their keys in memory, with the semantics that the port promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.tenants import Tenant
from darkroom.domain.tenants.api_keys import ApiKey
from darkroom.domain.tenants.upload_tokens import UploadToken
from darkroom.ports.kernel import UnreadableRow


@dataclass
class FakeTenants:
    """The `TenantRegistry` port over two dictionaries, and the ids of unreadable rows."""

    tenants: dict[str, Tenant] = field(default_factory=dict)
    keys: dict[str, ApiKey] = field(default_factory=dict)
    unreadable_tenants: set[str] = field(default_factory=set)
    unreadable_keys: set[str] = field(default_factory=set)

    def tenant(self, tenant_id: str) -> Tenant | None:
        if tenant_id in self.unreadable_tenants:
            raise UnreadableRow(tenant_id, "invented later")
        return self.tenants.get(tenant_id)

    def key(self, key_id: str) -> ApiKey | None:
        if key_id in self.unreadable_keys:
            raise UnreadableRow(key_id, "invented later")
        return self.keys.get(key_id)

    def all_tenants(self) -> Sequence[Tenant | UnreadableRow]:
        unreadable = [UnreadableRow(tenant_id, "invented later") for tenant_id in self.unreadable_tenants]
        return [*sorted(self.tenants.values(), key=lambda tenant: tenant.tenant_id), *unreadable]

    def all_keys(self) -> Sequence[ApiKey | UnreadableRow]:
        unreadable = [UnreadableRow(key_id, "invented later") for key_id in self.unreadable_keys]
        return [
            *sorted(self.keys.values(), key=lambda key: (key.tenant_id, key.created_at, key.key_id)),
            *unreadable,
        ]

    def add_tenant(self, tenant: Tenant) -> Tenant:
        return self.tenants.setdefault(tenant.tenant_id, tenant)

    def add_key(self, key: ApiKey) -> ApiKey:
        return self.keys.setdefault(key.key_id, key)

    def change_tenant(self, before: Tenant, after: Tenant) -> Tenant | None:
        current = self.tenants.get(before.tenant_id)
        if current is None:
            return None
        changes = {
            name: getattr(after, name)
            for name in Tenant.__dataclass_fields__
            if getattr(after, name) != getattr(before, name)
        }
        self.tenants[before.tenant_id] = replace(current, **changes)
        return self.tenants[before.tenant_id]

    def revoke_key(self, key_id: str, now: Milliseconds) -> ApiKey | None:
        current = self.keys.get(key_id)
        if current is None:
            return None
        self.keys[key_id] = replace(current, revoked_at=now if current.revoked_at is None else current.revoked_at)
        return self.keys[key_id]

    def expire_key(self, key_id: str, at: Milliseconds) -> ApiKey | None:
        current = self.keys.get(key_id)
        if current is not None and (current.expires_at is None or current.expires_at > at):
            self.keys[key_id] = replace(current, expires_at=at)
        return self.keys.get(key_id)

    def note_use(self, key_id: str, day: str) -> None:
        current = self.keys.get(key_id)
        if current is not None and (current.last_used_on or "") < day:
            self.keys[key_id] = replace(current, last_used_on=day)

    def remove_key(self, key_id: str) -> None:
        self.keys.pop(key_id, None)

    def remove_tenant(self, tenant_id: str) -> None:
        self.tenants.pop(tenant_id, None)


@dataclass
class FakeUploadTokenUses:
    """The `UploadTokenUses` port over a dictionary."""

    images: dict[str, set[str]] = field(default_factory=dict)

    def use(self, token: UploadToken, image_id: str) -> bool:
        images = self.images.setdefault(token.token_id, set())
        if image_id not in images and len(images) >= token.count:
            return False
        images.add(image_id)
        return True
