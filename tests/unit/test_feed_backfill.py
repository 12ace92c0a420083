"""Backfills: they find the images of an earlier version of a preset, have each made again once, and give way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.bulk.backfills import (
    FED_SECONDS,
    LOOK_SECONDS,
    PAGE_IMAGES,
    BackfillCounts,
    BackfillState,
    end,
    most_in_work,
)
from darkroom.domain.images.image import DeadLetterState, Image, Status, WorkKind, message_for
from darkroom.domain.images.transitions import begin_work, delete
from darkroom.domain.images.works import recipes_to_make, together
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import BULK, FAST, LANES, USUAL_PHOTO_SECONDS
from darkroom.domain.pauses.pauses import Pause
from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.operations.bulk import feed_backfill as looks
from darkroom_cli.capacity.prices import cost
from repository.report import ROOT
from tests.support.fakes.backfills import NEWER, OF_STANDARD, BackfillsWorld
from tests.support.fakes.batches import BODY


@pytest.fixture
def world() -> BackfillsWorld:
    return BackfillsWorld()


@pytest.mark.guards("works-lane-returned")
def test_images_of_an_earlier_version_are_made_again_in_the_lane_of_bulk_work_and_return_to_their_own(
    world: BackfillsWorld,
) -> None:
    images = world.done(3)
    world.start()
    assert world.feed() == "later" and world.backfill.in_work == 3
    assert {world.row(image.image_id).outcome for image in images} == {Status.DONE}
    assert world.work() == ["bulk"] * 3
    assert world.feed() == "ended" and world.feed() == "gone"
    assert world.backfill.state is BackfillState.COMPLETED and world.backfill.counts == BackfillCounts(done=3)
    for before in images:
        row = world.row(before.image_id)
        assert (row.status, row.lane, row.recipe, row.preset_version) == (Status.DONE, before.lane, NEWER, 2)
        assert row.completed_version == before.completed_version and not world.backfills.kept


def of_another_preset(world: BackfillsWorld) -> Image:
    return world.done(preset="avatar")[0]


def of_the_present_version(world: BackfillsWorld) -> Image:
    (image,) = world.done()
    row: Image = world.images.change(image, replace(image, preset_version=2))
    return row


def deleted(world: BackfillsWorld) -> Image:
    (image,) = world.done()
    row: Image = world.images.change(image, delete(image, now=world.now))
    return row


def failed(world: BackfillsWorld) -> Image:
    image = world.submit(BODY).image
    world.work(fails=True)
    return world.row(image.image_id)


@pytest.mark.parametrize("make", [of_another_preset, of_the_present_version, deleted, failed])
@pytest.mark.guards("bulk-backfill-older-only", case="of_the_present_version")
def test_other_images_are_left_alone(world: BackfillsWorld, make: Callable[[BackfillsWorld], Image]) -> None:
    image = make(world)
    world.start()
    assert world.finish() == BackfillCounts() and world.row(image.image_id) == image


def test_a_selection_is_by_time_tag_and_tenant(world: BackfillsWorld) -> None:
    (image,) = (replace(each, tags=("summer",)) for each in world.done())
    at = image.created_at
    for given, is_covered in (
        ({"since": at, "until": at + 1, "tag": "summer", "tenant_id": "default"}, True),
        ({"since": at + 1}, False),
        ({"until": at}, False),
        ({"tag": "winter"}, False),
        ({"tenant_id": "acme"}, False),
    ):
        assert replace(OF_STANDARD, **given).covers(image) is is_covered, given


@pytest.mark.guards("bulk-backfill-busy-waits")
def test_an_image_with_other_work_waits_and_one_that_goes_meanwhile_is_skipped(world: BackfillsWorld) -> None:
    busy, owing, gone = world.done(3)
    redone = world.images.change(busy, begin_work(busy, WorkKind.REDO, now=world.now))
    owing = world.images.change(owing, replace(owing, dead_letter=DeadLetterState.OWED))
    world.start()
    world.feed()
    world.images.change(world.row(gone.image_id), delete(world.row(gone.image_id), now=world.now))
    assert [len(world.row(image.image_id).works) for image in (redone, owing)] == [1, 0]
    world.develop(message_for(world.row(busy.image_id)))
    world.images.change(world.row(owing.image_id), replace(world.row(owing.image_id), dead_letter=None))
    assert world.finish() == BackfillCounts(done=2, skipped=1)


@pytest.mark.guards("works-added-stay")
def test_what_was_added_stays_under_its_name_and_what_only_the_earlier_version_had_goes(world: BackfillsWorld) -> None:
    (image,) = world.done()
    own = Recipe(variants=(VariantSpec(name="thumb", width=9, height=9),))
    image = world.images.change(image, replace(image, added=(own,)))
    world.presets = {"standard": (Recipe(variants=(*NEWER.variants, VariantSpec(name="wide", width=900))), 2)}
    world.start()
    world.feed()
    (made,) = recipes_to_make(world.row(image.image_id))
    assert list(made.made_names) == ["wide"]
    assert world.finish().done == 1
    row = world.row(image.image_id)
    assert row.recipe is not None
    assert {spec.width for recipe in together((row.recipe, *row.added)) for spec in recipe.variants} == {9, 900}


def test_of_a_choice_only_what_was_chosen_is_made(world: BackfillsWorld) -> None:
    chosen, nothing_left = world.done(variants="thumb")[0], world.done(variants="webp")[0]
    world.presets = {"standard": (Recipe(variants=(*NEWER.variants, VariantSpec(name="wide", width=900))), 2)}
    world.start()
    assert world.finish() == BackfillCounts(done=1, skipped=1)
    assert world.row(chosen.image_id).recipe == NEWER and world.row(nothing_left.image_id) == nothing_left


def test_a_failure_leaves_the_image_as_it_is_and_is_counted(world: BackfillsWorld) -> None:
    (image,) = world.done()
    world.start()
    world.feed()
    world.work(fails=True)
    assert world.feed() == "ended" and world.backfill.counts == BackfillCounts(failed=1)
    row = world.row(image.image_id)
    assert (row.status, row.recipe, row.preset_version, row.lane) == (Status.DONE, image.recipe, None, image.lane)
    assert row.failed_work is not None and row.failed_work.backfill == "bf_1"


@pytest.mark.guards("bulk-backfill-unreadable-counted")
def test_a_row_that_cannot_be_read_is_counted_and_stops_nothing(world: BackfillsWorld) -> None:
    broken, _ = world.done(2)
    world.start()
    world.feed()
    del world.images.rows[broken.image_id]
    world.images.unreadable[broken.image_id] = broken
    world.lanes.sent = [message for message in world.lanes.sent if message.image_id != broken.image_id]
    assert world.finish() == BackfillCounts(done=1, unreadable=1)


def paused(world: BackfillsWorld) -> None:
    world.decide(BackfillState.PAUSED)


def lane_paused(world: BackfillsWorld) -> None:
    world.pauses.pause(Pause(kind="lane", name="bulk", since=world.now))


def not_deployed(world: BackfillsWorld) -> None:
    world.presets = world.presets | {"standard": (NEWER, 1)}


def live_traffic(world: BackfillsWorld) -> None:
    image = world.submit(BODY).image
    world.images.rows[image.image_id] = replace(
        world.row(image.image_id), lane="fast", waiting_since=world.now - FAST.sla_seconds * 500 - 1000
    )


@pytest.mark.parametrize(
    ("hinder", "words"),
    [
        (paused, "paused"),
        (lane_paused, "the lane bulk"),
        (not_deployed, "standard@2"),
        (live_traffic, "the lane fast, whose oldest image waits for 16 seconds"),
    ],
    ids=["paused", "lane_paused", "not_deployed", "live_traffic"],
)
@pytest.mark.guards("bulk-backfill-paused-begins-nothing", case="paused")
@pytest.mark.guards("bulk-backfill-paused-lane", case="lane_paused")
@pytest.mark.guards("bulk-backfill-deployed-version", case="not_deployed")
@pytest.mark.guards("bulk-backfill-after-live-traffic", case="live_traffic")
def test_nothing_is_begun_while_something_is_in_the_way_and_the_row_says_what(
    world: BackfillsWorld, hinder: Callable[[BackfillsWorld], None], words: str
) -> None:
    (image,) = world.done()
    world.start()
    hinder(world)
    assert world.feed() == "later" and world.row(image.image_id).works == ()
    assert words in (world.backfill.waits_for or "") and world.backfill.due_at == world.now + LOOK_SECONDS * 1000


@pytest.mark.guards("bulk-backfill-rate")
def test_its_rate_is_kept_and_what_a_look_missed_is_caught_up(world: BackfillsWorld) -> None:
    world.done(8 * PAGE_IMAGES)
    world.start(rate=1)
    found = []
    for _ in range(3):
        world.feed()
        found.append(world.backfill.found)
        world.work()
        world.now += 200_000
    assert FED_SECONDS == 300 and found == [400, 600, 800]


@pytest.mark.guards("bulk-backfill-bound-in-work")
def test_no_more_is_begun_than_the_lane_does_until_the_next_look(
    world: BackfillsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert most_in_work(BULK) == FED_SECONDS * 16
    monkeypatch.setattr(looks, "most_in_work", lambda _: PAGE_IMAGES)
    world.done(2 * PAGE_IMAGES)
    world.start()
    world.feed()
    assert (world.backfill.in_work, world.backfill.waits_for) == (PAGE_IMAGES, "its images in work")
    assert world.finish() == BackfillCounts(done=2 * PAGE_IMAGES)


@pytest.mark.guards("bulk-backfills-in-turns")
def test_a_look_rests_after_its_share(world: BackfillsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.done()
    world.start()
    monkeypatch.setattr(looks, "SHARE_SECONDS", 0)
    assert world.feed() == "goes_on" and world.backfill.due_at == world.now


@pytest.mark.guards("bulk-backfill-cancelled-begins-nothing", "bulk-backfill-final-stays")
def test_a_cancelled_one_ends_when_what_was_begun_has_ended(world: BackfillsWorld) -> None:
    ahead, _ = world.done(2)
    world.images.change(ahead, begin_work(ahead, WorkKind.REDO, now=world.now))
    world.start()
    world.feed()
    world.decide(BackfillState.CANCELLED)
    world.decide(BackfillState.RUNNING)
    assert world.backfill.state is BackfillState.CANCELLED
    assert world.feed() == "later"
    world.work()
    assert world.feed() == "ended" and world.backfill.counts == BackfillCounts(done=1, skipped=1)


@pytest.mark.guards("bulk-backfill-end-all-settled")
def test_none_ends_with_images_in_work(world: BackfillsWorld) -> None:
    world.done()
    world.start()
    world.feed()
    with pytest.raises(ValueError, match="1 images in work"):
        end(world.backfill, now=world.now)


@pytest.mark.guards("bulk-backfill-unsent-due")
def test_the_row_of_a_message_that_cannot_be_sent_is_due_at_once(world: BackfillsWorld) -> None:
    (image,) = world.done()
    world.start()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(world.lanes, "send_all", lambda lane, messages: {0: Retryable("throttled")})
        world.feed()
    row = world.row(image.image_id)
    assert (row.lane, row.due_at, row.enqueued_at) == ("bulk", world.now, None)
    world.sweep()
    assert world.finish() == BackfillCounts(done=1)


ROW_KILOBYTES, BEGUN_MILLISECONDS, READ_MILLISECONDS = 2, 8, 30
"""Of a row with four variants; of its write on AWS; and of a read of a hundred rows."""


@pytest.mark.guards("bulk-backfill-compared-seldom")
def test_a_million_images_cost_less_than_a_dollar_besides_what_their_rows_events_and_workers_do() -> None:
    """Counted of some thousands at the pace of one worker: what is read again follows from how long images are in
    work, whatever the pace."""
    world, used, images = BackfillsWorld(), Counter[str](), 3_000
    world.service = {**LANES, BULK.name: replace(BULK, concurrency=1)}
    world.done(images)
    world.start()
    by_minute = int(60 / USUAL_PHOTO_SECONDS)

    def counted(store: Any, method: str, price: Callable[..., Mapping[str, float]], milliseconds: int) -> None:
        call = getattr(store, method)

        def run(*given: Any, **named: Any) -> Any:
            world.now += milliseconds
            used.update(price(*given))
            return call(*given, **named)

        setattr(store, method, run)

    units, writes, requests = "DynamoDB read units", "DynamoDB write units", "SQS requests"
    counted(world.images, "get_all", lambda ids: {units: len(ids)}, READ_MILLISECONDS)
    counted(world.images, "oldest_waiting", lambda *_: {units: 0.5}, 5)
    counted(world.images, "change", lambda *_: {}, BEGUN_MILLISECONDS)
    counted(world.lanes, "send_all", lambda *_: {requests: 1}, 10)
    counted(world.scan, "select", lambda *_: {units: PAGE_IMAGES * ROW_KILOBYTES / 4 / 2}, READ_MILLISECONDS)
    for method, units_written in (("change", 2), ("put_page", 2 * (4 + 2)), ("settle_page", 2 * (4 + 2))):
        counted(world.backfills, method, lambda *_, written=units_written: {writes: written}, 10)
    counted(world.backfills, "pages", lambda *_: {units: 4}, 10)

    for _ in range(images // by_minute * 2):
        began = world.now
        while (outcome := world.feed()) == "goes_on":
            pass
        used["Lambda GB-milliseconds"] += (world.now - began) // 2
        minutes = max(1.0, LOOK_SECONDS / 60)
        for message in world.lanes.sent[: int(minutes * by_minute)]:
            world.develop(message)
        del world.lanes.sent[: int(minutes * by_minute)]
        world.now = max(world.now, began + int(minutes * 60_000))
        if outcome == "ended":
            break
    assert world.backfill.counts == BackfillCounts(done=images)
    dollars = cost(used) * 1_000_000 / images
    assert dollars < 1, f"${dollars:.2f}: {used}"
    told = re.search(r"about \$([\d.]+) for a million images", (ROOT / "docs" / "bulk.md").read_text())
    assert told is not None and float(told[1]) == pytest.approx(dollars, abs=0.02), dollars
