"""What tenants need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from darkroom.domain.kernel.instants import Milliseconds
    from darkroom.domain.kernel.stored import Stored
    from darkroom.domain.kernel.tenants import Allowance, Tenant
    from darkroom.domain.tenants.api_keys import ApiKey
    from darkroom.domain.tenants.token_bucket import Microseconds, Take
    from darkroom.ports.kernel import UnreadableRow


class StoredSums(Protocol):
    """What tenants store."""

    def stored(self, tenant_id: str) -> Stored:
        """The sum of what was counted of the tenant, perhaps seconds out of date; below zero if more of it has been
        deleted since the counting began than was accepted. Raises Retryable if the table cannot answer."""


type IsSuspended = Callable[[str], bool]
"""Whether that tenant is suspended, or was at most a minute ago. Raises Retryable."""


class TokenBuckets(Protocol):
    """Each tenant's bucket of requests. Raises Retryable, within about two seconds, if the table cannot answer."""

    def take(self, name: str, allowance: Allowance, now: Microseconds, wanted: int = 1, needed: int = 1) -> Take:
        """Takes tokens as `token_bucket.take` does, counting every one of many concurrent requests."""

    def forget(self, name: str) -> None:
        """Removes the bucket, which is full then; there may be none."""


class Tenants(Protocol):
    """The tenants and their API keys. Every method raises Retryable if the table cannot answer, and UnreadableRow if
    its one row cannot be read."""

    def tenant(self, tenant_id: str) -> Tenant | None:
        """The current tenant (a consistent read), or None."""

    def key(self, key_id: str) -> ApiKey | None:
        """The current key (a consistent read), or None."""

    def all_tenants(self) -> Sequence[Tenant | UnreadableRow]:
        """All of them, by id, the unreadable ones last. It reads the whole table: for operators, not for requests."""

    def all_keys(self) -> Sequence[ApiKey | UnreadableRow]:
        """All of them, by tenant and time of creation; read like `all_tenants`."""

    def add_tenant(self, tenant: Tenant) -> Tenant:
        """Puts the tenant unless its id has one; returns the id's tenant: this one or the earlier one."""

    def add_key(self, key: ApiKey) -> ApiKey:
        """Puts the key unless its id has one; returns the id's key: this one or the earlier one."""

    def change_tenant(self, before: Tenant, after: Tenant) -> Tenant | None:
        """Writes what differs between `before` and `after`, whatever else was changed meanwhile; returns the tenant as
        written, or None if there is none."""

    def revoke_key(self, key_id: str, now: Milliseconds) -> ApiKey | None:
        """Marks the key as revoked at `now`, unless it already was; returns the key as written, or None if there is
        none."""

    def expire_key(self, key_id: str, at: Milliseconds) -> ApiKey | None:
        """Lets the key expire at that instant, unless it does so earlier; returns the key as written, or None if there
        is none."""

    def note_use(self, key_id: str, day: str) -> None:
        """Notes that the key was used on that day, unless it was used later; a key that is not there is no error."""

    def remove_key(self, key_id: str) -> None:
        """Removes the key's row; one that is not there is no error."""

    def remove_tenant(self, tenant_id: str) -> None:
        """Removes the tenant's row; one that is not there is no error."""
