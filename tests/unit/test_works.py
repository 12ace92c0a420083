"""Work beside a finished image: more variants and redos, of which none changes what the image is when they fail."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Any

import pytest

from darkroom.aws.images.images_table import from_item, to_item
from darkroom.domain.dead_letters.dead_letter import Verdict, verdict_of
from darkroom.domain.events.event import EventType
from darkroom.domain.images.image import DeadLetterState, Image, Status, WorkKind, message_for
from darkroom.domain.images.negotiated import negotiated_groups
from darkroom.domain.images.transitions import TransitionRefused, begin_work, delete
from darkroom.domain.images.works import MAX_IMAGE_VARIANTS, output_key, recipes_to_make, run_of_key, together
from darkroom.domain.kernel.errors import Rejected, Retryable, UnknownImage
from darkroom.domain.kernel.message import read_message
from darkroom.domain.kernel.stored import QuotaExceeded, Stored
from darkroom.domain.kernel.tenants import Quota, Tier
from darkroom.domain.kernel.visibility import PREFIXES, Visibility, visibility_of_key
from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.domain.webhooks.row_events import event_of, events_of
from darkroom.http.images.documents import retry_after_seconds, status_document
from darkroom.imaging import develop
from darkroom.operations.images.add_variants import NotDone
from darkroom.operations.images.delete_image import DeleteImagePorts, delete_image
from darkroom.operations.images.read_image import ReadImagePorts, UnknownVariant, VariantNotReady, variant_url
from darkroom_cli.operator.domain.dead_letters import why_not_replayable
from darkroom_cli.operator.domain.next_run import redo, replay
from darkroom_cli.operator.operations.images.redo_image import NotRedoable, RedoImagePorts, redo_image
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg, opened
from tests.support.fakes.rows import told_by
from tests.support.faults import meanwhile, raising
from tests.support.images import NOW, developed, pending
from tests.support.works import HERO, add, fail, names, work_off


def document(world: World, image_id: str) -> dict[str, Any]:
    return dict(status_document(world.row(image_id), world.outputs.url_of))


@pytest.fixture
def image_id(world: World) -> str:
    return developed(world)


def test_added_variants_join_those_that_are_served_meanwhile(world: World, image_id: str) -> None:
    before = document(world, image_id)
    world.advance(60)
    begun = add(world, image_id).image
    shown = document(world, image_id)
    kept = ("status", "variants", "completed_at", "placeholder", "progress", "error")
    assert {name: shown[name] for name in kept} == {name: before[name] for name in kept}
    assert (before["work"], shown["work"]["kind"], shown["work"]["status"], shown["work"]["variants"]) == (
        None,
        "variants",
        "pending",
        ["hero"],
    )
    assert retry_after_seconds(begun, world.now) == 1, "whoever waits for them asks again"
    after = work_off(world)
    assert names(after) == [*(variant["name"] for variant in before["variants"]), "hero"]
    assert after.variants[-1].key == f"outputs/{image_id}/2-{_hero().digest()[:8]}/hero.webp"
    shown = document(world, image_id)
    assert (shown["status"], shown["completed_at"]) == ("done", before["completed_at"])
    assert (shown["work"]["status"], shown["work"]["variants"], shown["work"]["error"]) == ("done", ["hero"], None)
    assert from_item(to_item(after)) == after


def test_a_variant_of_the_same_name_is_replaced_in_its_place(world: World, image_id: str) -> None:
    thumb = world.row(image_id).variants[0]
    add(world, image_id, '{"variants": [{"name": "thumb", "width": 16}]}')
    after = work_off(world)
    assert names(after)[0] == thumb.name
    assert (after.variants[0].width, run_of_key(after.variants[0].key)) == (16, 2)
    assert world.outputs.objects[thumb.key], "an address that was given out still works"


@pytest.mark.guards("works-failure-keeps-outcome", "works-failed-replayable", "works-after-owed-dead-letter")
def test_work_that_fails_is_reported_and_can_be_replayed(
    world: World, image_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = world.row(image_id)
    add(world, image_id)
    after = fail(world, monkeypatch)
    assert (after.status, after.variants, after.completed_at, after.error) == (
        Status.DONE,
        before.variants,
        before.completed_at,
        None,
    )
    shown = document(world, image_id)
    assert (shown["status"], shown["work"]["status"], shown["work"]["error"]["code"]) == ("done", "failed", "internal")
    assert (after.dead_letter, after.due_at is not None) == (DeadLetterState.OWED, True)
    assert verdict_of(message_for(after), after) is Verdict.FAILED
    with pytest.raises(NotDone):
        add(world, image_id)
    assert why_not_replayable(after) is None
    again = replay(after, now=world.now)
    assert recipes_to_make(again) == recipes_to_make(begin_work(before, WorkKind.VARIANTS, now=0, recipe=_hero()))
    world.images.rows[image_id] = again
    world.lanes.send(message_for(again))
    assert names(work_off(world))[-1] == "hero"


@pytest.mark.guards("works-failure-keeps-outcome")
def test_work_that_is_refused_has_no_dead_letter_and_is_not_replayed(
    world: World, image_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(world, image_id)
    refused = Rejected("overlay_missing", "It was deleted.")
    monkeypatch.setattr("darkroom.operations.images.transcode_image.developing", raising(refused))
    assert world.deliver(world.lanes.sent[-1]).reason == "failed"  # type: ignore[union-attr]
    after = world.row(image_id)
    assert (after.status, after.dead_letter, after.failed_work is not None) == (Status.DONE, None, True)
    assert verdict_of(message_for(after), after) is Verdict.SETTLED
    assert "It was refused (overlay_missing" in str(why_not_replayable(after))


@pytest.mark.guards("works-attention-of-added")
def test_the_point_of_the_first_crop_by_attention_is_told(world: World, image_id: str) -> None:
    square = '"width": 8, "height": 8, "fit": "cover", "gravity": "attention"'
    assert document(world, image_id)["attention"] is None
    add(world, image_id, f'{{"variants": [{{"name": "square", {square}}}]}}')
    work_off(world)
    told = document(world, image_id)["attention"]
    assert told is not None
    add(world, image_id)
    work_off(world)
    assert document(world, image_id)["attention"] == told


@pytest.mark.guards("works-made-beside-first-recipe", "works-other-edits-follow-nothing")
def test_added_variants_have_the_bytes_of_the_first_recipe_or_if_it_has_other_edits_of_their_own(world: World) -> None:
    photo, added = jpeg(640, 480, quality=50), VariantSpec(name="added", width=90)
    first = Recipe(variants=(VariantSpec(name="large", width=500), VariantSpec(name="between", width=130)))
    image_id = world.submit(photo, recipe=first.model_dump_json(exclude_defaults=True)).image.image_id
    world.deliver(world.lanes.sent[-1])
    for edits in ({}, {"rotate": 90}):
        recipe = Recipe(variants=(added,), **edits)
        add(world, image_id, recipe.model_dump_json(exclude_defaults=True))
        same = recipe if edits else Recipe(variants=(*first.variants, added))
        made = work_off(world).variants[-1]
        assert made.sha256 == sha256(develop(photo, same).variants[-1].body).hexdigest()


def test_a_redo_makes_all_variants_again_by_the_recipes_that_made_them(world: World, image_id: str) -> None:
    add(world, image_id, '{"variants": [{"name": "thumb", "width": 16}], "rotate": 90}')
    work_off(world)
    add(world, image_id)
    before = work_off(world)
    redo_image(world.ports(RedoImagePorts), image_id)
    after = work_off(world)
    assert names(after) == names(before)
    assert {run_of_key(variant.key) for variant in after.variants} == {4}
    by_name = {variant.name: variant for variant in after.variants}
    assert (by_name["thumb"].width, by_name["thumb"].height) == (16, 21), "it is turned, as it was"
    assert {variant.name: variant.sha256 for variant in before.variants} == {
        variant.name: variant.sha256 for variant in after.variants
    }


@pytest.mark.guards("works-one-at-a-time")
def test_one_work_at_a_time_is_under_way(world: World, image_id: str) -> None:
    add(world, image_id)
    with pytest.raises(NotDone) as refused:
        add(world, image_id)
    assert refused.value.image.work is not None
    work_off(world)
    assert not add(world, image_id).replayed


@pytest.mark.guards("redo-after-owed-dead-letter")
def test_no_other_work_begins_before_the_dead_letter_of_what_has_failed_is_placed(
    world: World, image_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(world, image_id)
    failed = fail(world, monkeypatch)
    with pytest.raises(NotDone):
        add(world, image_id)
    with pytest.raises(NotRedoable, match="its dead letter"):
        redo_image(world.ports(RedoImagePorts), image_id)
    assert world.row(image_id) == failed
    assert replay(failed, now=world.now).run == 3, "whoever replays it knows that it has failed"
    world.sweep()
    assert len(world.dead_letters.messages["slow"]) == 1
    assert add(world, image_id).image.run == 3


@pytest.mark.parametrize("row", [pending(), replace(pending(), status=Status.FAILED)])
def test_only_an_image_that_is_done_gets_more_variants(world: World, row: Image) -> None:
    world.images.rows[row.image_id] = row
    with pytest.raises(NotDone) as refused:
        add(world, row.image_id)
    assert refused.value.image.work is None
    assert world.row(row.image_id) == row


@pytest.mark.guards("works-beside-done-only")
def test_the_domain_refuses_work_beside_what_is_not_done() -> None:
    with pytest.raises(TransitionRefused):
        begin_work(replace(pending(), status=Status.FAILED), WorkKind.REDO, now=NOW)


@pytest.mark.guards("works-own-image-only")
def test_the_image_of_another_tenant_is_unknown(world: World, image_id: str) -> None:
    for stated in ({"tenant_id": "other"}, {"image_id": "0" * 26}, {"image_id": "../x"}):
        with pytest.raises(UnknownImage):
            add(world, **{"image_id": image_id, **stated})
    delete_image(world.ports(DeleteImagePorts), image_id, tenant_id="default")
    with pytest.raises(UnknownImage):
        add(world, image_id)


@pytest.mark.guards("works-repeat-resends-message", "works-key-reuse-refused")
def test_a_repeated_request_means_the_same_work(world: World, image_id: str) -> None:
    first = add(world, image_id, idempotency_key="k")
    sent = len(world.lanes.sent)
    again = add(world, image_id, idempotency_key="k")
    assert (again.replayed, again.image.run, len(world.lanes.sent)) == (True, first.image.run, sent + 1)
    with pytest.raises(Rejected) as refused:
        add(world, image_id, '{"variants": [{"name": "other", "width": 8}]}', idempotency_key="k")
    assert refused.value.code == "idempotency_key_reused"
    work_off(world)
    assert add(world, image_id, idempotency_key="k").replayed, "also when it has ended"
    assert world.row(image_id).run == 2


@pytest.mark.guards("works-live-lane")
@pytest.mark.parametrize(("tier", "lane"), [(Tier.PAID, "fast"), (Tier.FREE, "slow")])
def test_more_of_an_image_that_was_imported_is_made_in_its_tenants_lane(
    world: World, image_id: str, tier: Tier, lane: str
) -> None:
    world.images.rows[image_id] = replace(world.row(image_id), lane="bulk")
    assert add(world, image_id, tier=tier).image.lane == lane == world.lanes.sent[-1].lane
    assert work_off(world).lane == lane
    other = '{"variants": [{"name": "other", "width": 8}]}'
    assert add(world, image_id, other, tier=tier, lane="bulk").image.lane == "bulk", "its tenant was moved"


@pytest.mark.guards("works-version-fence")
def test_of_two_requests_at_once_one_is_accepted(world: World, image_id: str) -> None:
    meanwhile(world.images, "change", lambda *_, **__: add(world, image_id), times=1)
    with pytest.raises(NotDone):
        add(world, image_id, '{"variants": [{"name": "other", "width": 8}]}')
    assert names(work_off(world))[-1] == "hero"


def test_a_row_that_keeps_changing_is_answered_as_an_outage(world: World, image_id: str) -> None:
    change = world.images.change

    def touch(before: Image, _: Image, **__: Any) -> None:
        change(before, replace(before, rescues=before.rescues + 1), fence=("version",))

    meanwhile(world.images, "change", touch)
    with pytest.raises(Retryable):
        add(world, image_id)
    assert world.row(image_id).run == 1


def test_an_image_takes_no_more_variants_than_a_redo_makes_again(world: World, image_id: str) -> None:
    def some(first: int, **more: Any) -> str:
        variants = tuple(VariantSpec(name=f"v{number}", width=8, height=8) for number in range(first, first + 16))
        return Recipe(variants=variants, **more).model_dump_json(exclude_defaults=True)

    for first in (0, 16):
        add(world, image_id, some(first))
        work_off(world)
    with pytest.raises(Rejected) as refused:
        add(world, image_id, some(32))
    assert (refused.value.code, f"at most {MAX_IMAGE_VARIANTS}" in refused.value.message) == ("too_many_variants", True)
    add(world, image_id, some(0))
    assert len(work_off(world).variants) == 36, "but it replaces any"


@pytest.mark.guards("negotiated-whole-groups", "works-negotiated-counted", "works-replaced-by-own-name")
def test_a_negotiated_variant_is_three_of_one_folder(world: World, image_id: str) -> None:
    def asked(file_format: str, *names: str) -> str:
        return json.dumps({"variants": [{"name": name, "width": 8, "format": file_format} for name in names]})

    before = world.row(image_id)
    add(world, image_id, asked("negotiated", "card"))
    with pytest.raises(VariantNotReady):
        variant_url(world.ports(ReadImagePorts), image_id, "card.avif", tenant_id="default")
    after = work_off(world)
    *_, jpeg, webp, avif = after.variants
    assert [variant.name for variant in (jpeg, webp, avif)] == ["card", "card.webp", "card.avif"]
    (group,) = negotiated_groups(after.variants)
    assert (group.jpeg, group.webp, group.avif) == (jpeg, webp, avif)
    assert [variant.key for variant in (jpeg, webp, avif)] == [
        f"{group.key}.{kind}" for kind in ("jpg", "webp", "avif")
    ]
    assert (
        negotiated_groups([jpeg, avif]) == negotiated_groups([webp, avif]) == negotiated_groups(before.variants) == ()
    )
    variant_url(world.ports(ReadImagePorts), image_id, "card.avif", tenant_id="default")
    with pytest.raises(Rejected, match="55 variants"):
        add(world, image_id, asked("negotiated", *(f"v{number}" for number in range(16))))
    add(world, image_id, asked("png", "card"))
    assert [variant.name for variant in work_off(world).variants] == [*(v.name for v in before.variants), "card"]


def test_the_work_and_edits_of_all_recipes_are_bounded(world: World, image_id: str) -> None:
    with pytest.raises(Rejected, match="megapixels of work"):
        add(world, image_id, '{"variants": [{"name": "all", "width": 4096, "height": 4096, "format": "webp"}]}')
    for turn in (90, 180, 270):
        one = f'{{"variants": [{{"name": "t{turn}", "width": 8}}], "rotate": {turn}}}'
        add(world, image_id, one)
        work_off(world)
    with pytest.raises(Rejected, match="5 different edits"):
        add(world, image_id, '{"variants": [{"name": "flipped", "width": 8}], "flip": "both"}')


def test_what_is_stored_and_how_full_its_lane_is_count_as_for_uploads(world: World, image_id: str) -> None:
    world.sums.store["default"] = Stored(size_bytes=10, images=5)
    with pytest.raises(QuotaExceeded):
        add(world, image_id, quota=Quota(stored_bytes=9, images=100))
    assert not add(world, image_id, quota=Quota(stored_bytes=100, images=5)).replayed, "it is no further image"


@pytest.mark.guards("works-deleted-image-was-done", "erasure-tombstone-no-works")
def test_a_delete_ends_the_work_and_tells_that_the_image_was_done(world: World, image_id: str) -> None:
    add(world, image_id, idempotency_key="k")
    before = world.row(image_id)
    delete_image(world.ports(DeleteImagePorts), image_id, tenant_id="default")
    tombstone = world.row(image_id)
    event = event_of(before, tombstone)
    assert event is not None
    assert (event.type, tombstone.status) == (EventType.DELETED, Status.DONE)
    world.deliver(world.lanes.sent[-1])
    assert world.row(image_id) == tombstone
    assert "hero" not in str(told_by(tombstone))
    assert (tombstone.works[-1].key, tombstone.works[-1].recipe, tombstone.added) == (None, None, ())


@pytest.mark.guards("works-events-of-their-own", "works-event-names-own-variants")
def test_what_is_told_of_work(world: World, image_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    add(world, image_id)
    before = world.row(image_id)
    after = work_off(world)
    added = event_of(before, after)
    assert added is not None
    assert (added.type, added.data["run"], [made["name"] for made in added.data["variants"]]) == (
        EventType.VARIANTS_ADDED,
        2,
        ["hero"],
    )
    assert added.data["stored"] == {"bytes": after.variants[-1].size_bytes, "images": 0}
    *_, done, _ = events_of(after)
    assert "stored" not in done.data, "by how much is not known any more"
    add(world, image_id, '{"variants": [{"name": "other", "width": 8}]}')
    before = world.row(image_id)
    failed = event_of(before, fail(world, monkeypatch))
    assert failed is not None
    assert (failed.type, failed.data["work"], failed.data["error"]["code"]) == (
        EventType.WORK_FAILED,
        "variants",
        "internal",
    )
    told = list(events_of(world.row(image_id)))
    assert [event.type for event in told] == [
        EventType.ACCEPTED,
        EventType.DONE,
        EventType.VARIANTS_ADDED,
        EventType.WORK_FAILED,
    ]
    assert "hero" not in [made["name"] for made in told[1].data["variants"]], "each with what its run has made"
    world.sweep()  # its dead letter is placed
    redo_image(world.ports(RedoImagePorts), image_id)
    before = world.row(image_id)
    redone = event_of(before, work_off(world))
    assert redone is not None
    assert (redone.type, redone.data["run"], len(redone.data["variants"])) == (EventType.DONE, 4, 5)


@pytest.mark.guards("works-overlays-pinned")
def test_an_overlay_is_what_it_was_when_the_variant_was_asked_for(world: World, image_id: str) -> None:
    logo = developed(world)
    stamped = {"name": "stamped", "width": 32, "format": "png", "overlays": [{"image": logo, "scale": 0.5}]}
    add(world, image_id, json.dumps({"variants": [stamped]}))
    assert names(work_off(world))[-1] == "stamped"


@pytest.mark.guards("works-awaited-variant-not-ready")
def test_a_variant_that_is_being_added_is_not_ready_and_not_unknown(world: World, image_id: str) -> None:
    def fetch(name: str) -> str:
        return variant_url(world.ports(ReadImagePorts), image_id, name, tenant_id="default")

    with pytest.raises(UnknownVariant):
        fetch("hero")
    add(world, image_id)
    with pytest.raises(VariantNotReady):
        fetch("hero")
    assert "/1/thumb" in fetch("thumb")
    work_off(world)
    assert "/2-" in fetch("hero")


@pytest.mark.guards("works-unknown-to-earlier-version")
def test_a_version_without_such_work_leaves_its_messages(world: World, image_id: str) -> None:
    assert read_message(message_for(world.row(image_id)).model_dump_json()).beside is None
    add(world, image_id)
    message = message_for(world.row(image_id))
    assert (message.beside, "beside" in message.model_dump_json()) == (True, True)


@pytest.mark.guards("visibility-in-output-key")
def test_only_what_is_not_private_lies_where_the_edge_can_read_it() -> None:
    cases = ((), "outputs/"), ((Visibility.PUBLIC,), "public/"), ((Visibility.PUBLIC, Visibility.SIGNED), "signed/")
    for visibilities, prefix in cases:
        key = output_key(replace(pending(), visibilities=visibilities), "thumb", "jpg")
        assert key == f"{prefix}{pending().image_id}/1/thumb.jpg"
        assert (PREFIXES[visibility_of_key(key)], run_of_key(key)) == (prefix, 1)


@pytest.mark.guards("works-recipe-in-output-key")
def test_what_a_restore_has_undone_is_not_taken_for_what_is_asked_for_now(world: World, image_id: str) -> None:
    restored = world.row(image_id)
    add(world, image_id)
    work_off(world)
    world.images.rows[image_id] = restored
    add(world, image_id, '{"variants": [{"name": "hero", "width": 8, "format": "webp"}]}')
    made = work_off(world).variants[-1]
    assert (made.name, made.width, opened(world.outputs.objects[made.key]).width) == ("hero", 8, 8)


def test_nor_is_what_a_redo_has_made_of_it(world: World, image_id: str) -> None:
    def redone() -> Image:
        redo_image(world.ports(RedoImagePorts), image_id)
        return work_off(world)

    restored = world.row(image_id)
    add(world, image_id, '{"variants": [{"name": "thumb", "width": 16}]}')
    work_off(world)
    assert redone().variants[0].width == 16
    world.images.rows[image_id] = restored
    add(world, image_id)
    work_off(world)
    thumb = redone().variants[0]
    assert opened(world.outputs.objects[thumb.key]).width == thumb.width == restored.variants[0].width


@pytest.mark.guards("works-remembered-for-others-redone")
def test_what_was_remembered_of_a_run_that_was_undone_is_made_again(world: World, image_id: str) -> None:
    restored = world.row(image_id)
    add(world, image_id)
    remembered = {"variants": [asdict(work_off(world).variants[-1])], "notices": []}
    world.images.rows[image_id] = restored
    add(world, image_id, '{"variants": [{"name": "hero", "width": 8, "format": "webp"}]}')
    world.once = lambda key, work, is_first: remembered
    assert work_off(world).variants[-1].width == 8


def test_a_run_that_an_earlier_version_has_ended_is_the_images_own(world: World, image_id: str) -> None:
    add(world, image_id)
    before = world.row(image_id)
    ended = replace(before, status=Status.DONE, completed_at=NOW + 9, completed_version=before.version + 1)
    event = event_of(before, replace(ended, version=before.version + 1))
    assert event is not None
    assert (event.type, ended.outcome_run, ended.work) == (EventType.DONE, 2, None)
    assert [told.type for told in events_of(ended)] == [EventType.ACCEPTED, EventType.DONE]
    assert status_document(ended, world.outputs.url_of)["work"] is not None


def _hero() -> Recipe:
    return Recipe.model_validate_json(HERO)


def test_recipes_together_are_one_for_equal_edits_and_later_names_win() -> None:
    thumb, hero = VariantSpec(name="thumb", width=8), VariantSpec(name="hero", width=9)
    first = Recipe(variants=(thumb, hero))
    other = VariantSpec(name="thumb", width=10)
    assert together((first, Recipe(variants=(other,)))) == (Recipe(variants=(hero, other)),)
    turned = Recipe(variants=(other,), rotate=90)
    assert together((first, turned)) == (Recipe(variants=(hero,)), turned)
    assert together((Recipe(variants=(thumb,)), turned)) == (turned,)


def test_a_row_of_a_redo_by_an_earlier_version_is_read_as_it_is() -> None:
    legacy = replace(redo(replace(pending(), status=Status.DONE), now=NOW), works=())
    assert (legacy.work, legacy.outcome, legacy.outcome_run) == (None, Status.PENDING, 2)
    assert delete(legacy, now=NOW).status is Status.CANCELLED
