"""What tenants need."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from darkroom.domain.kernel.stored import Stored
    from darkroom.domain.kernel.tenants import Allowance, Tenant
    from darkroom.domain.tenants.api_keys import ApiKey
    from darkroom.domain.tenants.token_bucket import Microseconds, Take
    from darkroom.domain.tenants.upload_tokens import UploadToken


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


class UploadTokenUses(Protocol):
    """The images that upload tokens were used for. Raises Retryable if the table cannot answer."""

    def use(self, token: UploadToken, image_id: str) -> bool:
        """Counts the image as one of the token's, once however often it is told; returns whether it may be one: False
        if the token has as many others as it allows. However many ask at once, no more get True."""


class Tenants(Protocol):
    """The tenants and their API keys. Every method raises Retryable if the table cannot answer, and UnreadableRow if
    its one row cannot be read."""

    def tenant(self, tenant_id: str) -> Tenant | None:
        """The current tenant (a consistent read), or None."""

    def key(self, key_id: str) -> ApiKey | None:
        """The current key (a consistent read), or None."""

    def note_use(self, key_id: str, day: str) -> None:
        """Notes that the key was used on that day, unless it was used later; a key that is not there is no error."""
