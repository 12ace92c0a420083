"""Edits of an image: the last one that is accepted is what its variants show, whatever else is under way."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import darkroom.operations.images.transcode_image as worker
from darkroom.aws.images.images_table import from_item, to_item
from darkroom.domain.edge.instructions import ENGINE, asked_for, recipe_for
from darkroom.domain.events.event import EventType
from darkroom.domain.images.image import DeadLetterState, DutyKind, Image, Status, WorkKind, duty_kind_of, message_for
from darkroom.domain.images.transitions import redevelop
from darkroom.domain.images.works import recipes_to_make, run_of_key
from darkroom.domain.kernel.errors import Rejected, Retryable, UnknownImage
from darkroom.domain.recipes.edits import Edits, edited
from darkroom.domain.recipes.presets import PRESETS
from darkroom.domain.recipes.recipes import Crop, FocalPoint, Recipe, VariantSpec
from darkroom.domain.webhooks.row_events import event_of
from darkroom.http.images.documents import status_document
from darkroom.http.images.edits import read_edits
from darkroom.operations.images.add_variants import NotDone
from darkroom.operations.images.edit_image import Edited, EditImagePorts, EditRequest, edit_image
from darkroom.operations.images.transcode_image import Finished, TryAgain
from darkroom_cli.operator.domain.next_run import replay
from darkroom_cli.operator.operations.images.redo_image import RedoImagePorts, redo_image
from darkroom_cli.restore.decisions import _with_its_work
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg
from tests.support.fakes.rows import told_by
from tests.support.faults import ProcessDied, meanwhile, raising
from tests.support.images import NOW, developed, pending
from tests.support.works import add, fail, names, work_off


def edit(world: World, image_id: str, edits: Edits | None = None, **request: Any) -> Edited:
    stated = {"tenant_id": "default", "correlation_id": "r", **request}
    asked = EditRequest(image_id=image_id, edits=edits or Edits(), **stated)
    return edit_image(world.ports(EditImagePorts), asked)


def turn(degrees: Any) -> Edits:
    return Edits(rotate=degrees)


def shown(world: World, image_id: str) -> Any:
    return status_document(world.row(image_id), world.outputs.url_of)["edit"]


def amid(monkeypatch: pytest.MonkeyPatch, happening: Any) -> None:
    """Something happens once while a worker develops."""
    developing, happened = vars(worker)["developing"], list[bool]()

    def interrupted(*arguments: Any, **options: Any) -> Any:
        if not happened:
            happened.append(True)
            happening()
        return developing(*arguments, **options)

    monkeypatch.setattr(worker, "developing", interrupted)


@pytest.fixture
def image_id(world: World) -> str:
    return developed(world)


def test_an_edit_makes_all_variants_anew_and_the_present_ones_are_served_meanwhile(world: World, image_id: str) -> None:
    before = world.row(image_id)
    accepted = edit(world, image_id, turn(90)).image
    assert (accepted.outcome, accepted.variants, world.lanes.delays[-1]) == (Status.DONE, before.variants, 2)
    document = status_document(accepted, world.outputs.url_of)
    assert document["edit"] == {"number": 1, "status": "accepted", "accepted_at": "2026-11-21T09:00:00.000Z"} | {
        "overtaken": []
    }
    assert document["work"] is not None
    assert (document["work"]["kind"], document["work"]["variants"]) == ("edit", names(before))
    after = work_off(world)
    sizes = [(variant.height, variant.width) for variant in after.variants]
    assert sizes == [(variant.width, variant.height) for variant in before.variants]
    assert ({run_of_key(variant.key) for variant in after.variants}, shown(world, image_id)["status"]) == ({2}, "done")
    assert from_item(to_item(after)) == after
    event = event_of(accepted, replace(after, version=accepted.version + 1))
    assert event is not None
    assert (event.type, [made["name"] for made in event.data["variants"]]) == (EventType.VARIANTS_ADDED, names(before))


@pytest.mark.guards("bulk-edit-unclaimed-one-replaced")
def test_an_edit_that_is_overtaken_in_time_is_skipped_and_said_to_be(world: World, image_id: str) -> None:
    for degrees in (90, 180, 270):
        edit(world, image_id, turn(degrees))
    assert (shown(world, image_id)["number"], shown(world, image_id)["overtaken"]) == (3, [1, 2])
    for message in world.lanes.sent[1:]:
        world.deliver(message)
    after = world.row(image_id)
    assert (after.edited, after.run) == (turn(270), 2), "one run makes it"
    assert (shown(world, image_id)["status"], shown(world, image_id)["overtaken"]) == ("done", [1, 2])


@pytest.mark.guards("bulk-edit-begun-once")
@pytest.mark.parametrize("work", ["first run", "an edit", "more variants", "a redo"])
def test_an_edit_waits_for_what_a_worker_has_begun_and_its_end_begins_it(
    world: World, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    image_id = world.submit(jpeg()).image.image_id if work == "first run" else developed(world)
    if work == "an edit":
        edit(world, image_id, turn(270))
    elif work == "more variants":
        add(world, image_id)
    elif work == "a redo":
        redo_image(world.ports(RedoImagePorts), image_id)
    sent = len(world.lanes.sent)

    def happening() -> None:
        edit(world, image_id, turn(90))
        edit(world, image_id, turn(180))
        assert len(world.lanes.sent) == sent

    amid(monkeypatch, happening)
    run, message = world.row(image_id).run, world.lanes.sent[-1]
    ended = world.deliver(message)
    assert isinstance(ended, Finished)
    row = world.row(image_id)
    assert (ended.reason, ended.returns_in_seconds, row.run, row.edit_waits) == ("done", 0, run + 1, False)
    assert len(world.lanes.sent) == sent, "the message comes back"
    world.deliver(message, "receipt-2", receive_count=2)
    after = world.row(image_id)
    assert (after.edited, shown(world, image_id)["status"]) == (turn(180), "done")
    assert {run_of_key(variant.key) for variant in after.variants} == {run + 1}
    if work == "more variants":
        assert "hero" in names(after)


@pytest.mark.guards(
    "bulk-edit-begun-by-sweeper",
    "bulk-edit-waiting-one-due",
    "bulk-edit-before-more-variants",
    "bulk-edit-message-of-other-lane",
)
@pytest.mark.parametrize("why", ["it dies", "last receive", "other lane"])
def test_what_no_worker_begins_the_sweeper_does(world: World, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    image_id = developed(world)
    edit(world, image_id, turn(90))
    amid(monkeypatch, lambda: edit(world, image_id, turn(180)))
    if why == "it dies":
        monkeypatch.setattr(worker, "begin_edit", raising(ProcessDied))
        with pytest.raises(ProcessDied):
            world.deliver(world.lanes.sent[-1])
    elif why == "other lane":
        row = world.row(image_id)
        world.images.rows[image_id] = replace(row, lane="bulk", works=(replace(row.works[-1], lane="slow"),))
        world.deliver(world.lanes.sent[-1].model_copy(update={"lane": "bulk"}))
    else:
        world.deliver(world.lanes.sent[-1], receive_count=5)
    row = world.row(image_id)
    assert (row.status, row.due_at, row.edit_waits) == (Status.DONE, world.now, True)
    assert (duty_kind_of(row), shown(world, image_id)["status"]) == (DutyKind.RESCUES, "accepted")
    with pytest.raises(NotDone):
        add(world, image_id)
    assert world.sweep().outcomes["rescued"] == 1
    assert (work_off(world).edited, world.row(image_id).due_at) == (turn(180), None)


@pytest.mark.guards("works-own-image-only")
def test_the_image_of_another_tenant_is_unknown(world: World, image_id: str) -> None:
    for stated, named in (("other", image_id), ("default", "0" * 26), ("default", "../x")):
        with pytest.raises(UnknownImage):
            edit(world, named, tenant_id=stated)


@pytest.mark.guards("bulk-edit-end-fence")
def test_an_edit_between_a_workers_read_and_its_last_write_is_not_lost(
    world: World, image_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(world, image_id, turn(90))
    change, came = world.images.change, list[Edited]()

    def just_before(before: Image, after: Image, **options: Any) -> Image:
        if after.status is Status.DONE and not came:
            came.append(edit(world, image_id, turn(180)))
        written: Image = change(before, after, **options)
        return written

    world.images.change = just_before
    monkeypatch.setattr(worker, "may_begin_edit", raising(ProcessDied))
    with pytest.raises(ProcessDied):
        world.deliver(world.lanes.sent[-1])
    assert (len(came), world.row(image_id).due_at) == (1, world.now)
    assert world.sweep().outcomes["rescued"] == 1
    assert world.row(image_id).works[-1].edits == turn(180)


@pytest.mark.guards("bulk-edit-version-fence")
def test_of_two_requests_at_once_the_later_write_is_the_last_edit(world: World, image_id: str) -> None:
    meanwhile(world.images, "change", lambda *_, **__: edit(world, image_id, turn(90)), times=1)
    edit(world, image_id, turn(180))
    assert (shown(world, image_id)["number"], shown(world, image_id)["overtaken"]) == (2, [1])
    assert work_off(world).edited == turn(180)
    change = world.images.change
    meanwhile(
        world.images,
        "change",
        lambda before, *_, **__: change(before, replace(before, rescues=before.rescues + 1), fence=("version",)),
    )
    with pytest.raises(Retryable):
        edit(world, image_id, turn(90))


@pytest.mark.guards("bulk-edit-after-dead-letter", "bulk-edit-replay-keeps-number")
def test_an_edit_that_fails_blocks_its_image_until_its_attempts_are_used_up(
    world: World, image_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = world.row(image_id)
    edit(world, image_id, turn(90))
    failed = fail(world, monkeypatch)
    assert (failed.variants, failed.edited, shown(world, image_id)["status"]) == (before.variants, None, "failed")
    again = replay(failed, now=world.now)
    assert (again.works[-1].edits, again.edit and again.edit.run) == (turn(90), 3)
    edit(world, image_id, turn(180))
    assert (world.row(image_id).status, shown(world, image_id)) == (
        Status.DONE,
        {**shown(world, image_id), "number": 2, "status": "accepted", "overtaken": []},
    )
    for _ in range(2):  # its one dead letter is placed, then the next edit begins
        world.sweep()
    assert (len(world.dead_letters.messages["slow"]), work_off(world).edited) == (1, turn(180))
    assert shown(world, image_id)["status"] == "done"


def test_an_edit_that_waits_for_an_image_that_fails_fails_with_it_and_follows_its_replay(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    image_id = world.submit(jpeg()).image.image_id
    edit(world, image_id, turn(90))
    failed = fail(world, monkeypatch)
    assert (failed.status, failed.dead_letter, shown(world, image_id)["status"]) == (
        Status.FAILED,
        DeadLetterState.OWED,
        "failed",
    )
    with pytest.raises(NotDone):
        edit(world, image_id, turn(180))
    world.images.rows[image_id] = again = replay(failed, now=world.now)
    message = message_for(again)
    world.deliver(message)
    world.deliver(message, "receipt-2", receive_count=2)
    assert world.row(image_id).edited == turn(90)


@pytest.mark.guards("bulk-edit-key-reuse-refused")
def test_a_repeated_request_means_the_same_edit_and_an_equal_one_another(world: World, image_id: str) -> None:
    for degrees, key in ((90, "a"), (180, "b"), (90, "c")):
        edit(world, image_id, turn(degrees), idempotency_key=key)
    sent = len(world.lanes.sent)
    late = edit(world, image_id, turn(180), idempotency_key="b")
    assert (late.replayed, late.image.edit_number, len(world.lanes.sent)) == (True, 3, sent + 1)
    assert work_off(world).edited == turn(90), "A, B, A ends with A, although B is asked for again"
    with pytest.raises(Rejected) as refused:
        edit(world, image_id, turn(270), idempotency_key="a")
    assert refused.value.code == "idempotency_key_reused"


@pytest.mark.guards("bulk-edit-of-added-too", "bulk-edit-held-by-other-work")
def test_added_variants_follow_the_edits_and_keep_their_names(world: World, image_id: str) -> None:
    first = '{"variants": [{"name": "hero", "width": 32}]}'
    add(world, image_id, first)
    flat = {variant.name: variant for variant in work_off(world).variants}
    edit(world, image_id, turn(90))
    by_name = {variant.name: variant for variant in work_off(world).variants}
    assert (by_name["hero"].width, by_name["hero"].height) == (32, round(32 * 32 / flat["hero"].height))
    add(world, image_id, '{"variants": [{"name": "later", "width": 32}]}')
    by_name = {variant.name: variant for variant in work_off(world).variants}
    assert (by_name["later"].width, by_name["later"].height) == (by_name["hero"].width, by_name["hero"].height)
    redo_image(world.ports(RedoImagePorts), image_id)
    assert {v.name: v.sha256 for v in work_off(world).variants} == {name: v.sha256 for name, v in by_name.items()}
    edit(world, image_id)
    after = {variant.name: variant for variant in work_off(world).variants}
    assert (after["hero"].sha256, after.keys()) == (flat["hero"].sha256, by_name.keys()), "as it was uploaded"


@pytest.mark.guards("bulk-edit-recipe-outlives-preset", "bulk-edit-few-variants")
def test_the_result_of_the_last_edit_does_not_depend_on_those_before(world: World, image_id: str) -> None:
    own = Recipe(variants=(VariantSpec(name="only", width=20),))
    before = names(world.row(image_id))
    edit(world, image_id, Edits(recipe=own, rotate=90))
    after = work_off(world)
    assert names(after) == ["only"]
    preset = PRESETS["standard"]
    again = redevelop(after, preset, version=2, backfill="bf", lane="bulk", now=NOW)
    assert [name for recipe in recipes_to_make(again) for name in recipe.made_names] == ["only"]
    for prefix in "ab":
        variants = tuple(VariantSpec(name=f"{prefix}{number}", width=8) for number in range(16))
        add(world, image_id, Recipe(variants=variants).model_dump_json(exclude_defaults=True))
        work_off(world)
    tripled = tuple(VariantSpec(name=f"c{number}", width=8, format="negotiated") for number in range(6))
    with pytest.raises(Rejected, match="50 variants"):
        edit(world, image_id, Edits(recipe=Recipe(variants=tripled)))
    edit(world, image_id, turn(180))
    assert set(before) <= set(names(work_off(world)))


@pytest.mark.guards("bulk-edit-row-bound")
def test_a_row_does_not_grow_with_the_overlays_and_edits_of_the_past(world: World, image_id: str) -> None:
    def stamped(logo: str) -> Recipe:
        spec = {"name": "stamped", "width": 32, "format": "png", "overlays": [{"image": logo, "scale": 0.5}]}
        return Recipe.model_validate({"variants": [spec]})

    first, *logos = [developed(world) for _ in range(4)]
    add(world, image_id, stamped(first).model_dump_json(exclude_defaults=True))
    work_off(world)
    for logo in logos:
        edit(world, image_id, Edits(recipe=stamped(logo)))
        work_off(world)
    assert set(world.row(image_id).overlays or {}) == {first, *logos[-2:]}
    for number in range(30):
        edit(world, image_id, turn(90 * (number % 4)))
    assert len(world.row(image_id).edit.earlier) == 20  # type: ignore[union-attr]


def test_an_edit_is_of_the_picture_and_a_crop_to_shape_keeps_the_focus() -> None:
    square = VariantSpec(name="square", width=8, height=8, fit="cover")
    recipe = Recipe(variants=(square, VariantSpec(name="whole", width=8)), rotate=90, flip="both")
    focus, crop = FocalPoint(x=0.1, y=0.2), Crop(x=0.0, y=0.0, width=0.5, height=1.0)
    after = edited(recipe, Edits(focus=focus, crop=crop, flip="none"))
    assert (after.crop, after.rotate, after.flip) == (crop, 90, None)
    assert [spec.gravity for spec in after.variants] == [focus, "centre"]
    assert edited(recipe, None) is recipe and edited(recipe, Edits()) == recipe


def test_what_is_made_on_request_is_of_the_image_as_it_was_uploaded(world: World, image_id: str) -> None:
    edit(world, image_id, turn(90))
    asked = asked_for(f"public/{image_id}/t{ENGINE}/w_320.webp")
    assert asked is not None
    made = recipe_for(asked, work_off(world), allowed={"w_320": "w_320"}, is_signed=False)
    assert made is not None and made.rotate == 0


@pytest.mark.guards("erasure-tombstone-no-edits")
@pytest.mark.parametrize("status", [Status.DONE, Status.PENDING])
def test_a_deleted_image_cannot_be_edited_and_says_nothing_of_edits(world: World, status: Status) -> None:
    image_id = developed(world) if status is Status.DONE else world.submit(jpeg()).image.image_id
    edit(world, image_id, turn(90), idempotency_key="k")
    edit(world, image_id, turn(180))
    world.delete(image_id)
    tombstone = world.row(image_id)
    assert (tombstone.edit, tombstone.edit_number, tombstone.edited) == (None, None, None)
    assert "rotate" not in str(told_by(tombstone)) and all(work.edits is None for work in tombstone.works)
    world.deliver(world.lanes.sent[-1])
    assert world.row(image_id) == tombstone
    with pytest.raises(UnknownImage):
        edit(world, image_id, turn(90))


@pytest.mark.guards("restore-edit-under-way")
def test_an_edit_under_way_waits_again_after_a_restore(world: World, image_id: str) -> None:
    edit(world, image_id, turn(90))
    restored = _with_its_work(world.row(image_id))
    assert (restored.status, restored.edit and restored.edit.edits, restored.work) == (Status.DONE, turn(90), None)


def test_what_an_edit_may_say() -> None:
    body = {"crop": {"x": 0, "y": 0.5, "width": 1, "height": 0.5}, "focus": {"x": 0, "y": 0}, "rotate": 90}
    edits = read_edits(json.dumps({**body, "flip": None, "recipe": {"variants": [{"name": "a", "width": 8}]}}).encode())
    assert (edits.crop, edits.rotate, edits.flip) == (Crop(x=0.0, y=0.5, width=1.0, height=0.5), 90, None)
    assert edits.recipe == Recipe(variants=(VariantSpec(name="a", width=8),))
    assert read_edits(b"{}") == Edits()
    for wrong, field in (({"rotate": 45}, "rotate"), ({"crop": {"x": 0}}, "crop.y"), ({"turn": 1}, "turn")):
        with pytest.raises(Rejected, match=field) as refused:
            read_edits(json.dumps(wrong).encode())
        assert refused.value.code == "invalid_edit"
    with pytest.raises(Rejected, match="variants"):
        read_edits(b'{"recipe": {}}')


def test_a_failed_attempt_keeps_the_edit_that_came_meanwhile(
    world: World, image_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(world, image_id, turn(90))
    amid(monkeypatch, lambda: (edit(world, image_id, turn(180)), 1 / 0))
    assert isinstance(world.deliver(world.lanes.sent[-1]), TryAgain)
    row = world.row(image_id)
    assert (row.status, row.edit_waits, row.works[-1].edits) == (Status.PENDING, True, turn(90))
    assert (row.works[-1].kind, pending().edit) == (WorkKind.EDIT, None)
