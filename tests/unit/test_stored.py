"""What a row stores, and whether another file fits into a quota."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.image import Image, Variant
from darkroom.domain.images.stored_by import stored_by
from darkroom.domain.images.transitions import await_upload, complete, delete, expire, expire_upload, reject
from darkroom.domain.imports.fetch import await_fetch
from darkroom.domain.kernel.stored import NOTHING, QuotaExceeded, Stored, has_room, is_near
from darkroom.domain.kernel.tenants import UNLIMITED, Quota
from darkroom.domain.webhooks.row_events import event_of, events_of
from darkroom_cli.operator.domain.next_run import redo
from tests.support.image_changes import NOW, SOURCE, accepted, claimed, done

VARIANTS = tuple(
    Variant(
        name=name,
        width=8,
        height=6,
        format="jpeg",
        size_bytes=size_bytes,
        sha256="s",
        key=f"outputs/{'0' * 26}/2/{name}.jpg",
    )
    for name, size_bytes in (("thumb", 400), ("large", 3_000))
)
ACCEPTED, DONE = Stored(size_bytes=1_234, images=1, unfinished=1), Stored(size_bytes=10_234, images=1)
ENDED = replace(ACCEPTED, unfinished=0)


def announced() -> Image:
    return await_upload(replace(accepted(), source=replace(SOURCE, version_id="")), now=NOW)


def redone() -> Image:
    return complete(claimed(redo(done(claimed(accepted())), now=NOW)), VARIANTS, notices=(), now=NOW + 9)


@pytest.mark.guards("quotas-unarrived-not-stored", "unfinished-first-run-alone")
@pytest.mark.parametrize(
    ("image", "stored"),
    [
        (None, NOTHING),
        (accepted(), ACCEPTED),
        (accepted(process_at=NOW + 9), ACCEPTED),
        (announced(), NOTHING),
        (expire_upload(announced(), now=NOW), NOTHING),
        (await_fetch(accepted(), "https://photos.example/a", now=NOW), NOTHING),
        (claimed(accepted()), ACCEPTED),
        (done(claimed(accepted())), DONE),
        (redo(done(claimed(accepted())), now=NOW), DONE),
        (redone(), Stored(size_bytes=4_634, images=1)),
        (reject(claimed(accepted()), code="truncated", message="It ends early.", now=NOW), ENDED),
        (expire(accepted(process_at=NOW + 9, expires_at=NOW + 10), now=NOW + 10), ENDED),
        (delete(accepted(), now=NOW), NOTHING),
        (delete(done(claimed(accepted())), now=NOW), NOTHING),
    ],
)
def test_a_row_stores_its_original_and_the_variants_that_it_names(image: Image | None, stored: Stored) -> None:
    assert stored_by(image) == stored


@pytest.mark.guards("quotas-redo-difference")
@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (None, accepted(), (1_234, 1, 1)),
        (claimed(accepted()), done(claimed(accepted())), (9_000, 0, -1)),
        (claimed(redo(done(claimed(accepted())), now=NOW)), redone(), (-5_600, 0)),
        (done(claimed(accepted())), delete(done(claimed(accepted())), now=NOW), (-10_234, -1)),
        (accepted(), delete(accepted(), now=NOW), (-1_234, -1, -1)),
        (
            redo(done(claimed(accepted())), now=NOW),
            delete(redo(done(claimed(accepted())), now=NOW), now=NOW),
            (-10_234, -1),
        ),
        (claimed(accepted()), reject(claimed(accepted()), code="c", message="m", now=NOW), (0, 0, -1)),
        (announced(), delete(announced(), now=NOW), None),
    ],
)
def test_an_event_says_by_how_much_its_write_changes_what_is_stored(
    before: Image | None, after: Image, change: tuple[int, ...] | None
) -> None:
    event = event_of(before, after)
    assert event is not None
    figures = None if change is None else dict(zip(("bytes", "images", "unfinished"), change, strict=False))
    assert event.data.get("stored") == figures
    assert Stored.read(event.data.get("stored")) == stored_by(after) - stored_by(before)


@pytest.mark.guards("quotas-repeated-event-bound", "unfinished-end-told-again")
def test_an_event_that_is_told_again_says_the_same_or_nothing() -> None:
    once = replace(done(claimed(accepted())), version=3, completed_version=3)
    assert [event.data.get("stored") for event in events_of(once)] == [
        begun := {"bytes": 1_234, "images": 1, "unfinished": 1},
        {"bytes": 9_000, "images": 0, "unfinished": -1},
    ]
    refused = replace(reject(claimed(accepted()), code="c", message="m", now=NOW), completed_version=3)
    assert [event.data.get("stored") for event in events_of(refused)] == [
        begun,
        {"bytes": 0, "images": 0, "unfinished": -1},
    ]
    again = replace(redone(), earlier_ends=(), completed_version=6)  # it was redone before there were events
    assert [event.data.get("stored") for event in events_of(again)] == [begun, None]
    known = replace(complete(claimed(redo(once, now=NOW)), VARIANTS, notices=(), now=NOW), completed_version=6)
    assert [event.data.get("stored") for event in events_of(known)] == [begun, None, None]
    gone = replace(delete(once, now=NOW), deleted_version=4)
    assert [event.data.get("stored") for event in events_of(gone)] == [None, None, None]


@pytest.mark.parametrize("written", [7, [7], {"bytes": "7"}, {"bytes": 1.5}, {"bytes": True, "images": 1}])
def test_what_is_no_change_is_not_taken_for_one(written: Any) -> None:
    with pytest.raises(ValueError, match="is not a change"):
        Stored.read(written)


@pytest.mark.parametrize(
    ("size_bytes", "images", "more", "fits"),
    [
        (0, 0, 1_000, True),
        (0, 0, 1_001, False),
        (990, 9, 10, True),
        (990, 9, 11, False),
        (0, 10, 1, False),
        (2_000, 0, 1, False),
    ],
)
def test_a_file_fits_if_neither_its_bytes_nor_its_image_are_too_many(
    size_bytes: int, images: int, more: int, fits: bool
) -> None:
    assert has_room(Quota(stored_bytes=1_000, images=10), Stored(size_bytes=size_bytes, images=images), more) is fits


def test_a_sum_is_near_its_quota_from_nine_tenths_of_either_on() -> None:
    quota = Quota(stored_bytes=1_000, images=10)
    assert not is_near(quota, Stored(size_bytes=900, images=9))
    assert is_near(quota, Stored(size_bytes=901)) and is_near(quota, Stored(images=10))


def test_a_sum_below_zero_counts_as_nothing() -> None:
    assert Stored(size_bytes=-5, images=2).shown == Stored(images=2)
    assert Stored(size_bytes=5, images=-2).shown == Stored(size_bytes=5)


def test_a_refusal_says_what_is_used_what_is_allowed_and_what_to_do() -> None:
    refusal = QuotaExceeded(Stored(size_bytes=999, images=4), Quota(stored_bytes=1_000, images=UNLIMITED))
    assert refusal.code == "quota_exceeded"
    assert refusal.message == (
        "This tenant stores 999 bytes of 1 KB and 4 images, and this one does not fit. Delete images that are no "
        "longer needed, which counts within a minute, or ask the operator for more."
    )
