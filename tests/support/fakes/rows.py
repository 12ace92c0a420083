"""Rows as accepting an upload writes them, and what a worker asks for when it claims one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, replace
from typing import Any

from darkroom.aws.images.memory_table import record_id
from darkroom.domain.images.claim import Lease
from darkroom.domain.images.image import TOMBSTONE_FIELDS, UNKNOWN_SOURCE, Image, Source
from darkroom.domain.images.transitions import accept
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.recipes.presets import PRESETS
from darkroom.ports.kernel import Fenced


def changed[Key: Hashable, Row: Any](rows: dict[Key, Row], key: Key, before: Row, after: Row) -> Row:
    """What a table of versioned rows does with a change that was decided on `before`. Raises Fenced."""
    current, written = rows.get(key), replace(after, version=before.version + 1)
    if current == written:  # this write's own first attempt, whose answer was lost
        return written
    if current is None or current.version != before.version:
        raise Fenced(current)
    rows[key] = written
    return written


def accepted_image(*, now: Milliseconds, **stated: Any) -> Image:
    """An image that was accepted at `now`: of the tenant `default`, in the slow lane, with the recipe of the preset
    `standard`, unless `stated` gives another argument of `accept`."""
    usual: dict[str, Any] = {
        "image_id": "0" * 26,
        "tenant_id": "default",
        "lane": "slow",
        "preset": "standard",
        "recipe": PRESETS["standard"],
        "fingerprint": "f",
        "correlation_id": "c",
        "source": Source(version_id="v", sha256="s", size_bytes=1, media_type="image/jpeg"),
    }
    return accept(now=now, **usual | stated)


def told_by(tombstone: Image) -> set[str]:
    """The fields beyond TOMBSTONE_FIELDS that are not empty: a tombstone has none."""
    nothing = (None, False, "", (), UNKNOWN_SOURCE)
    others = {each.name for each in fields(tombstone)} - TOMBSTONE_FIELDS
    return {name for name in others if getattr(tombstone, name) not in nothing}


def lease(*, now: Milliseconds, claimed_by: str = "somebody", request_id: str = "r") -> Lease:
    """What a worker with a minute of time asks for."""
    return Lease(
        claimed_by=claimed_by,
        request_id=request_id,
        now=now,
        lease_until=now + 90_000,
        not_before=now + 110_000,
        due_at=now + 420_000,
    )


def begun_work(key: str, *, runs_until: Milliseconds, kept_seconds: int) -> dict[str, Any]:
    """The record of work in progress that a worker of an earlier version left in the memory of finished work: it may
    run until that instant, and DynamoDB removes the record so long after."""
    return {
        "id": {"S": record_id(key)},
        "status": {"S": "INPROGRESS"},
        "expiration": {"N": str(runs_until // 1000 + kept_seconds)},
        "in_progress_expiration": {"N": str(runs_until)},
    }
