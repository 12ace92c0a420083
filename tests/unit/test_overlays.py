"""Overlays in orders: which images they may be, what is pinned, and what becomes of one that is gone."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from darkroom.domain.images.image import Image, Status
from darkroom.domain.images.transitions import delete
from darkroom.domain.kernel.errors import Rejected, Retryable
from darkroom.domain.recipes.presets import InvalidPreset, presets_from
from darkroom.domain.recipes.recipes import Recipe
from darkroom.domain.recipes.written_recipes import InvalidRecipe, recipe_from_json
from darkroom.operations.images.transcode_image import Finished, TryAgain
from darkroom.ports.images import OriginalMissing
from tests.support.fakes import World
from tests.support.fakes.pictures import encoded, opened, picture
from tests.support.faults import calls_of, failing

PHOTO = encoded(picture(40, 30), "PNG")
LOGO = encoded(picture(8, 8), "PNG")
UNKNOWN = "7" * 26


def recipe(*images: str, **overlay: Any) -> dict[str, Any]:
    overlays = [{"image": image, **overlay} for image in images]
    return {"variants": [{"name": "card", "width": 20, "format": "png", "overlays": overlays}]}


def done(world: World, body: bytes = LOGO, **upload: Any) -> Image:
    image = world.submit(body, **upload).image
    world.deliver(world.lanes.sent[-1])
    return world.row(image.image_id)


def submit(world: World, *images: str, **upload: Any) -> Image:
    return world.submit(PHOTO, recipe=json.dumps(recipe(*images)), **upload).image


@pytest.fixture
def logo(world: World) -> Image:
    return done(world)


def test_an_overlays_original_is_pinned_by_version_and_hash_however_the_photo_comes(world: World, logo: Image) -> None:
    assert submit(world, logo.image_id).overlays == {logo.image_id: logo.source}
    assert world.begin(PHOTO, recipe=recipe(logo.image_id)).image.overlays == {logo.image_id: logo.source}
    wanted = world.ask("https://example.com/photo", recipe=recipe(logo.image_id)).image
    assert wanted.overlays == {logo.image_id: logo.source}
    assert world.submit(PHOTO).image.overlays is None


def test_an_overlay_is_in_the_variant(world: World) -> None:
    logo = done(world, encoded(picture(8, 8).point(lambda _: 255), "PNG"))
    image = submit(world, logo.image_id)
    world.deliver(world.lanes.sent[-1])
    (variant,) = world.row(image.image_id).variants
    assert opened(world.outputs.objects[variant.key]).getpixel((18, 13)) == (255, 255, 255)


@pytest.mark.guards("overlays-deleted-image", "overlays-foreign-image")
@pytest.mark.guards("unreadable-overlay-other-tenant", case="submit-another tenant's, of a newer version")
@pytest.mark.parametrize("kind", ["unknown", "another tenant's", "another tenant's, of a newer version", "deleted"])
@pytest.mark.parametrize("producer", ["submit", "begin", "fetch"])
def test_what_is_no_image_of_the_tenant_is_unknown_whatever_it_is(world: World, kind: str, producer: str) -> None:
    image_id = UNKNOWN
    if kind != "unknown":
        logo = done(world, tenant_id="default" if kind == "deleted" else "rival")
        image_id = logo.image_id
        if kind == "deleted":
            world.images.change(logo, delete(logo, now=world.now))
        if "newer" in kind:
            world.images.unreadable[image_id] = world.images.rows.pop(image_id)
    rows, originals = len(world.images.rows), len(world.originals.objects)
    with pytest.raises(InvalidRecipe) as refusal:
        match producer:
            case "submit":
                submit(world, image_id)
            case "begin":
                world.begin(PHOTO, recipe=recipe(image_id))
            case "fetch":
                world.ask("https://example.com/photo", recipe=recipe(image_id))
    assert [str(problem) for problem in refusal.value.problems] == [
        "variants.0.overlays.0.image: no image of yours has this id"
    ]
    assert (len(world.images.rows), len(world.originals.objects)) == (rows, originals)


@pytest.mark.guards("overlays-done-images-only")
@pytest.mark.parametrize("status", [Status.PENDING, Status.FAILED, Status.AWAITING_UPLOAD])
def test_an_overlay_that_is_not_done_is_refused_and_its_owner_is_told_why(status: Status) -> None:
    world = World()
    logo = done(world)
    world.images.rows[logo.image_id] = replace(logo, status=status)
    with pytest.raises(InvalidRecipe, match=f"this image is {status}: only one that is done can be an overlay"):
        submit(world, logo.image_id)


def test_each_image_is_looked_up_once_and_only_those_that_are_wrong_are_named(logo: Image, world: World) -> None:
    read = calls_of(world.images, "get")
    with pytest.raises(InvalidRecipe) as refusal:
        submit(world, UNKNOWN, logo.image_id, UNKNOWN)
    assert [problem.field for problem in refusal.value.problems] == [
        f"variants.0.overlays.{place}.image" for place in (0, 2)
    ]
    assert read == [UNKNOWN, logo.image_id]


def test_a_repeated_request_keeps_the_pin_of_the_first_even_if_the_overlay_is_gone(world: World, logo: Image) -> None:
    first = submit(world, logo.image_id, idempotency_key="k")
    world.images.change(logo, delete(logo, now=world.now))
    again = submit(world, logo.image_id, idempotency_key="k")
    assert (again.image_id, again.overlays) == (first.image_id, {logo.image_id: logo.source})
    with pytest.raises(Rejected) as refusal:
        world.submit(PHOTO, recipe=json.dumps(recipe(logo.image_id, scale=0.5)), idempotency_key="k")
    assert refusal.value.code == "idempotency_key_reused"


@pytest.mark.guards("overlays-missing-rejected")
def test_an_image_whose_overlay_was_deleted_fails_at_once_without_a_dead_letter(world: World, logo: Image) -> None:
    image = submit(world, logo.image_id)
    world.originals.objects.pop(logo.image_id)
    outcome = world.deliver(world.lanes.sent[-1])
    assert isinstance(outcome, Finished) and outcome.cause is None
    row = world.row(image.image_id)
    assert (row.status, row.attempt, row.dead_letter) == (Status.FAILED, 1, None)
    assert row.error is not None and (row.error.code, row.error.retryable) == ("overlay_missing", False)
    assert logo.image_id in row.error.message


@pytest.mark.guards("objects-missing-second-look")
def test_an_overlay_that_is_not_found_once_is_shown(world: World, logo: Image) -> None:
    image = submit(world, logo.image_id)
    looks = count()
    missing = OriginalMissing("this look finds nothing")
    world.originals = failing(
        world.originals, "get", missing, lambda image_id, _: image_id == logo.image_id and next(looks) == 0
    )
    world.deliver(world.lanes.sent[-1])
    assert (world.row(image.image_id).status, next(looks) > 1) == (Status.DONE, True)


@pytest.mark.guards("objects-checksum-on-read")
def test_other_bytes_in_the_overlays_place_are_never_shown(world: World, logo: Image) -> None:
    image = submit(world, logo.image_id)
    world.originals.objects[logo.image_id] = PHOTO
    outcome = world.deliver(world.lanes.sent[-1])
    assert isinstance(outcome, TryAgain) and logo.image_id in str(outcome.cause)
    assert world.row(image.image_id).status is Status.PENDING


def test_a_store_that_does_not_answer_for_an_overlay_is_asked_again(world: World, logo: Image) -> None:
    image = submit(world, logo.image_id)
    silent = Retryable("fetching the original: timeout")
    world.originals = failing(world.originals, "get", silent, lambda image_id, _: image_id == logo.image_id)
    assert isinstance(world.deliver(world.lanes.sent[-1]), TryAgain)
    assert world.row(image.image_id).status is Status.PENDING


@pytest.mark.guards("overlays-cleared-by-tombstone")
def test_a_tombstone_says_nothing_about_overlays(world: World) -> None:
    image = submit(world, done(world).image_id)
    assert delete(image, now=world.now).overlays is None


@pytest.mark.guards("overlays-none-in-presets")
def test_a_preset_has_no_overlays() -> None:
    with pytest.raises(InvalidPreset, match=r"card\.variants: overlays are images of one tenant"):
        presets_from({"card": recipe(UNKNOWN)})


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"image": "../x"}, "image", "must be the id of an image"),
        ({"gravity": "up"}, "gravity", "must be 'centre', "),
        ({"margin": 0.6}, "margin", "must be at most 0.5"),
        ({"scale": 0.001}, "scale", "must be at least 0.01"),
        ({"opacity": 1.1}, "opacity", "must be at most 1"),
        ({"tile": 1}, "tile", "must be true or false"),
        ({"x": 1}, "x", "is not a known field. Known fields: image, gravity, margin, scale, opacity, tile"),
    ],
)
def test_a_wrong_field_of_an_overlay_is_named_in_plain_words(change: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(InvalidRecipe) as refusal:
        recipe_from_json(json.dumps(recipe(UNKNOWN, **change) if "image" not in change else recipe(change["image"])))
    (problem,) = refusal.value.problems
    assert problem.field == f"variants.0.overlays.0.{field}" and problem.message.startswith(message)


@pytest.mark.guards("overlays-per-recipe-bound")
def test_a_variant_has_at_most_four_overlays_and_a_recipe_at_most_four_different_images() -> None:
    with pytest.raises(InvalidRecipe, match="has 5; at most 4 are allowed"):
        recipe_from_json(json.dumps(recipe(*[UNKNOWN] * 5)))
    variants = [recipe(*["01234"[number] * 26])["variants"][0] | {"name": f"v{number}"} for number in range(5)]
    recipe_from_json(json.dumps({"variants": variants[:4]}))
    with pytest.raises(InvalidRecipe, match="variants: the overlays are 5 different images; at most 4 are allowed"):
        recipe_from_json(json.dumps({"variants": variants}))


@pytest.mark.guards("overlays-counted-as-work")
def test_an_overlay_counts_by_what_it_covers_and_each_image_once() -> None:
    def work(*overlays: dict[str, Any]) -> int:
        spec = {"name": "a", "width": 100, "height": 100, "format": "webp", "overlays": overlays}
        return Recipe.model_validate({"variants": [spec]}).work_pixels

    logo = {"image": UNKNOWN, "scale": 0.5}
    assert work() == 10_000
    assert work(logo) == 10_000 + 2_500 + 2_000_000
    assert work(logo, logo | {"tile": True}) == 10_000 + 2_500 + 5_000 + 2_000_000
    assert work(logo, logo | {"image": "0" * 26}) == 10_000 + 5_000 + 4_000_000


def test_overlays_are_part_of_what_a_recipe_asks_for() -> None:
    written = [recipe(), recipe(UNKNOWN), recipe(UNKNOWN, opacity=0.5)]
    assert len({Recipe.model_validate(recipe).digest() for recipe in written}) == 3
    plain = {"variants": [{"name": "card", "width": 20, "format": "png"}]}
    assert Recipe.model_validate(plain).digest() == Recipe.model_validate(written[0]).digest()
