"""Removing originals without a row: all of them in the end, and none that has a row, whenever that is written."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from darkroom.domain.images.image import Image
from darkroom.domain.kernel.errors import Retryable
from darkroom_cli.operator.operations.images.list_orphans import Look
from darkroom_cli.operator.operations.images.remove_orphans import (
    HIDDEN_SECONDS,
    Removal,
    RemoveOrphansPorts,
    TableSeemsLost,
    remove_orphans,
    table_seems_lost,
)
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from tests.support.fakes import World
from tests.support.fakes.audit import trail_of
from tests.support.faults import Call, Faults, Mode, ProcessDied, at
from tests.support.orphans import DAY, PHOTO, a_world, look, orphaned

KEY = "order-17"
REQUEST_SECONDS = 30


def remove(world: World, seen: Look | None = None, *, table_is_whole: bool = True, **ports: Any) -> Removal:
    return remove_orphans(
        RemoveOrphansPorts(
            audit=trail_of(),
            images=ports.get("images", world.images),
            originals=ports.get("originals", world.originals),
            patience=ports.get("patience") or TransientRetry(pause=world.advance, stop=lambda: False),
        ),
        seen or look(world),
        table_is_whole=table_is_whole,
    )


def test_an_orphan_goes_with_all_its_versions_and_everything_else_stays() -> None:
    world = a_world()
    kept = world.submit(PHOTO).image
    gone, hidden = orphaned(world, "a", "b")
    world.originals.add(f"originals/{gone}", b"older than the marker")
    world.originals.hide([hidden])
    world.originals.add("originals/notes.txt", b"x")
    world.advance(3 * DAY)
    (young,) = orphaned(world, "c")
    removal = remove(world)
    assert (removal.removed, removal.vouched_for, removal.complete) == (2, 0, True)
    assert removal.size_bytes == 2 * len(PHOTO) + len(b"older than the marker")
    assert set(world.originals.kept) == {
        f"originals/{kept.image_id}",
        f"originals/{young}",
        "originals/notes.txt",
    }
    assert world.originals.get(kept.image_id, kept.source.version_id) == PHOTO
    assert remove(world).removed == 0


def test_nothing_to_remove_waits_for_nothing() -> None:
    world = a_world()
    begun_at = world.now
    assert remove(world) == Removal(removed=0, size_bytes=0, vouched_for=0, complete=True)
    assert world.now == begun_at


# ── A client that repeats its request meanwhile ─────────────────────────────────────────────────────────────────────


def removed_while(happenings: dict[int, Any], world: World) -> list[tuple[str, int]]:
    """Removes while something happens before some calls, pauses included; returns all of them, each with its time."""
    calls: list[tuple[str, int]] = []

    def watch(call: Call) -> None:
        calls.append((call.name, world.now))
        happenings.pop(call.number, lambda: None)()

    seen, watched = look(world), Faults(watch)
    remove(
        world,
        seen,
        images=watched.around("images", world.images),
        originals=watched.around("originals", world.originals),
        patience=TransientRetry(pause=watched.around("pause", world.advance), stop=lambda: False),
    )
    return calls


def an_old_orphan() -> tuple[World, str]:
    world = a_world()
    (orphan,) = orphaned(world, KEY)
    world.advance(3 * DAY)
    return world, orphan


def calls_without_company() -> list[tuple[str, int]]:
    world, _ = an_old_orphan()
    return removed_while({}, world)


@pytest.mark.guards(
    "orphans-hidden-first", "orphans-second-look", "orphans-versions-before-markers", "orphans-wait-while-hidden"
)
def test_a_repeated_request_keeps_its_original_at_whatever_two_moments_it_looks_and_writes() -> None:
    calls = calls_without_company()
    names = [name for name, _ in calls]
    assert [name for name in names if name != "pause"] == [
        "originals.hide",
        "images.known",
        "originals.remove",
        "originals.remove",
    ]
    assert names.count("pause") == HIDDEN_SECONDS
    begun_at = calls[0][1]
    # Pauses are alike, so the first, those about a request's length and the last are enough.
    moments = [0, 1, 2, REQUEST_SECONDS, HIDDEN_SECONDS - REQUEST_SECONDS, *range(HIDDEN_SECONDS, len(calls))]
    for looks_at in moments:
        for writes_at in (moment for moment in moments if moment >= looks_at):
            if calls[writes_at][1] - calls[looks_at][1] > REQUEST_SECONDS * 1000:
                continue
            world, orphan = an_old_orphan()
            assert world.now == begun_at
            create = world.images.create
            held_up: list[Image] = []
            world.images.create = lambda row, held_up=held_up: held_up.append(row) or row

            def looks(world: World = world, orphan: str = orphan) -> None:
                assert world.submit(PHOTO, idempotency_key=KEY).image.image_id == orphan

            def writes(create: Any = create, held_up: Any = held_up) -> None:
                create(held_up.pop())

            def both(looks: Any = looks, writes: Any = writes) -> None:
                looks()
                writes()

            happenings = {looks_at: both} if looks_at == writes_at else {looks_at: looks, writes_at: writes}
            removed_while(happenings, world)
            row = world.row(orphan)
            assert world.originals.get(orphan, row.source.version_id) == PHOTO, (looks_at, writes_at)


@pytest.mark.guards("orphans-second-look")
def test_what_has_got_a_row_meanwhile_is_counted_and_shown_again() -> None:
    world, orphan = an_old_orphan()
    seen = look(world)
    image = world.submit(PHOTO, idempotency_key=KEY).image
    removal = remove(world, seen)
    assert (removal.removed, removal.vouched_for) == (0, 1)
    current = world.originals.put_if_absent(orphan, b"", sha256="", media_type="image/jpeg")
    assert current.version_id == image.source.version_id, "no marker lies on it"


def test_what_is_put_on_a_hidden_orphan_stays_though_its_row_is_yet_to_come() -> None:
    world, orphan = an_old_orphan()
    seen = look(world)
    world.originals.hide([orphan])
    stored = world.originals.put_if_absent(orphan, PHOTO, sha256="", media_type="image/jpeg")
    assert remove(world, seen).removed == 1
    assert world.originals.get(orphan, stored.version_id) == PHOTO
    assert (look(world).orphans, look(world).young) == (0, 1)


# ── Interrupted and typed again ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", ["dies before", "dies after", "throttled", "answer lost"])
def test_a_removal_that_dies_anywhere_is_typed_again_and_goes_on(mode: Mode) -> None:
    def attempt(world: World, faults: Faults) -> None:
        remove(
            world,
            images=faults.around("images", world.images),
            originals=faults.around("originals", world.originals),
        )

    counting = Faults()
    attempt(an_old_orphan()[0], counting)
    assert len(counting.calls) == 4
    for number in range(len(counting.calls)):
        world, orphan = an_old_orphan()
        kept = world.submit(PHOTO).image
        faults = Faults(at(number, mode))
        with suppress(ProcessDied, Retryable):
            attempt(world, faults)
        assert faults.struck
        attempt(world, Faults())
        left = {name for name, versions in world.originals.kept.items() if any(version.body for version in versions)}
        assert left == {f"originals/{kept.image_id}"}, (mode, number)
        assert len(world.originals.kept.get(f"originals/{orphan}", [])) <= 2, "markers, which a lifecycle rule forgets"


def test_an_end_that_is_asked_for_ends_it_between_two_steps() -> None:
    world = a_world()
    orphaned(world, *(str(number) for number in range(150)))
    world.advance(3 * DAY)
    seen, steps = look(world), 0
    for wanted_at in (0, 1, 2, 60, HIDDEN_SECONDS + 2, HIDDEN_SECONDS + 3):
        steps = 0

        def stop(wanted_at: int = wanted_at) -> bool:
            nonlocal steps
            steps += 1
            return steps > wanted_at

        removal = remove(world, seen, patience=TransientRetry(pause=world.advance, stop=stop))
        assert not removal.complete
        assert removal.removed == (100 if wanted_at == HIDDEN_SECONDS + 3 else 0)
        seen = look(world)
    assert (remove(world, seen).removed, look(world).orphans) == (50, 0)


# ── A table that has lost rows ───────────────────────────────────────────────────────────────────────────────────────


def seen(originals: int, orphans: int, young: int = 0) -> Look:
    return Look(
        originals=originals,
        orphans=orphans,
        size_bytes=0,
        oldest_at=None,
        young=young,
        held=(),
        foreign=0,
        foreign_keys=(),
    )


@pytest.mark.parametrize(
    ("look_", "lost"),
    [
        (seen(0, 0), False),
        (seen(1, 1), True),
        (seen(80, 80), True),
        (seen(80, 79), False),
        (seen(1_000, 100), False),
        (seen(1_000, 101), True),
        (seen(1_000, 50, young=51), True),
        (seen(1_000_000, 50_000), False),
        (seen(1_000_000, 50_001), True),
    ],
)
def test_more_than_a_twentieth_and_a_hundred_or_all_without_a_row_are_a_lost_table(look_: Look, lost: bool) -> None:
    assert table_seems_lost(look_) is lost


@pytest.mark.guards("orphans-lost-rows-share")
def test_what_a_table_has_lost_is_not_removed_unless_somebody_vouches_for_the_table() -> None:
    world = a_world()
    (orphan,) = orphaned(world, "a")
    world.advance(3 * DAY)
    with pytest.raises(TableSeemsLost):
        remove(world, table_is_whole=False)
    (version,) = world.originals.kept[f"originals/{orphan}"]
    assert version.body == PHOTO, "nor hidden"
    assert remove(world, table_is_whole=True).removed == 1
