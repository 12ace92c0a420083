"""Originals without rows."""

from __future__ import annotations

from typing import Any

from darkroom_cli.operator.operations.images.list_orphans import ListOrphansPorts, Look, list_orphans
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from tests.support.fakes import FakeVersionedOriginals, World
from tests.support.fakes.pictures import jpeg

PHOTO = jpeg(32, 24)
DAY = 24 * 3600
TWO_DAYS = 2 * DAY


def a_world() -> World:
    world = World()
    world.originals = FakeVersionedOriginals(clock=world.clock)
    return world


def orphaned(world: World, *keys: str) -> list[str]:
    """Originals whose requests, with those keys, died before they wrote a row."""
    ids = [world.submit(PHOTO, idempotency_key=key).image.image_id for key in keys]
    for image_id in ids:
        del world.images.rows[image_id]
    return ids


def look(
    world: World, *, older_than_seconds: float = TWO_DAYS, patience: TransientRetry | None = None, **more: Any
) -> Look:
    return list_orphans(
        world.ports(ListOrphansPorts, patience=patience or TransientRetry(pause=lambda _: None, stop=lambda: False)),
        older_than_seconds=older_than_seconds,
        **more,
    )
