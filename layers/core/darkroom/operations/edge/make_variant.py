"""Makes a variant that the edge asked for and the store does not have: once, however many ask, and for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.edge.instructions import (
    KEPT_DAYS,
    MAX_VARIANTS,
    Asked,
    allowed_by,
    asked_for,
    key_of_tenant,
    on_request_bucket_of,
    recipe_for,
    tokens_of,
    work_of,
)
from darkroom.domain.images.image import Image, Status
from darkroom.domain.images.limits import Limits
from darkroom.domain.images.works import leading
from darkroom.domain.kernel.errors import Retryable, TurnedAway
from darkroom.domain.kernel.tenants import TenantState, Tier
from darkroom.domain.kernel.visibility import VIEWER_SECONDS, Visibility
from darkroom.domain.tenants.token_bucket import seconds_to_next
from darkroom.imaging import develop
from darkroom.operations.images.whole_original import whole_original
from darkroom.ports.edge import MadeVariant, MadeVariants, VariantLeases
from darkroom.ports.images import OriginalMissing

if TYPE_CHECKING:
    from darkroom.domain.kernel.instants import Milliseconds
    from darkroom.domain.kernel.lanes import Lane
    from darkroom.domain.kernel.tenants import Tenant
    from darkroom.domain.recipes.recipes import Recipe
    from darkroom.ports.images import Images, Originals
    from darkroom.ports.kernel import Clock, Jitter, Secret
    from darkroom.ports.tenants import Tenants, TokenBuckets

LEASE_MARGIN_MILLISECONDS = 5_000
"""A lease outlasts its function by this much, because clocks differ a little."""

TIME_TO_MAKE_MILLISECONDS = 30_000
"""The costliest variant takes 25 seconds, and its objects a few more: what cannot be finished is not begun."""

LAST_ANSWER_MILLISECONDS = 2_000
"""What is left of the function's time for an answer."""

PAUSES_MILLISECONDS = 200, 1_000
"""Between two looks for what another one makes: at first, and at most."""


class NotServed(LookupError):
    """There is no such variant, or nobody may have it: neither of the two is told apart."""


@dataclass(frozen=True, kw_only=True)
class MakeVariantPorts:
    """What making a variant needs. `allowed` is what tenants allow whose rows say nothing of that."""

    images: Images
    originals: Originals
    tenants: Tenants
    made: MadeVariants
    leases: VariantLeases
    token_buckets: TokenBuckets
    signing_secret: Secret
    clock: Clock
    pause: Callable[[float], None]
    jitter: Jitter
    limits: Limits
    service: Mapping[str, Lane]
    allowed: str


def make_variant(ports: MakeVariantPorts, path: str, *, owner: str, deadline: Milliseconds) -> MadeVariant:
    """Returns what the store has under that path, or is made for it now: by this request, or by the one that has the
    lease, for which this one waits.

    Raises NotServed; Rejected if the picture cannot be made; TurnedAway if its tenant has had too much made; Retryable.
    """
    asked = asked_for(path)
    if asked is None:
        raise NotServed
    image = _public(ports, asked)
    recipe = _recipe(ports, asked, image)
    shortest, longest = PAUSES_MILLISECONDS
    pause = shortest
    while True:
        # guard: on-request-lease
        if ports.leases.take(asked.key, owner, now=ports.clock(), until=deadline + LEASE_MARGIN_MILLISECONDS):
            try:
                return _made_once(ports, asked, image, recipe, deadline=deadline)
            finally:
                with bookkeeping("lease of a variant not given back"):
                    ports.leases.release(asked.key, owner)
        if (found := ports.made.get(asked.key)) is not None:
            return found
        if ports.clock() + pause + LAST_ANSWER_MILLISECONDS > deadline:  # guard: on-request-wait-ends
            raise Retryable("another request makes it", retry_after_seconds=1)
        ports.pause(pause * (1 + ports.jitter()) / 2000)
        pause = min(2 * pause, longest)


def _public(ports: MakeVariantPorts, asked: Asked) -> Image:
    """The image's row, if everybody may see it now."""
    image = ports.images.get(asked.image_id)
    if image is None or image.is_deleted:  # guard: on-request-deleted
        raise NotServed
    if image.visibility is not Visibility.PUBLIC:  # guard: on-request-public-only
        raise NotServed
    if image.outcome is not Status.DONE:  # guard: on-request-done
        raise NotServed
    return image


def _recipe(ports: MakeVariantPorts, asked: Asked, image: Image) -> Recipe:
    tenant = ports.tenants.tenant(image.tenant_id)
    if tenant is not None and tenant.state is TenantState.SUSPENDED:  # guard: on-request-suspended
        raise NotServed
    stated = None if tenant is None else tenant.on_request
    is_signed = asked.signature is not None and any(
        asked.is_signed_by(key_of_tenant(secret.text, image.tenant_id))
        for secret in (ports.signing_secret.current(), ports.signing_secret.previous())
        if secret is not None
    )
    allowed = allowed_by(ports.allowed if stated is None else stated)
    recipe = recipe_for(asked, image, allowed=allowed, is_signed=is_signed)
    if recipe is None:
        raise NotServed
    return recipe


def _made_once(
    ports: MakeVariantPorts, asked: Asked, image: Image, recipe: Recipe, *, deadline: Milliseconds
) -> MadeVariant:
    """What has the lease does: what another one has made before counts."""
    if (found := ports.made.get(asked.key)) is not None:  # guard: on-request-made-meanwhile
        return found
    if deadline - ports.clock() < TIME_TO_MAKE_MILLISECONDS:  # guard: on-request-time-to-finish
        raise Retryable("too little time is left", retry_after_seconds=1)
    _pay(ports, image, recipe)
    # Twice as long as what was made is kept: a lifecycle rule removes it a day or two late.
    forget_at = ports.clock() + 2 * KEPT_DAYS * 86_400_000
    counted = ports.leases.count(image.image_id, asked.key, most=MAX_VARIANTS, forget_at=forget_at)
    if not counted:  # guard: on-request-variants-per-image
        raise NotServed
    made = _developed(ports, asked, image, recipe)
    is_new = ports.made.put_if_absent(made)
    # Whoever deletes the image, or makes it private, changes its row first, and then removes what is listed: what was
    # put before a row that is still public was read is listed by them, and what was put after is removed here.
    try:
        _public(ports, asked)
    except Exception:  # if the row cannot be read, too: it can be made again
        ports.made.remove(asked.key)  # guard: on-request-deleted-meanwhile
        raise
    # Of an object that was there already, its bytes count.
    return made if is_new else ports.made.get(asked.key) or made


def _pay(ports: MakeVariantPorts, image: Image, recipe: Recipe) -> None:
    """Takes the work from its tenant's bucket for this."""
    tenant: Tenant | None = ports.tenants.tenant(image.tenant_id)
    allowance = Tier.FREE.allowance if tenant is None else tenant.allowance
    cost = min(tokens_of(work_of(recipe, image)), allowance.burst)
    now = ports.clock() * 1000
    taken = ports.token_buckets.take(on_request_bucket_of(image.tenant_id), allowance, now, cost, cost)
    if not taken.is_taken:  # guard: on-request-rate
        raise TurnedAway(
            "too_many_requests",
            "Too many variants are being made for this tenant. Ask again later.",
            retry_after_seconds=max(1, seconds_to_next(taken.tat, allowance, now, cost)),
        )


def _developed(ports: MakeVariantPorts, asked: Asked, image: Image, recipe: Recipe) -> MadeVariant:
    """The variant as the image's recipe would have made it: by the same engine, with the effort of the image's lane."""
    try:
        original = whole_original(ports.originals, image.image_id, image.source)
        (rendered,) = develop(
            original,
            recipe,
            limits=ports.limits,
            effort=ports.service[image.lane].effort,  # guard: on-request-effort-of-lane
            beside=leading(image, recipe, is_edited=False),  # guard: on-request-beside-recipe
        ).variants
    except OriginalMissing as error:
        raise NotServed from error
    return MadeVariant(
        key=asked.key,
        image_id=image.image_id,
        media_type=rendered.media_type,
        viewer_seconds=image.viewer_seconds or VIEWER_SECONDS,
        body=rendered.body,
    )
