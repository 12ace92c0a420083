"""Work beside an image that is `done`: how it begins, what it makes, and how it ends. The image keeps its outcome."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from darkroom.domain.images.image import Image, RunEnd, Status, Work, WorkKind
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.visibility import Visibility, folder_of, moved_key, with_present
from darkroom.domain.recipes.edits import edited
from darkroom.domain.recipes.recipes import MAX_WORK_PIXELS, Recipe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from darkroom.domain.images.image import Source, Variant
    from darkroom.domain.recipes.edits import Edits
    from darkroom.domain.recipes.recipes import VariantSpec

REMEMBERED_ENDS = 20
"""How many earlier runs, and works, a row describes: their events can be published again, and the request of a work is
answered as a repetition."""

MAX_IMAGE_VARIANTS = 48
"""The most variants of an image, three times a recipe's: its events stay under 50 KB, its row under a tenth of
DynamoDB's 400 KB."""

MAX_IMAGE_RECIPES = 4
"""The most recipes whose edits differ that an image's variants come from: a redo decodes the picture for each."""


def output_key(image: Image, name: str, extension: str) -> str:
    """Where a variant that the image's present run makes is stored: no other run writes there, and none of the same
    number that was for other variants, in a time that a restore has undone."""
    return f"{_folder(image)}{own_name(name)}.{extension}"


def own_name(name: str) -> str:
    """The name in the recipe of the variant that is stored as `name`."""
    return name.partition(".")[0]


def overlays_in_use(image: Image, edits: Edits, pinned: dict[str, Source] | None) -> dict[str, Source] | None:
    """The pinned originals of overlays that the image still needs with its next edits, whose own ones are `pinned`:
    edits replace each other without end, and a row does not grow."""
    work = image.works[-1] if image.works else None
    said = (image.edited, edits, None if work is None else work.edits)
    recipes = [image.recipe, *image.added, None if work is None else work.recipe]
    recipes += [each.recipe for each in said if each is not None]
    used = {image_id for recipe in recipes if recipe is not None for image_id in recipe.overlay_images}
    every = {**(image.overlays or {}), **(pinned or {})}
    return {image_id: every[image_id] for image_id in every if image_id in used} or None  # guard: bulk-edit-row-bound


def are_of_this_run(image: Image, variants: Sequence[Variant]) -> bool:
    """Whether the variants were made for the image's present run and what it is for."""
    return all(variant.key.startswith(_folder(image)) for variant in variants)


def _folder(image: Image) -> str:
    recipes = recipes_to_make(image)
    wanted = "" if recipes == (image.recipe,) else "-".join(["", *(recipe.digest()[:8] for recipe in recipes)])
    # guard: objects-run-in-output-key, works-recipe-in-output-key
    return f"{folder_of(image.visibility, image.image_id)}{image.run}{wanted}/"  # guard: visibility-in-output-key


def run_of_key(key: str) -> int:
    """The run that made the variant of that key."""
    return int(key.split("/")[2].partition("-")[0])


def recipes_to_make(image: Image) -> tuple[Recipe, ...]:
    """What the image's present run makes: what was asked for first, or is to be added, or everything again."""
    if image.recipe is None:  # a tombstone
        return ()
    if image.work is not None and image.work.recipe is not None:
        recipes, edits = _beside_added(image, image.work), image.edited
        return tuple(edited(recipe, edits) for recipe in recipes)  # guard: bulk-edit-held-by-other-work
    return _all_of(image, _present_edits(image))


def _present_edits(image: Image) -> Edits | None:
    """The edits that its work makes, or else those that its variants show."""
    is_edit = image.work is not None and image.work.kind is WorkKind.EDIT
    return cast("Work", image.work).edits if is_edit else image.edited


def _all_of(image: Image, edits: Edits | None, *others: Recipe) -> tuple[Recipe, ...]:
    """All variants of an image with those edits, and what is to be added. Its own recipe stays in the row: what the
    last edits make does not depend on those before, which may have been overtaken."""
    first = image.recipe if edits is None or edits.recipe is None else edits.recipe
    every = (cast("Recipe", first), *image.added, *others)
    return together([edited(recipe, edits) for recipe in every])  # guard: bulk-edit-of-added-too


def _beside_added(image: Image, work: Work) -> tuple[Recipe, ...]:
    """What work makes; what was added to the image keeps its names when the image is made again, and what edits have
    made of its variants stays."""
    recipe = cast("Recipe", work.recipe)
    if work.kind is not WorkKind.REDEVELOP:
        return (recipe,)
    if image.edited is not None and image.edited.recipe is not None:
        recipe = image.edited.recipe  # guard: bulk-edit-recipe-outlives-preset
    added, left = _names_added(image), recipe.variants
    if added:  # guard: works-added-stay
        left = tuple(variant for variant in left if variant.name not in added)
    return (recipe.model_copy(update={"variants": left}),) if left else ()


def leading(image: Image, recipe: Recipe, *, is_edited: bool = True) -> tuple[VariantSpec, ...]:
    """The variants of the image's first recipe, if this is another one with the same edits: what it makes comes of the
    pictures that those came of. So a variant has the same bytes whether the first recipe has it, or it is added, made
    again or made on request. What is made on request is not `is_edited`: it is of the image as it was uploaded."""
    work, edits = image.work, _present_edits(image) if is_edited else None
    first = work.recipe if work is not None and work.kind is WorkKind.REDEVELOP else image.recipe
    if edits is not None and edits.recipe is not None:
        first = edits.recipe
    if first is None or recipe == (first := edited(first, edits)):
        return ()
    return () if _edits(recipe) != _edits(first) else first.variants  # guard: works-other-edits-follow-nothing


def together(recipes: Sequence[Recipe]) -> tuple[Recipe, ...]:
    """What recipes make together if a variant of a later one replaces that of the same name: those with the same edits
    as one, none without a variant."""
    names: set[str] = set()
    kept: list[Recipe] = []
    for recipe in reversed(recipes):
        own = tuple(variant for variant in recipe.variants if variant.name not in names)
        names |= {variant.name for variant in own}
        kept.insert(0, recipe.model_copy(update={"variants": own}))
    by_edits: dict[str, Recipe] = {}
    for recipe in kept:
        edits = _edits(recipe)
        same = by_edits.get(edits)
        by_edits[edits] = (
            recipe if same is None else same.model_copy(update={"variants": same.variants + recipe.variants})
        )
    return tuple(recipe for recipe in by_edits.values() if recipe.variants)


def _edits(recipe: Recipe) -> str:
    return recipe.model_copy(update={"variants": ()}).model_dump_json()


def names_of_work(image: Image, work: Work) -> list[str]:
    """The names of the variants that the image's work makes or moves, or of those that it has made and nothing has
    replaced."""
    if work.recipe is not None:
        return list(work.recipe.made_names)
    if work.kind is WorkKind.EDIT and work == image.work:
        return [name for recipe in recipes_to_make(image) for name in recipe.made_names]
    if work.ended_at is None or work.failed or work.kind is WorkKind.VISIBILITY:
        return [variant.name for variant in image.variants]
    return [variant.name for variant in image.variants if run_of_key(variant.key) == work.run]


EDIT_STATUSES = ("accepted", "working", "done", "failed")
"""How far the last edit of an image may be."""


def edit_status(image: Image) -> str:
    """One of EDIT_STATUSES, for an image that was edited. One that waits for an image fails with that."""
    if image.edit_waits:
        return "accepted" if image.outcome is Status.DONE or not image.outcome.is_terminal else "failed"
    run = None if image.edit is None else image.edit.run
    if image.work is not None and image.work.run == run:
        return "working" if image.attempt else "accepted"
    work = next((work for work in image.works if work.run == run), None)
    return "failed" if work is not None and work.failed else "done"


def require_few(image: Image, recipe: Recipe) -> None:
    """Raises Rejected (`too_many_variants`) if the image would have more, with those of `recipe`, than one redo can
    make again."""
    _require_few(together((*recipes_to_make(image), edited(recipe, image.edited))))


def require_few_edited(image: Image, edits: Edits) -> None:
    """Raises Rejected (`too_many_variants`) if an image with those edits would have more than one redo can make
    again."""
    adding = image.work is not None and image.work.kind is WorkKind.VARIANTS and image.work.recipe
    _require_few(_all_of(image, edits, *((adding,) if adding else ())))  # guard: bulk-edit-few-variants


def _require_few(after: Sequence[Recipe]) -> None:
    variants = sum(len(part.made_names) for part in after)  # guard: works-negotiated-counted
    work_pixels = sum(part.work_pixels for part in after)
    problem = None
    if variants > MAX_IMAGE_VARIANTS:
        problem = f"{variants} variants; at most {MAX_IMAGE_VARIANTS} are possible"
    elif len(after) > MAX_IMAGE_RECIPES:
        problem = f"variants of {len(after)} different edits; at most {MAX_IMAGE_RECIPES} are possible"
    elif work_pixels > MAX_WORK_PIXELS:
        most = f"at most {MAX_WORK_PIXELS / 1e6:.1f} are possible"
        problem = f"variants with {work_pixels / 1e6:.1f} megapixels of work; {most}"
    if problem is not None:
        raise Rejected(
            "too_many_variants",
            f"The image would have {problem}. Give new variants the names of those that they may replace, or upload "
            "the photo again for them.",
        )


def works_with(
    image: Image,
    kind: WorkKind,
    *,
    now: Milliseconds,
    recipe: Recipe | None = None,
    visibility: Visibility | None = None,
    edits: Edits | None = None,
    key: str | None = None,
    fingerprint: str | None = None,
) -> tuple[Work, ...]:
    """The latest works with the one that the image's next run is for."""
    work = Work(
        run=image.run + 1,
        kind=kind,
        beside=image.outcome_run,
        requested_at=now,
        recipe=recipe,
        visibility=visibility,
        edits=edits,
        key=key,
        fingerprint=fingerprint,
    )
    earlier = image.works
    if earlier and earlier[-1].version is None and earlier[-1].ended_at is not None:
        earlier = (*earlier[:-1], replace(earlier[-1], recipe=None, edits=None, version=image.work_version))
    return (*earlier, work)[-REMEMBERED_ENDS:]


def has_visibility(image: Image, wanted: Visibility) -> bool:
    """Whether an image has that visibility, and no work that was to make it so has left something behind."""
    changes = [work for work in image.works if work.kind is WorkKind.VISIBILITY]
    # guard: visibility-failed-change-again
    return image.visibility is wanted and not (changes and changes[-1].failed)


def is_failed_change(image: Image) -> bool:
    """Whether its latest run was to make its visibility another, and has failed."""
    return image.failed_work is not None and image.failed_work.kind is WorkKind.VISIBILITY


def moved(image: Image, visibility: Visibility) -> Image:
    """The image with that visibility, and its variants where they lie for it."""
    variants = tuple(replace(variant, key=moved_key(variant.key, visibility)) for variant in image.variants)
    return replace(image, variants=variants, visibilities=with_present(image.visibilities, visibility))


def requested_before(image: Image, key: str) -> Work | None:
    """The latest work that a request with this key has asked for, if the row still has it."""
    return next((work for work in reversed(image.works) if work.key == key), None)


def end_of_work(image: Image, work: Work, status: Status, changes: dict[str, Any]) -> dict[str, Any]:
    """What of the `changes` that end a run belongs to the image beside which this work was; `status` is how it ends."""
    failed = status is not Status.DONE
    now, version = changes["completed_at"], image.version + 1
    ended = replace(work, ended_at=now, failed=failed, error=changes.get("error"))
    kept: dict[str, Any]
    if failed:  # guard: works-failure-keeps-outcome
        kept = {name: changes[name] for name in ("attempts", "dead_letter", "due_at", "rescues") if name in changes}
    elif work.kind is WorkKind.VARIANTS:
        recipe, ended = work.recipe, replace(ended, recipe=None)
        kept = {
            "attempts": changes["attempts"],
            "variants": _replaced(image.variants, changes["variants"]),
            "attention": image.attention or changes["attention"],  # guard: works-attention-of-added
            "notices": tuple(dict.fromkeys((*image.notices, *changes["notices"]))),
            "added": _added(image, recipe),
        }
    elif work.kind is WorkKind.REDEVELOP:
        kept, ended = _redeveloped(image, work, changes), replace(ended, recipe=None)
    elif work.kind is WorkKind.EDIT:
        names = ("attempts", "variants", "placeholder", "attention", "notices")
        kept, ended = {name: changes[name] for name in names}, replace(ended, edits=None)
        kept["edited"] = work.edits
    elif work.kind is WorkKind.VISIBILITY:  # what it moves is written before it ends
        kept = {"attempts": changes["attempts"]}
    else:
        remade = _replaced(image.variants, changes["variants"])
        kept = {**changes, "variants": remade, "completed_version": version, "earlier_ends": with_its_end(image)}
    # A dead letter is in its lane's queue: the image returns from there with its next run.
    if work.lane is not None and "dead_letter" not in kept:  # guard: works-lane-returned
        kept["lane"] = work.lane
    return kept | {"works": (*image.works[:-1], ended), "work_version": version}


def _redeveloped(image: Image, work: Work, changes: dict[str, Any]) -> dict[str, Any]:
    """The image as its preset's present version makes it, with what was added to it. Objects of earlier runs stay until
    it is deleted, as a redo leaves them."""
    added = _names_added(image)
    kept = tuple(variant for variant in image.variants if own_name(variant.name) in added)
    return {
        "attempts": changes["attempts"],
        "recipe": work.recipe,
        "preset_version": work.preset_version,
        "variants": (*changes["variants"], *kept),
        "placeholder": changes["placeholder"] or image.placeholder,
        "attention": changes["attention"] or image.attention,
        "notices": tuple(dict.fromkeys((*image.notices, *changes["notices"]))),
    }


def _names_added(image: Image) -> set[str]:
    return {variant.name for recipe in image.added for variant in recipe.variants}


def _added(image: Image, recipe: Recipe | None) -> tuple[Recipe, ...]:
    return image.added if recipe is None else together((*image.added, recipe))


def _replaced(before: tuple[Variant, ...], made: tuple[Variant, ...]) -> tuple[Variant, ...]:
    """Those of before, with new ones in the places of their names, and the others behind them. A name in a recipe that
    was three variants may have become one."""
    names, own = {variant.name for variant in made}, {own_name(variant.name) for variant in made}
    # guard: works-replaced-by-own-name
    kept = [variant for variant in before if variant.name in names or own_name(variant.name) not in own]
    by_name = {variant.name: variant for variant in kept} | {variant.name: variant for variant in made}
    return tuple(by_name.values())


def with_its_end(image: Image) -> tuple[RunEnd, ...]:
    """The ends of earlier runs, with that of the run that another follows."""
    if image.completed_at is None or image.completed_version is None:  # written before there were events
        return image.earlier_ends
    run, status = image.outcome_run, image.outcome
    end = RunEnd(run=run, status=status, ended_at=image.completed_at, version=image.completed_version)
    return (*image.earlier_ends, end)[-REMEMBERED_ENDS:]
