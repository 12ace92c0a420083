"""The work of `darkroom tenants` and `darkroom keys`, once the command line is parsed."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from darkroom.aws.kernel.secrets import StoredSecret
from darkroom.domain.edge.instructions import allowed_by, key_of_tenant
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom.domain.kernel.lanes import BULK, LANES, lane_for, lane_of_upload
from darkroom.domain.kernel.sizes import size_in_words
from darkroom.domain.kernel.stored import NOTHING, Stored
from darkroom.domain.kernel.tenants import AUTHORIZER_CACHE_SECONDS, UNLIMITED, Tenant, TenantState, Tier
from darkroom.domain.kernel.visibility import VIEWER_SECONDS, Visibility
from darkroom.domain.tenants.api_keys import ApiKey, KeyState
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from darkroom_cli.operator.operations.tenants.add_tenant import AddTenantPorts, TenantExists, add_tenant
from darkroom_cli.operator.operations.tenants.change_tenant import ChangeTenantPorts, UnknownTenant, change_tenant
from darkroom_cli.operator.operations.tenants.create_key import CreateKeyPorts
from darkroom_cli.operator.operations.tenants.create_key import create_key as create_key_of
from darkroom_cli.operator.operations.tenants.revoke_key import RevokeKeyPorts, UnknownKey
from darkroom_cli.operator.operations.tenants.revoke_key import revoke_key as revoke_key_of
from darkroom_cli.operator.operations.tenants.rotate_key import KeyNotActive
from darkroom_cli.operator.operations.tenants.rotate_key import rotate_key as rotate_key_of
from darkroom_cli.operator.operations.usage.recount_stored import RecountStoredPorts, correct_stored, recount_stored
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_cli.terminal.interrupts import Interrupts
from darkroom_cli.terminal.many import do_to_many
from darkroom_client.client import ApiError

_ENLISTED_PER_SECOND, _ENLISTED_AT_A_TIME = 500, 32
"""A quarter of what one tenant's part of an index takes, and what 32 remote connections can do."""


def add(
    stack: Stack,
    tenant_id: str,
    *,
    tier: Tier,
    requests_per_second: int | None,
    burst: int | None,
    max_stored_bytes: int | None,
    max_images: int | None,
    visibility: Visibility | None = None,
    viewer_seconds: int | None = None,
) -> None:
    """`tenants add`."""
    try:
        with stack.explained():
            tenant = add_tenant(
                AddTenantPorts(tenants=stack.tenants, clock=stack.clock, audit=stack.audit),
                tenant_id,
                tier=tier,
                requests_per_second=requests_per_second,
                burst=burst,
                max_stored_bytes=max_stored_bytes,
                max_images=max_images,
                visibility=visibility,
                viewer_seconds=viewer_seconds,
            )
    except TenantExists as error:
        raise ApiError(
            f"The tenant {tenant_id} already exists: {_agreed(error.tenant)}. "
            f"To change it: ./darkroom tenants change {tenant_id}{stack.options}"
        ) from error
    out = display.output()
    display.line(out, f"Added {tenant_id}: {_agreed(tenant)}.")
    display.line(out, f"A key for it:  ./darkroom keys create {tenant_id}{stack.options}")


def change(
    stack: Stack,
    tenant_id: str,
    *,
    tier: Tier | None,
    requests_per_second: int | None,
    burst: int | None,
    max_stored_bytes: int | None = None,
    max_images: int | None = None,
    max_unfinished: int | None = None,
    visibility: Visibility | None = None,
    viewer_seconds: int | None = None,
    usual_limits: bool,
) -> None:
    """`tenants change`."""

    def changed(tenant: Tenant) -> Tenant:
        if usual_limits:
            tenant = replace(
                tenant,
                requests_per_second=None,
                burst=None,
                max_stored_bytes=None,
                max_images=None,
                max_unfinished=None,
            )
        return replace(
            tenant,
            tier=tier or tenant.tier,
            requests_per_second=requests_per_second or tenant.requests_per_second,
            burst=burst or tenant.burst,
            max_stored_bytes=tenant.max_stored_bytes if max_stored_bytes is None else max_stored_bytes,
            max_images=tenant.max_images if max_images is None else max_images,
            max_unfinished=tenant.max_unfinished if max_unfinished is None else max_unfinished,
            visibility=visibility or tenant.visibility,
            viewer_seconds=viewer_seconds or tenant.viewer_seconds,
        )

    tenant = _changed(stack, tenant_id, changed)
    display.line(display.output(), f"Changed {tenant_id}: {_agreed(tenant)}. {_IN_FORCE}")


def served_lanes(stack: Stack) -> list[str]:
    """The lanes that the stack serves: without its part, what is sent to the lane of bulk work shares another's."""
    with stack.explained():
        return [lane for lane in LANES if lane != BULK.name or "bulk" in stack.parts]


def move(stack: Stack, tenant_id: str, lane: str) -> None:
    """`tenants move`."""
    if lane not in served_lanes(stack):  # guard: tenants-moved-to-served-lane
        raise ApiError(f"{stack.name} is deployed with Bulk=false: it serves no lane {lane} of its own.")

    def moved(tenant: Tenant) -> Tenant:
        # guard: tenants-moved-home
        return replace(tenant, lane=None if lane == lane_for(tenant.tier).name else lane)

    _changed(stack, tenant_id, moved)
    display.line(display.output(), f"New work of {tenant_id} goes to the lane {lane}. {_IN_FORCE}")


def set_on_request(stack: Stack, tenant_id: str, instructions: str) -> None:
    """`tenants on-request`."""
    tenant = _changed(stack, tenant_id, lambda tenant: replace(tenant, on_request=_with_list(tenant, instructions)))
    allowed = tenant.on_request or "only what is signed"
    display.line(display.output(), f"Viewers of public images of {tenant_id} may have made: {allowed}.")


def set_import_from(stack: Stack, tenant_id: str, places: tuple[str, ...]) -> None:
    """`tenants import-from`."""
    tenant = _changed(stack, tenant_id, lambda tenant: replace(tenant, import_from=places))
    registered = " ".join(tenant.import_from or ()) or "no bucket"
    display.line(display.output(), f"Imports of {tenant_id} may name files in: {registered}.")


def print_variant_key(stack: Stack, tenant_id: str, secret_arn: str) -> None:
    """`tenants variant-key`."""
    with stack.explained():
        secret = StoredSecret(lambda: stack.client("secretsmanager"), secret_arn, clock=stack.clock).current()
    display.line(display.output(), key_of_tenant(secret.text, tenant_id))


def _with_list(tenant: Tenant, instructions: str) -> str:
    """The tenant's new list: a name keeps what it meant for ever, or is given up. Raises ApiError."""
    before, after = allowed_by(tenant.on_request or ""), dict(allowed_by(instructions))
    for name, meant in before.items():
        if name != meant and after.setdefault(name, "") not in ("", meant):  # guard: on-request-name-kept
            raise ApiError(
                f"{name} meant {meant or 'something else'}, and there are files that say so: take a new name."
            )
    return ",".join(name if name == meant else f"{name}={meant}" for name, meant in after.items())


def set_state(stack: Stack, tenant_id: str, state: TenantState) -> None:
    """`tenants suspend` and `tenants resume`."""
    _changed(stack, tenant_id, lambda tenant: replace(tenant, state=state))
    display.line(display.output(), f"{tenant_id} is {state}. {_IN_FORCE}")


def list_tenants(stack: Stack, *, as_json: bool) -> None:
    """`tenants ls`."""
    with stack.explained():
        tenants, keys = display.readable(stack.tenants.all_tenants()), display.readable(stack.tenants.all_keys())
        sums = stack.usage.all_stored()
    stored = {tenant.tenant_id: sums.get(tenant.tenant_id, NOTHING).shown for tenant in tenants}
    now = stack.clock()
    open_keys = Counter(key.tenant_id for key in keys if key.state(now) is KeyState.ACTIVE)
    out = display.output()
    if as_json:
        display.print_json(
            [
                {
                    "tenant": tenant.tenant_id,
                    "tier": tenant.tier,
                    "lane": lane_of_upload(tenant.tier, tenant.lane),
                    "state": tenant.state,
                    "requests_per_second": tenant.allowance.requests_per_second,
                    "burst": tenant.allowance.burst,
                    "stored_bytes": stored[tenant.tenant_id].size_bytes,
                    "stored_images": stored[tenant.tenant_id].images,
                    "max_stored_bytes": _limit(tenant.quota.stored_bytes),
                    "max_images": _limit(tenant.quota.images),
                    "unfinished_images": stored[tenant.tenant_id].unfinished,
                    "max_unfinished": _limit(tenant.quota.unfinished),
                    "visibility": tenant.visibility or Visibility.PRIVATE,
                    "viewer_seconds": tenant.viewer_seconds or VIEWER_SECONDS,
                    "import_from": list(tenant.import_from or ()),
                    "keys": open_keys[tenant.tenant_id],
                    "created_at": rfc3339(tenant.created_at),
                }
                for tenant in tenants
            ]
        )
        return
    if not tenants:
        display.line(out, f"No tenants yet. The first one:  ./darkroom tenants add NAME{stack.options}")
        return
    rows = [
        (
            tenant.tenant_id,
            tenant.tier.value,
            lane_of_upload(tenant.tier, tenant.lane),
            tenant.state.value,
            f"{tenant.allowance.requests_per_second:,}",
            f"{tenant.allowance.burst:,}",
            _used(stored[tenant.tenant_id].size_bytes, tenant.quota.stored_bytes, size_in_words),
            _used(stored[tenant.tenant_id].images, tenant.quota.images, "{:,}".format),
            str(open_keys[tenant.tenant_id]),
            _day(tenant.created_at),
        )
        for tenant in tenants
    ]
    heads = ("tenant", "tier", "lane", "state", "requests/s", "burst", "stored", "images", "keys", "since")
    display.table(out, heads, rows, right=frozenset({"requests/s", "burst", "stored", "images", "keys"}))


def recount(stack: Stack, *, yes: bool) -> None:
    """`tenants recount`."""
    ports = RecountStoredPorts(images=stack.images, usage=stack.usage, audit=stack.audit)
    with stack.explained():
        recount = recount_stored(ports)
    display.readable(recount.unreadable)
    out = display.output()
    if not recount.wrong:
        display.line(out, "What is counted is what is stored.", style="green")
        return
    rows = [
        (
            tenant_id,
            *_in_words(recount.counted.get(tenant_id, NOTHING)),
            *_in_words(recount.stored.get(tenant_id, NOTHING)),
        )
        for tenant_id in recount.wrong
    ]
    heads = ("tenant", "counted", "images", "unfinished", "stored", "images", "unfinished")
    display.table(out, heads, rows, right=frozenset(heads[1:]))
    if not yes:
        display.line(out, f"To correct it: ./darkroom tenants recount --yes{stack.options}")
        return
    with stack.explained():
        left = correct_stored(ports, recount)
    if left:
        raise ApiError(f"These change too fast to be corrected now: {', '.join(left)}. Repeat it later.")
    display.line(out, "Corrected. What was uploaded or deleted meanwhile may be missing: repeat it to see.")


def enlist(stack: Stack, *, yes: bool) -> None:
    """`tenants enlist`."""
    out = display.output()
    if not yes:
        with stack.explained():
            missing = sum(1 for _ in stack.images.unlisted())
        if not missing:
            display.line(out, "The index `listed` has every image.", style="green")
            return
        display.line(out, f"The index `listed` lacks {display.of(missing, 'image')} that an earlier version accepted.")
        display.line(out, f"To add them: ./darkroom tenants enlist --yes{stack.options}")
        return
    with (
        Interrupts() as interrupts,
        display.ProgressReport(display.errors()) as report,
        stack.explained(),
        stack.audit.action("enlist") as audited,
    ):

        def count(image: tuple[str, str], _: None) -> None:
            audited.add(image[0], "images")
            report.show("listing", completed=audited.counts["images"], total=None, detail="")

        do_to_many(
            stack.images.unlisted(),
            lambda image: stack.images.enlist(*image),
            pace=RateLimiter(per_second=_ENLISTED_PER_SECOND, clock=stack.clock, pause=interrupts.wait),
            at_a_time=_ENLISTED_AT_A_TIME,
            stop=lambda: interrupts.requested,
            on_outcome=count,
        )
    display.line(out, f"Listed {display.of(audited.counts['images'], 'image')}.")
    if interrupts.requested:
        raise ApiError("Interrupted. Repeat it: it goes on with those that are left.")


def _in_words(stored: Stored) -> tuple[str, str, str]:
    # A sum that began late may be below zero.
    size = size_in_words(abs(stored.size_bytes))
    return f"-{size}" if stored.size_bytes < 0 else size, f"{stored.images:,}", f"{stored.unfinished:,}"


def _limit(number: int) -> int | None:
    return None if number == UNLIMITED else number


def _used(used: int, allowed: int, form: Callable[[int], str]) -> str:
    return form(used) if allowed == UNLIMITED else f"{form(used)} of {form(allowed)}"


def create_key(
    stack: Stack, tenant_id: str, *, label: str | None, scopes: tuple[str, ...] | None, lives_seconds: float | None
) -> None:
    """`keys create`: the key is all that goes to standard output."""
    with stack.explained():
        access = stack.access
        try:
            key, stored = create_key_of(
                _creating(stack), tenant_id, label=label, scopes=scopes, lives_seconds=lives_seconds
            )
        except UnknownTenant as error:
            raise _no_tenant(stack, tenant_id) from error
    _show_key(stack, key, stored, access)


def rotate_key(stack: Stack, key_id: str, *, overlap_seconds: float) -> None:
    """`keys rotate`: the new key is all that goes to standard output."""
    with stack.explained():
        access = stack.access
        try:
            key, stored, old = rotate_key_of(_creating(stack), key_id, overlap_seconds=overlap_seconds)
        except UnknownKey as error:
            raise _no_key(stack, key_id) from error
        except UnknownTenant as error:
            raise _no_tenant(stack, str(error)) from error
        except KeyNotActive as error:
            state = error.key.state(stack.clock())
            raise ApiError(
                f"{key_id} is {state}: it opens nothing, so there is nothing to replace. "
                f"A new key:  ./darkroom keys create {error.key.tenant_id}{stack.options}"
            ) from error
    _show_key(stack, key, stored, access)
    display.line(display.errors(), f"It replaces {key_id}, which opens the API until {rfc3339(old.expires_at)}.")


def _creating(stack: Stack) -> CreateKeyPorts:
    return CreateKeyPorts(tenants=stack.tenants, clock=stack.clock, randomness=secrets.token_bytes, audit=stack.audit)


def _show_key(stack: Stack, key: str, stored: ApiKey, access: str) -> None:
    display.line(display.output(), key)
    notes = display.errors()
    display.line(notes, f"The key is shown only this once. In lists and logs it is {stored.key_id}.")
    if stored.expires_at is not None:
        display.line(notes, f"It opens the API until {rfc3339(stored.expires_at)}.")
    if access != "keys":
        display.line(
            notes,
            f"It does not work yet: {stack.name} is deployed with Access={access}, not Access=keys.",
            style="yellow",
        )


def list_keys(stack: Stack, tenant_id: str | None, *, only_closed: bool, as_json: bool) -> None:
    """`keys ls`."""
    now = stack.clock()
    with stack.explained():
        if tenant_id is not None and stack.tenants.tenant(tenant_id) is None:
            raise _no_tenant(stack, tenant_id)
        keys = [key for key in display.readable(stack.tenants.all_keys()) if tenant_id in (None, key.tenant_id)]
    if only_closed:
        keys = [key for key in keys if key.state(now) is not KeyState.ACTIVE]
    out = display.output()
    if as_json:
        display.print_json(
            [
                {
                    "id": key.key_id,
                    "tenant": key.tenant_id,
                    "label": key.label,
                    "state": key.state(now),
                    "scopes": None if key.scopes is None else list(key.scopes),
                    "created_at": rfc3339(key.created_at),
                    "expires_at": rfc3339(key.expires_at),
                    "last_used_on": key.last_used_on,
                    "revoked_at": rfc3339(key.revoked_at),
                }
                for key in keys
            ]
        )
        return
    if not keys and only_closed:
        display.line(out, "No key is revoked or expired.", style="green")
        return
    if not keys:
        display.line(out, f"No keys yet. The first one:  ./darkroom keys create {tenant_id or 'TENANT'}{stack.options}")
        return
    rows = [
        (
            key.key_id,
            key.tenant_id,
            _state(key, now),
            "everything" if key.scopes is None else " ".join(key.scopes),
            display.age((now - key.created_at) / 1000),
            key.last_used_on or "never",
            key.label or "",
        )
        for key in keys
    ]
    heads = ("key", "tenant", "state", "may", "age", "last used", "label")
    display.table(out, heads, rows, right=frozenset({"age"}))


def _state(key: ApiKey, now: Milliseconds) -> str:
    """Whether the key opens the API, and until or since when."""
    match key.state(now):
        case KeyState.REVOKED:
            return f"revoked {_day(key.revoked_at or 0)}"
        case KeyState.EXPIRED:
            return f"expired {_day(key.expires_at or 0)}"
        case KeyState.ACTIVE:
            return "active" if key.expires_at is None else f"until {_day(key.expires_at)}"


def revoke_key(stack: Stack, key_id: str) -> None:
    """`keys revoke`."""
    try:
        with stack.explained():
            key = revoke_key_of(RevokeKeyPorts(tenants=stack.tenants, clock=stack.clock, audit=stack.audit), key_id)
    except UnknownKey as error:
        raise _no_key(stack, key_id) from error
    display.line(display.output(), f"{key_id} of {key.tenant_id} was revoked at {rfc3339(key.revoked_at)}. {_IN_FORCE}")


_IN_FORCE = f"This takes effect within {AUTHORIZER_CACHE_SECONDS} seconds."


def _changed(stack: Stack, tenant_id: str, change: Callable[[Tenant], Tenant]) -> Tenant:
    try:
        with stack.explained():
            return change_tenant(ChangeTenantPorts(tenants=stack.tenants, audit=stack.audit), tenant_id, change)
    except UnknownTenant as error:
        raise _no_tenant(stack, tenant_id) from error


def _no_tenant(stack: Stack, tenant_id: str) -> ApiError:
    return ApiError(
        f"There is no tenant {display.printable(tenant_id)} in {stack.name}. "
        f"To list the tenants: ./darkroom tenants ls{stack.options}"
    )


def _no_key(stack: Stack, key_id: str) -> ApiError:
    return ApiError(f"There is no key {key_id} here. To list the keys: ./darkroom keys ls{stack.options}")


def _agreed(tenant: Tenant) -> str:
    allowance, quota = tenant.allowance, tenant.quota
    stored = "unlimited storage" if quota.stored_bytes == UNLIMITED else size_in_words(quota.stored_bytes)
    images = "any number of images" if quota.images == UNLIMITED else f"{quota.images:,} images"
    images += "" if quota.unfinished == UNLIMITED else f", {quota.unfinished:,} of them unfinished"
    return (
        f"{tenant.tier}, {allowance.requests_per_second:,} requests per second, {allowance.burst:,} at once, "
        f"{stored}, {images}"
    )


def _day(instant: int) -> str:
    return str(rfc3339(instant))[:10]
