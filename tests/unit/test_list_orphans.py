"""Finding originals without a row: what counts as one, and what is never mistaken for one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from darkroom.domain.images.transitions import delete
from darkroom.domain.kernel.errors import Retryable
from darkroom_cli.operator.operations.images import list_orphans as module
from darkroom_cli.operator.operations.images.list_orphans import LEAST_AGE_SECONDS, Look
from darkroom_cli.operator.operations.images.remove_orphans import HIDDEN_SECONDS
from darkroom_cli.operator.operations.kernel.retry_transient import PAUSES_SECONDS, TransientRetry
from repository.expand_template import resources
from tests.support.faults import failing
from tests.support.orphans import DAY, PHOTO, TWO_DAYS, a_world, look, orphaned


def ids_of(seen: Look) -> set[str]:
    return {orphan.image_id for orphan in seen.held}


def test_an_original_without_a_row_is_an_orphan_with_its_weight_and_its_age() -> None:
    world = a_world()
    first = orphaned(world, "a")
    stored_at = world.now
    world.advance(DAY)
    second = orphaned(world, "b")
    world.submit(PHOTO)
    world.advance(3 * DAY)
    seen = look(world)
    assert ids_of(seen) == {*first, *second}
    assert (seen.originals, seen.orphans, seen.young) == (3, 2, 0)
    assert (seen.size_bytes, seen.oldest_at) == (2 * len(PHOTO), stored_at)


def test_an_original_with_a_row_is_never_an_orphan_whatever_the_row_says() -> None:
    world = a_world()
    withdrawn = world.submit(PHOTO).image
    world.images.rows[withdrawn.image_id] = delete(withdrawn, now=world.now)
    other = world.submit(PHOTO).image
    source = replace(other.source, version_id="another version")
    world.images.rows[other.image_id] = replace(other, source=source)
    world.advance(90 * DAY)
    assert (look(world).originals, look(world).without_row) == (2, 0)


@pytest.mark.guards("orphans-age-of-every-version")
def test_what_is_too_young_in_any_version_is_counted_apart() -> None:
    world = a_world()
    (old, new) = orphaned(world, "old", "new")
    world.advance(TWO_DAYS - 1)
    assert (look(world).orphans, look(world).young) == (0, 2)
    world.originals.add(f"originals/{new}", PHOTO)
    world.advance(1)
    seen = look(world)
    assert (ids_of(seen), seen.young, seen.without_row) == ({old}, 1, 2)


@pytest.mark.guards("orphans-minimum-age")
def test_no_age_is_taken_at_which_a_row_may_be_on_its_way() -> None:
    world = a_world()
    assert look(world, older_than_seconds=LEAST_AGE_SECONDS).orphans == 0
    with pytest.raises(ValueError, match="3600"):
        look(world, older_than_seconds=LEAST_AGE_SECONDS - 1)


def test_requests_end_long_before_these_times() -> None:
    functions = resources("AWS::Lambda::Function")
    storing = ("SubmitImageFunction", "AcceptUploadFunction")
    longest_seconds = max(functions[name]["Timeout"] for name in storing)
    skew_seconds = 15 * 60
    assert 2 * longest_seconds <= HIDDEN_SECONDS
    assert 2 * (longest_seconds + skew_seconds) <= LEAST_AGE_SECONDS


def test_objects_that_are_no_originals_are_told_and_no_orphans() -> None:
    world = a_world()
    keys = ["notes.txt", "originals/", "originals/NOT-AN-ID", f"originals/{'0' * 26}/copy", f"other/{'0' * 26}"]
    for key in keys:
        world.originals.add(key, b"x")
    world.advance(9 * DAY)
    seen = look(world)
    assert (seen.originals, seen.orphans, seen.foreign) == (0, 0, 5)
    assert sorted(seen.foreign_keys) == sorted(keys)


@pytest.mark.parametrize("page_size", [1, 2, 3, 1000])
def test_the_versions_of_one_original_are_one_orphan_wherever_pages_end(page_size: int) -> None:
    world = a_world()
    ids = orphaned(world, *"abcde")
    for image_id in ids:
        world.originals.add(f"originals/{image_id}", PHOTO)
    world.originals.hide(ids[:2])
    world.originals.hide(["7" * 26])
    world.originals.page_size = page_size
    world.advance(9 * DAY)
    seen = look(world)
    assert (seen.originals, seen.orphans) == (5, 5), "a marker on nothing is nothing"
    assert {len(orphan.versions) for orphan in seen.held} == {2}
    assert {orphan.image_id for orphan in seen.held if orphan.is_hidden} == set(ids[:2])


def test_all_are_counted_and_the_first_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HELD", 2)
    world = a_world()
    ids = orphaned(world, *"abcde")
    world.advance(9 * DAY)
    seen = look(world)
    assert (seen.orphans, ids_of(seen)) == (5, set(sorted(ids)[:2]))


def test_progress_is_told_by_the_hundred() -> None:
    world = a_world()
    orphaned(world, *(str(number) for number in range(130)))
    progress: list[tuple[int, int]] = []
    look(world, on_look=lambda *counts: progress.append(counts))
    assert progress == [(100, 100), (130, 130)]


def test_throttles_are_waited_out_and_an_outage_is_not_waited_for_for_ever() -> None:
    world = a_world()
    orphaned(world, "a")
    world.advance(9 * DAY)
    pauses, times = list[float](), 3
    throttled = Retryable("reading image rows: ThrottlingException", retry_after_seconds=3)
    world.images = failing(world.images, "known", throttled, lambda _: len(pauses) < times)
    patience = TransientRetry(pause=pauses.append, stop=lambda: False)
    seen = look(world, patience=patience)
    assert (seen.orphans, pauses) == (1, [3, 3, 4])
    times = 99
    pauses.clear()
    with pytest.raises(Retryable):
        look(world, patience=patience)
    assert len(pauses) == len(PAUSES_SECONDS)
    with pytest.raises(Retryable):
        look(world, patience=TransientRetry(pause=lambda _: pytest.fail("it waits"), stop=lambda: True))
