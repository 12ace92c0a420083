"""Accepting an upload: what is promised, what is refused, and what a retry finds."""

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.image import Status
from darkroom.domain.images.limits import MAX_BODY_BYTES, STANDARD_INPUT_FORMATS, Limits
from darkroom.domain.kernel.errors import Rejected, Retryable
from darkroom.domain.kernel.ids import is_image_id
from darkroom.domain.recipes.presets import PRESETS, VERSIONS
from darkroom.domain.recipes.recipes import Recipe
from tests.failures import ANY_FAILURE
from tests.support.fakes import World
from tests.support.fakes.pictures import encoded, jpeg, picture
from tests.support.faults import raising

PHOTO = jpeg()
RECIPE = '{"variants": [{"name": "card", "width": 600, "height": 400, "fit": "cover"}]}'


def test_an_accepted_upload_has_its_original_its_row_and_its_message(world: World) -> None:
    image = world.submit(PHOTO).image
    assert is_image_id(image.image_id)
    assert world.originals.objects[image.image_id] == PHOTO
    row = world.row(image.image_id)
    assert (row.status, row.tenant_id, row.lane, row.correlation_id) == (Status.PENDING, "default", "slow", "request-1")
    assert (row.source.version_id, row.source.size_bytes, row.source.media_type) == ("v1", len(PHOTO), "image/jpeg")
    assert row.source.sha256 == hashlib.sha256(PHOTO).hexdigest()
    (message,) = world.lanes.sent
    assert (message.image_id, message.tenant_id, message.lane) == (image.image_id, "default", "slow")


@pytest.mark.parametrize(
    ("upload", "code"),
    [
        ({"body": b""}, "empty_upload"),
        ({"body": b"hello"}, "unsupported_format"),
        ({"body": PHOTO, "preset": "no-such"}, "unknown_preset"),
        ({"body": PHOTO, "preset": ""}, "unknown_preset"),
        ({"body": PHOTO, "variants": "thumb,no-such"}, "unknown_variants"),
        ({"body": PHOTO, "variants": ""}, "unknown_variants"),
        ({"body": PHOTO, "recipe": ""}, "invalid_recipe"),
        ({"body": PHOTO, "recipe": RECIPE, "preset": "standard"}, "conflicting_parameters"),
        ({"body": PHOTO, "recipe": RECIPE, "variants": "thumb"}, "conflicting_parameters"),
        ({"body": PHOTO, "idempotency_key": ""}, "invalid_idempotency_key"),
        ({"body": PHOTO, "idempotency_key": "é"}, "invalid_idempotency_key"),
        ({"body": PHOTO + bytes(MAX_BODY_BYTES)}, "upload_too_large"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_upload_is_refused_and_leaves_nothing(world: World, upload: dict[str, Any], code: str) -> None:
    with pytest.raises(Rejected) as refusal:
        world.submit(**upload)
    assert refusal.value.code == code
    assert (world.originals.objects, world.images.rows, world.lanes.sent) == ({}, {}, [])


def test_some_variants_of_a_preset_are_asked_for_by_name() -> None:
    image = World().submit(PHOTO, variants="webp, thumb,webp").image
    assert image.recipe is not None
    assert (image.preset, [spec.name for spec in image.recipe.variants]) == ("standard", ["thumb", "webp"])


def test_a_row_says_the_version_of_its_preset_unless_it_is_the_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = world.submit(PHOTO).image
    monkeypatch.setitem(VERSIONS, "standard", 2)
    second, chosen, own = (
        world.submit(PHOTO, **asked).image for asked in ({}, {"variants": "thumb"}, {"recipe": RECIPE})
    )
    assert [image.preset_version for image in (first, second, chosen, own)] == [None, 2, 2, None]
    assert [image.chooses for image in (first, second, chosen, own)] == [False, False, True, False]


def test_a_recipe_of_the_clients_own_is_in_the_row_without_a_preset() -> None:
    image = World().submit(PHOTO, recipe=RECIPE).image
    assert image.recipe is not None
    assert (image.preset, [spec.name for spec in image.recipe.variants]) == (None, ["card"])


def test_formats_beside_the_standard_ones_are_accepted_by_setting_alone() -> None:
    photo = encoded(picture(), "AVIF")
    with pytest.raises(Rejected, match=r"are an AVIF image, .* Send a JPEG, PNG, WebP or GIF image") as refusal:
        World().submit(photo)
    assert refusal.value.code == "unsupported_format"
    world = World(limits=Limits(input_formats=STANDARD_INPUT_FORMATS | {"avif"}))
    assert world.submit(photo).image.source.media_type == "image/avif"
    with pytest.raises(Rejected, match="Send a JPEG, PNG, WebP, GIF or AVIF image"):
        world.submit(b"\0\0\0\x14ftypheic\0\0\0\0mif1")


def test_an_upload_of_exactly_the_limit_is_accepted(world: World) -> None:
    world.submit(PHOTO + bytes(MAX_BODY_BYTES - len(PHOTO)))
    assert len(world.lanes.sent) == 1


def test_the_same_key_and_photo_are_one_image(world: World) -> None:
    first = world.submit(PHOTO, idempotency_key="k")
    second = world.submit(PHOTO, idempotency_key="k")
    assert (first.replayed, second.replayed) == (False, True)
    assert first.image.image_id == second.image.image_id


@pytest.mark.guards("accept-repeat-resends-message")
def test_a_repeated_request_sends_the_message_that_the_first_one_may_have_lost(world: World) -> None:
    image = world.submit(PHOTO, idempotency_key="k").image
    world.lanes.sent.clear()  # as if the first request had ended right after its row
    assert world.submit(PHOTO, idempotency_key="k").replayed
    assert [message.image_id for message in world.lanes.sent] == [image.image_id]


@pytest.mark.guards("accept-no-message-once-claimed")
@pytest.mark.parametrize(
    "taken_up",
    [{"status": Status.PROCESSING, "attempt": 1}, {"attempt": 1}, {"status": Status.DONE, "attempt": 1}],
    ids=["in work", "in work once", "done"],
)
def test_a_repeated_request_sends_no_message_for_an_image_that_a_worker_has_taken_up(taken_up: dict[str, Any]) -> None:
    world = World()
    image = world.submit(PHOTO, idempotency_key="k").image
    world.images.rows[image.image_id] = replace(image, **taken_up)
    world.lanes.sent.clear()
    assert world.submit(PHOTO, idempotency_key="k").replayed
    assert world.lanes.sent == []


@ANY_FAILURE
def test_a_repeated_request_while_the_queue_cannot_answer_leaves_the_image_due(failure: Exception) -> None:
    world = World()
    image = world.submit(PHOTO, idempotency_key="k").image
    world.lanes.send = raising(failure)
    assert world.submit(PHOTO, idempotency_key="k").replayed
    assert world.row(image.image_id).due_at == world.now


@pytest.mark.guards("accept-key-reuse-refused")
def test_the_same_key_with_another_photo_is_refused(world: World) -> None:
    world.submit(PHOTO, idempotency_key="k")
    with pytest.raises(Rejected) as refusal:
        world.submit(jpeg(65, 48), idempotency_key="k")
    assert refusal.value.code == "idempotency_key_reused"


def test_the_same_key_with_another_preset_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRESETS, "other", PRESETS["standard"])
    world = World()
    world.submit(PHOTO, idempotency_key="k")
    with pytest.raises(Rejected) as refusal:
        world.submit(PHOTO, idempotency_key="k", preset="other")
    assert refusal.value.code == "idempotency_key_reused"


def test_naming_the_default_preset_is_the_same_request_as_naming_none(world: World) -> None:
    world.submit(PHOTO, idempotency_key="k")
    assert world.submit(PHOTO, idempotency_key="k", preset="standard").replayed


@pytest.mark.parametrize(
    ("options", "same", "other"),
    [
        ({"variants": "thumb,webp"}, {"variants": "webp,thumb,webp", "preset": "standard"}, {"variants": "thumb"}),
        ({"variants": "thumb,medium,large,webp"}, {"variants": "webp,large,medium,thumb"}, {}),
        (
            {"recipe": '{"variants": [{"name": "a", "width": 9}]}'},
            {"recipe": '{ "variants": [{"width": 9, "name": "a", "fit": "inside"}]}'},
            {"recipe": '{"variants": [{"name": "a", "width": 8}]}'},
        ),
        (
            {"recipe": '{"variants": [{"name": "a", "width": 9}]}'},
            {"recipe": '{"variants":[{"name":"a","width":9}]}'},
            {},
        ),
    ],
)
def test_the_same_key_means_the_same_variants_and_the_same_recipe(
    world: World, options: dict[str, str], same: dict[str, str], other: dict[str, str]
) -> None:
    world.submit(PHOTO, idempotency_key="k", **options)
    assert world.submit(PHOTO, idempotency_key="k", **same).replayed
    with pytest.raises(Rejected) as refusal:
        world.submit(PHOTO, idempotency_key="k", **other)
    assert refusal.value.code == "idempotency_key_reused"


def test_a_fingerprint_does_not_change_from_one_version_to_the_next() -> None:
    # Another one would answer 422 to clients that repeat a request an earlier version accepted.
    fingerprint = World().submit(PHOTO).image.fingerprint
    sha256 = hashlib.sha256(PHOTO).hexdigest()
    assert fingerprint == hashlib.sha256(f"v1\0{sha256}\0preset:standard".encode()).hexdigest()


def test_an_edited_preset_does_not_turn_a_retry_into_a_conflict(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.submit(PHOTO, idempotency_key="k")
    monkeypatch.setitem(PRESETS, "standard", Recipe(variants=PRESETS["standard"].variants[:1]))
    assert world.submit(PHOTO, idempotency_key="k").replayed


def test_one_key_of_two_tenants_are_two_images(world: World) -> None:
    first = world.submit(PHOTO, idempotency_key="k", tenant_id="one").image
    assert not world.submit(PHOTO, idempotency_key="k", tenant_id="other").replayed
    assert world.row(first.image_id).tenant_id == "one"


def test_a_retry_after_a_crash_between_original_and_row_goes_on(world: World) -> None:
    image_id = world.submit(PHOTO, idempotency_key="k").image.image_id
    del world.images.rows[image_id]
    again = world.submit(PHOTO, idempotency_key="k")
    assert not again.replayed
    assert world.row(image_id).status is Status.PENDING


def test_another_photo_after_a_crash_between_original_and_row_is_refused(world: World) -> None:
    image_id = world.submit(PHOTO, idempotency_key="k").image.image_id
    del world.images.rows[image_id]
    with pytest.raises(Rejected) as refusal:
        world.submit(jpeg(65, 48), idempotency_key="k")
    assert refusal.value.code == "idempotency_key_reused"
    assert world.originals.objects[image_id] == PHOTO


@pytest.mark.guards("bookkeeping-unsent-to-sweeper")
@pytest.mark.guards("bookkeeping-failure-contained", case="denied")
@ANY_FAILURE
def test_an_upload_gets_its_202_although_a_queue_does_not_answer(world: World, failure: Exception) -> None:
    world.lanes.send = raising(failure)
    image = world.submit(PHOTO).image
    assert world.row(image.image_id).due_at == world.now, "the sweeper sends it at once"


def test_a_table_that_does_not_answer_is_a_503_and_promises_nothing(world: World) -> None:
    world.images.create = raising(Retryable("writing the image row: timeout"))
    with pytest.raises(Retryable):
        world.submit(PHOTO)
    assert world.lanes.sent == []
