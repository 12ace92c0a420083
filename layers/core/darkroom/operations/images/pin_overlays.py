"""Finds the images that a recipe's overlays are, and pins their originals: what is developed later is what is there
now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from darkroom.domain.images.image import Source, Status
from darkroom.domain.kernel.field_problems import FieldProblem
from darkroom.domain.recipes.written_recipes import InvalidRecipe
from darkroom.ports.kernel import UnreadableRow

if TYPE_CHECKING:
    from darkroom.domain.recipes.recipes import Recipe
    from darkroom.ports.images import Images


def pin_overlays(images: Images, recipe: Recipe, tenant_id: str) -> dict[str, Source] | None:
    """The originals of the overlays' images by id, or None if the recipe has no overlays. It reads a row for each
    image, at most MAX_OVERLAYS.

    An overlay must be a done image of the tenant; one that is deleted, or another tenant's, is answered like an
    unknown id. Raises InvalidRecipe, naming each field that is wrong, and Retryable if the table cannot answer.
    """
    source_by_id, wrong = {}, {}
    for image_id in recipe.overlay_images:
        try:
            row = images.get(image_id)
        except UnreadableRow as error:
            if error.tenant_id == tenant_id:  # guard: unreadable-overlay-other-tenant
                raise
            row = None
        # guard: overlays-deleted-image, overlays-foreign-image
        if row is None or row.tenant_id != tenant_id or row.is_deleted:
            wrong[image_id] = "no image of yours has this id"
        elif row.outcome is not Status.DONE:  # guard: overlays-done-images-only
            wrong[image_id] = f"this image is {row.outcome}: only one that is done can be an overlay"
        else:
            source_by_id[image_id] = row.source
    if wrong:
        raise InvalidRecipe(
            tuple(
                FieldProblem(field=f"variants.{number}.overlays.{place}.image", message=wrong[overlay.image])
                for number, variant in enumerate(recipe.variants)
                for place, overlay in enumerate(variant.overlays)
                if overlay.image in wrong
            )
        )
    return source_by_id or None
