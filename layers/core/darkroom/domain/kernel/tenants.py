"""Tenants: on whose behalf a request acts, which lane their images travel in, how much they may ask for and store."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.visibility import Visibility

TENANT_ID_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._:|@-]{0,127}"
"""1 to 128 letters, digits and `. _ : | @ -`, a letter or digit first: the form of identity providers' subjects, and
what SQS accepts as a message group."""

_TENANT_ID = re.compile(TENANT_ID_PATTERN)

DEFAULT_TENANT = "default"
"""The tenant of every caller whose credential names none: SigV4, and the local stack without credentials."""

AUTHORIZER_CACHE_SECONDS = 60
"""How long the gateway caches an API key's authorization: a suspension or revocation takes effect within this time."""

MOST_ERASED_AT_ONCE = 100
"""How many tenants can be erased together: the most values that DynamoDB compares with `IN`
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html)."""

MAX_REQUESTS_PER_SECOND, MAX_BURST = 10_000, 100_000
"""The most that a tenant can be allowed: more than one account's API can take."""


def is_tenant_id(text: str) -> bool:
    """Whether `text` is a valid tenant id."""
    return _TENANT_ID.fullmatch(text) is not None


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """How much a tenant may ask for: that many requests per second on average, and `burst` of them at once."""

    requests_per_second: int
    burst: int


UNLIMITED = 10**15
"""A quota of so much is none: a petabyte."""


@dataclass(frozen=True, kw_only=True)
class Quota:
    """How much a tenant may store: that many bytes of originals and variants, and that many images, so many of them
    `unfinished`."""

    stored_bytes: int = UNLIMITED
    images: int = UNLIMITED
    unfinished: int = UNLIMITED


NO_QUOTA = Quota()


class Tier(StrEnum):
    """What a tenant pays for; lanes.py maps it to a lane.

    Each row has the allowance of its tenants unless another was agreed, and the share of a lane's high-water mark that
    the backlog may reach before they are turned away: load is shed in steps, and tenants that pay nothing go first.
    Then it has their quota, which costs $0.23, $4.60 and $115 a month to store when it is full.
    """

    FREE = "free", Allowance(requests_per_second=10, burst=50), 0.5, Quota(stored_bytes=10 * 10**9, images=20_000)
    # guard: shedding-lower-tiers-first
    PLUS = "plus", Allowance(requests_per_second=30, burst=150), 0.6, Quota(stored_bytes=200 * 10**9, images=400_000)
    PAID = "paid", Allowance(requests_per_second=100, burst=500), 0.65, Quota(stored_bytes=5 * 10**12, images=10**7)

    allowance: Allowance
    backlog_share: float
    quota: Quota

    @property
    def pays(self) -> bool:
        """Whether somebody must know when its tenants are turned away."""
        return self is not Tier.FREE

    def __new__(cls, name: str, allowance: Allowance, backlog_share: float, quota: Quota = NO_QUOTA) -> Self:
        """The string that the tier is stored as, and named by."""
        tier = str.__new__(cls, name)
        tier._value_ = name
        tier.allowance, tier.backlog_share, tier.quota = allowance, backlog_share, quota
        return tier


def tier_named(name: str) -> Tier:
    """The tier with that stored name. Raises ValueError if there is none."""
    return Tier(name)  # type: ignore[call-arg]  # a look-up, which mypy takes for a call of __new__


class TenantState(StrEnum):
    """Whether a tenant's requests are answered."""

    ACTIVE = "active"
    SUSPENDED = "suspended"


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """One tenant's row. `requests_per_second` and `burst`, `max_stored_bytes`, `max_images` and `max_unfinished` are
    None if its tier's apply, `visibility` if its images are private unless an order says otherwise; `viewer_seconds` is
    how long viewers may keep its pictures, None for as long as the deployment says. `on_request` lists the variants
    that viewers may have made, None if the stack's list applies. `import_from` are the places in buckets,
    `s3://bucket/folder/`, whose files its imports may name. `lane` is the one that it was moved to, None if its tier
    decides."""

    tenant_id: str
    tier: Tier
    created_at: Milliseconds
    state: TenantState = TenantState.ACTIVE
    requests_per_second: int | None = None
    burst: int | None = None
    max_stored_bytes: int | None = None
    max_images: int | None = None
    visibility: Visibility | None = None
    viewer_seconds: int | None = None
    on_request: str | None = None
    import_from: tuple[str, ...] | None = None
    lane: str | None = None
    max_unfinished: int | None = None

    @property
    def allowance(self) -> Allowance:
        """How much it may ask for."""
        usual = self.tier.allowance
        return Allowance(
            requests_per_second=self.requests_per_second or usual.requests_per_second, burst=self.burst or usual.burst
        )

    @property
    def quota(self) -> Quota:
        """How much it may store: 0 is a quota, too."""
        usual = self.tier.quota
        return Quota(
            stored_bytes=usual.stored_bytes if self.max_stored_bytes is None else self.max_stored_bytes,
            images=usual.images if self.max_images is None else self.max_images,
            unfinished=usual.unfinished if self.max_unfinished is None else self.max_unfinished,
        )


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who sent a request, by its credential alone; `key_id` names the API key, if it was one, and `scopes` is what that
    key may be used for, None for everything. `allowance` is None, and there is no quota, if no credential tells tenants
    apart: then there is nobody to be fair to. `visibility` and `viewer_seconds` are those of its images unless an order
    says otherwise. `upload_token` is the payload of an upload token that was made with the key: what it allows, and
    nothing of what the key does (domain/tenants/upload_tokens.py reads it). `lane` is the one that the tenant was moved
    to, None if its tier decides."""

    tenant_id: str
    tier: Tier
    allowance: Allowance | None
    quota: Quota = NO_QUOTA
    key_id: str | None = None
    scopes: frozenset[str] | None = None
    visibility: Visibility = Visibility.PRIVATE
    viewer_seconds: int | None = None
    upload_token: str | None = None
    lane: str | None = None


ONLY_UPLOADS = frozenset({"only:uploads"})
"""The scopes of who has an upload token: none that a route asks for. A function of an earlier version, which knows of
no tokens, refuses whoever has it everywhere."""

EVERY_SCOPE = "*"
"""How the authorizer passes on that a key may be used for everything."""

NOBODY_IN_PARTICULAR = Caller(tenant_id=DEFAULT_TENANT, tier=Tier.FREE, allowance=None)
"""The caller whose credential names no tenant."""


def context_of(caller: Caller) -> dict[str, Any]:
    """What the authorizer of API keys passes, through the gateway, to the functions behind it. Raises ValueError for a
    caller without an allowance, who has no key either."""
    if caller.allowance is None:
        raise ValueError(f"{caller.tenant_id} is a tenant by no key")
    return {
        "tenant_id": caller.tenant_id,
        "tier": caller.tier.value,
        "key_id": caller.key_id,
        "requests_per_second": caller.allowance.requests_per_second,
        "burst": caller.allowance.burst,
        # As texts: a number of this size may be written with an exponent on the way.
        "max_stored_bytes": str(caller.quota.stored_bytes),
        "max_images": str(caller.quota.images),
        "scopes": EVERY_SCOPE if caller.scopes is None else " ".join(sorted(caller.scopes)),
        **({} if caller.visibility is Visibility.PRIVATE else {"visibility": caller.visibility.value}),
        **({} if caller.viewer_seconds is None else {"viewer_seconds": str(caller.viewer_seconds)}),
        **({} if caller.upload_token is None else {"upload_token": caller.upload_token}),
        **({} if caller.lane is None else {"lane": caller.lane}),
        **({} if caller.quota.unfinished == UNLIMITED else {"max_unfinished": str(caller.quota.unfinished)}),
    }


def caller_from(context: Mapping[str, Any]) -> Caller:
    """The caller that `context_of` wrote. Raises KeyError and ValueError for anything else: a bug."""
    # For a minute after an update, the gateway still passes on what an authorizer without scopes or quotas has said.
    scopes, viewer_seconds = context.get("scopes", EVERY_SCOPE), context.get("viewer_seconds")
    return Caller(
        tenant_id=context["tenant_id"],
        tier=tier_named(context["tier"]),
        allowance=Allowance(requests_per_second=int(context["requests_per_second"]), burst=int(context["burst"])),
        quota=Quota(
            stored_bytes=int(context.get("max_stored_bytes", UNLIMITED)),
            images=int(context.get("max_images", UNLIMITED)),  # guard: quotas-older-authorizer
            unfinished=int(context.get("max_unfinished", UNLIMITED)),
        ),
        key_id=context["key_id"],
        scopes=None if scopes == EVERY_SCOPE else frozenset(scopes.split()),
        visibility=Visibility(context.get("visibility", Visibility.PRIVATE)),
        viewer_seconds=None if viewer_seconds is None else int(viewer_seconds),
        upload_token=context.get("upload_token"),
        lane=context.get("lane"),
    )
