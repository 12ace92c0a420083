"""The decisions about one restored item: what of it may come back, and as what. Nothing here asks AWS or a clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from darkroom.aws.images.images_table import DERIVED, from_item, to_item
from darkroom.aws.kernel.attributes import to_attributes
from darkroom.aws.webhooks.endpoints_table import ENDPOINTS
from darkroom.domain.images.image import Image, Provenance, Source, Status
from darkroom.domain.images.transitions import arrive, delete, due_now
from darkroom.domain.images.works import moved, together
from darkroom.domain.imports.fetch import fetched
from darkroom.domain.kernel.instants import Milliseconds, day_of
from darkroom.domain.kernel.visibility import Visibility, visibility_of_key, with_prospect
from darkroom.domain.webhooks.endpoint import DisabledBy, disable
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.operator.domain.next_run import redo
from darkroom_cli.restore.since import Since

type RestoredItem = Mapping[str, Any]


class RestoreOutcome(StrEnum):
    """What becomes of a restored item."""

    RESTORED = "restored"
    DUE = "due"
    REDONE = "redone"
    ARRIVED = "arrived"
    TOMBSTONE = "tombstone"
    REVOKED = "revoked"
    DISABLED = "disabled"
    ERASED = "erased"
    FORGOTTEN = "forgotten"
    THERE = "there"
    GONE = "gone"
    HELD = "held"


MEANINGS: Mapping[RestoreOutcome, str] = {
    RestoreOutcome.RESTORED: "as they were",
    RestoreOutcome.DUE: "unfinished: the sweeper sends their messages",
    RestoreOutcome.REDONE: "variants are missing: developed again",
    RestoreOutcome.ARRIVED: "their file has come since: accepted with it",
    RestoreOutcome.TOMBSTONE: "deleted or erased since: tombstones",
    RestoreOutcome.REVOKED: "keys that were revoked or replaced since: revoked",
    RestoreOutcome.DISABLED: "webhooks that were changed since: disabled",
    RestoreOutcome.ERASED: "erased or removed since: not restored",
    RestoreOutcome.FORGOTTEN: "whose time is over: not restored",
    RestoreOutcome.THERE: "in the table: left as they are",
    RestoreOutcome.GONE: "their original is gone: tombstones",
    RestoreOutcome.HELD: "not restored, named below",
}


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What becomes of an item: `item` is what is to be put, None if nothing is; `reason` says why one is held."""

    outcome: RestoreOutcome
    item: RestoredItem | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What S3 has of an image: the versions of its original, whether a delete marker hides them, the first of them as
    it was stored, with what it was made for, and the keys of its variants."""

    versions: frozenset[str] = frozenset()
    is_hidden: bool = False
    first: Source | None = None
    made_for: str = ""
    keys: frozenset[str] = frozenset()


def of_image(
    item: RestoredItem,
    since: Since,
    found_of: Callable[[Image], Found],
    *,
    now: Milliseconds,
    removal: Callable[[], Milliseconds] = lambda: 0,
) -> Decision:
    """What becomes of an image's row. `removal` says when the objects of one more tombstone are to be removed.

    It is written as the next version: so its appearance in the table is told from an image that was just accepted
    (`event_of`), and a write that was decided before its loss changes nothing.
    """
    if _is_over(item, now):  # guard: restore-expired-row
        return Decision(outcome=RestoreOutcome.FORGOTTEN)
    try:
        row = from_item(dict(item))
    except UnreadableRow as error:
        return Decision(outcome=RestoreOutcome.HELD, reason=str(error))
    if row.is_deleted:
        return _put(item, row, RestoreOutcome.RESTORED)
    if since.is_half_erased(row.tenant_id, row.created_at):
        return _half_erased(row.tenant_id)
    # guard: restore-audited-erasures, restore-client-deletions
    if row.image_id in since.deleted_images or since.is_erased(row.tenant_id, row.created_at):
        return _put(item, _removed(row, now=now, remove_at=removal()), RestoreOutcome.TOMBSTONE)
    original = found_of(row)
    row = _as_found(row, original.keys)
    if original.is_hidden and original.versions:  # guard: restore-hidden-original-held
        return Decision(
            outcome=RestoreOutcome.HELD,
            reason="a delete marker hides its original: remove the marker to have the image back, "
            "or all versions to have it deleted",
        )
    if not row.has_original:
        return _put(item, *_without_original(row, original, now))
    if row.source.version_id not in original.versions:
        # guard: restore-second-look
        if row.source.version_id in found_of(row).versions:  # no single read decides a deletion
            return Decision(
                outcome=RestoreOutcome.HELD, reason="S3 has listed its original only once in two times: repeat"
            )
        return _put(item, _removed(row, now=now, remove_at=removal()), RestoreOutcome.GONE)
    # guard: restore-missing-variants
    if row.outcome is Status.DONE and not {variant.key for variant in row.variants} <= original.keys:
        return _put(item, due_now(redo(_with_its_work(row), now=now), now=now), RestoreOutcome.REDONE)
    if row.status in (Status.PENDING, Status.PROCESSING):
        return _put(item, due_now(row, now=now), RestoreOutcome.DUE)  # guard: restore-unfinished-due
    return _put(item, row, RestoreOutcome.RESTORED)


def _as_found(row: Image, keys: frozenset[str]) -> Image:
    """The row with every visibility that there are objects for, and with that for which its variants were moved after
    the point to which the table goes back: its client has decided then who sees it."""
    for key in sorted(keys):  # guard: restore-found-visibilities
        row = replace(row, visibilities=with_prospect(row.visibilities, visibility_of_key(key)))
    as_they_lie = (row, *(moved(row, visibility) for visibility in Visibility))
    # guard: restore-moved-since
    return next((each for each in as_they_lie if {variant.key for variant in each.variants} <= keys), row)


def _removed(row: Image, *, now: Milliseconds, remove_at: Milliseconds) -> Image:
    """Its tombstone. Since that point it may have had every visibility."""
    everywhere = replace(row, visibilities=tuple(Visibility))  # guard: restore-tombstone-visibilities
    return delete(everywhere, now=now, remove_at=remove_at)


def _with_its_work(row: Image) -> Image:
    """The done image as if the variants that are to be added had been: a redo makes them with the others. An edit
    follows it."""
    if row.work is None:
        return row
    added = row.added if row.work.recipe is None else together((*row.added, row.work.recipe))
    edit = row.edit
    if edit is not None and edit.run == row.run:  # guard: restore-edit-under-way
        edit = replace(edit, edits=row.work.edits, run=None)
    return replace(row, status=Status.DONE, works=row.works[:-1], added=added, edit=edit)


def _is_over(item: RestoredItem, now: Milliseconds) -> bool:
    """Whether the table would remove the item by itself, which does not depend on which version can read it."""
    seconds = item.get("forget_at", {}).get("N")
    return seconds is not None and float(seconds) * 1000 <= now


def _half_erased(tenant_id: str) -> Decision:
    what = f"somebody began to erase {tenant_id}"
    todo = f"finish it (./darkroom tenants erase {tenant_id} --yes), or --keep-tenant {tenant_id}"
    return Decision(outcome=RestoreOutcome.HELD, reason=f"{what}: {todo}")


def _without_original(row: Image, original: Found, now: Milliseconds) -> tuple[Image, RestoreOutcome]:
    """An awaited image or one being fetched: its bytes may have come since, and its row of then would have them removed
    as never uploaded."""
    first = original.first
    # guard: restore-later-upload
    if first is not None and row.status is Status.AWAITING_UPLOAD and first.sha256 == row.source.sha256:
        return due_now(arrive(row, first, now=now), now=now), RestoreOutcome.ARRIVED
    if first is not None and row.status is Status.FETCHING and original.made_for == row.fingerprint:
        return due_now(fetched(row, first, Provenance(), now=now), now=now), RestoreOutcome.ARRIVED
    return row, RestoreOutcome.RESTORED


def _put(item: RestoredItem, row: Image, outcome: RestoreOutcome) -> Decision:
    return Decision(outcome=outcome, item=_item(item, row))


_OURS = frozenset({*Image.__dataclass_fields__, *DERIVED})


def _item(item: RestoredItem, row: Image) -> RestoredItem:
    unknown = {name: value for name, value in item.items() if name not in _OURS}
    version = int(item["version"]["N"]) + 1  # guard: restore-next-version
    return unknown | to_item(replace(row, version=version))  # guard: restore-unknown-attributes


def of_tenant(item: RestoredItem, since: Since) -> Decision:
    """What becomes of a tenant's row or a key's."""
    kind, _, name = item["id"]["S"].partition("#")
    tenant_id = name if kind == "tenant" else item["tenant_id"]["S"]
    created_at = int(item["created_at"]["N"])
    if since.is_half_erased(tenant_id, created_at):
        return _half_erased(tenant_id)
    if since.is_erased(tenant_id, created_at):
        return Decision(outcome=RestoreOutcome.ERASED)
    if kind == "key" and name in since.revoked_keys and "revoked_at" not in item:  # guard: restore-revoked-keys
        at = {"N": str(since.revoked_keys[name])}
        return Decision(outcome=RestoreOutcome.REVOKED, item={**item, "revoked_at": at})
    if kind == "tenant":
        changes = {
            attribute: None if to == "none" else to for attribute, to in since.changed_tenants.get(name, {}).items()
        }
        kept = {attribute: value for attribute, value in item.items() if attribute not in changes}
        changed = kept | to_attributes(changes)  # guard: restore-suspended-tenant
        return Decision(outcome=RestoreOutcome.RESTORED, item=changed)
    return Decision(outcome=RestoreOutcome.RESTORED, item=item)


def of_webhook(item: RestoredItem, since: Since, *, now: Milliseconds) -> Decision:
    """What becomes of a webhook's row: one that was changed since may have another URL, other secrets, or none of what
    it was sent, so it is disabled until its owner looks at it."""
    try:
        row = ENDPOINTS.row_of(dict(item))
    except UnreadableRow as error:
        return Decision(outcome=RestoreOutcome.HELD, reason=str(error))
    if since.is_half_erased(row.tenant_id, row.created_at):
        return _half_erased(row.tenant_id)
    # guard: restore-deleted-webhooks
    if since.is_erased(row.tenant_id, row.created_at) or row.endpoint_id in since.deleted_webhooks:
        return Decision(outcome=RestoreOutcome.ERASED)
    is_stale = row.endpoint_id in since.changed_webhooks and row.is_enabled  # guard: restore-changed-webhooks
    after = replace(disable(row, DisabledBy.CLIENT, now=now) if is_stale else row, version=row.version + 1)
    written = ENDPOINTS.item_of(after)
    gone = ENDPOINTS.item_of(row).keys() - written.keys()
    kept = {name: value for name, value in item.items() if name not in gone}
    if after.due_at is None:
        kept.pop("due_shard", None)
    return Decision(outcome=RestoreOutcome.DISABLED if is_stale else RestoreOutcome.RESTORED, item={**kept, **written})


_DAY, _AFTER_ALL_DAYS = len("2026-11-23"), ":"


def of_usage(item: RestoredItem, since: Since) -> Decision:
    """What becomes of what was counted of a tenant."""
    tenant_id = item["tenant_id"]["S"]
    if tenant_id in since.half_erased:
        return _half_erased(tenant_id)
    erased_at = since.erased.get(tenant_id)
    # The sum of what it stores, which is of no day, is counted anew from the rows of images.
    if erased_at is not None and not day_of(erased_at) < item["day"]["S"][:_DAY] < _AFTER_ALL_DAYS:
        return Decision(outcome=RestoreOutcome.ERASED)
    return Decision(outcome=RestoreOutcome.RESTORED, item=item)
