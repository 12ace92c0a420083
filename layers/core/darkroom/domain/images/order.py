"""What a client orders, when two orders under one Idempotency-Key are the same, and which image may be the answer to
another order."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from darkroom.domain.images.annotations import NO_ANNOTATIONS, Annotations
from darkroom.domain.images.image import Image, Status, has_expired
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.ids import is_idempotency_key
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.visibility import Visibility, visibility_named
from darkroom.domain.recipes.presets import DEFAULT_PRESET, VERSIONS, preset_named
from darkroom.domain.recipes.recipes import Recipe
from darkroom.domain.recipes.written_recipes import recipe_from_json
from darkroom.domain.schedules.schedule import AT_ONCE, Timetable

ON_DUPLICATE = ("reuse",)
"""What may be asked for in case the same bytes were uploaded before for the same recipe; by default, another image."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to make and when: a recipe, its preset (if any), and how the client asked for it. `notify` is the only
    endpoint that is to hear of it; None if all may. `annotations` are the client's own words on the image, and
    `visibility` whom the edge serves it to, None for whom its tenant usually wants. With `reuses` an image that is
    there may be the answer. `batch` is the id of the batch that it is to belong to. `chooses` is whether only some of
    the preset's variants are wanted."""

    recipe: Recipe
    preset: str | None
    preset_version: int | None = None
    chooses: bool = False
    asked_for: str
    notify: str | None = None
    timetable: Timetable = AT_ONCE
    annotations: Annotations = NO_ANNOTATIONS
    visibility: Visibility | None = None
    reuses: bool = False
    batch: str | None = None

    @property
    def request_signature(self) -> str:
        """All that two requests under one key must have in common, besides the photo."""
        # guard: visibility-in-fingerprint
        visibility = "" if self.visibility is None else f"\0visibility:{self.visibility}"
        # guard: annotations-in-fingerprint
        return f"{self.asked_for}{self.timetable.asked_for}{self.annotations.asked_for}{visibility}"


def order_of(
    *,
    preset: str | None = None,
    variants: str | None = None,
    recipe: str | None = None,
    notify: str | None = None,
    on_duplicate: str | None = None,
    timetable: Timetable = AT_ONCE,
    annotations: Annotations = NO_ANNOTATIONS,
    visibility: str | None = None,
    batch: str | None = None,
) -> Order:
    """The order that a request's parameters make: `variants` are names of the preset's variants, comma-separated;
    `recipe` is the client's own recipe, in JSON, instead of a preset; `notify` is an endpoint's id and `batch` a
    batch's, which the operation looks up.

    Raises Rejected (`conflicting_parameters`, `unknown_preset`, `unknown_variants`, `invalid_recipe`,
    `unknown_on_duplicate`, `unknown_visibility`).
    """
    if on_duplicate is not None and on_duplicate not in ON_DUPLICATE:
        raise Rejected("unknown_on_duplicate", f"on_duplicate is {', '.join(ON_DUPLICATE)}, or left out.")
    if batch is not None and on_duplicate is not None:  # guard: bulk-no-image-of-others
        raise Rejected("conflicting_parameters", "An image that is there joins no batch: leave out on_duplicate.")
    order = replace(
        _order_of(preset, variants, recipe),
        batch=batch,
        timetable=timetable,
        reuses=on_duplicate is not None,
        annotations=annotations,
        visibility=None if visibility is None else visibility_named(visibility),
    )
    if batch is not None:  # guard: bulk-in-fingerprint
        order = replace(order, asked_for=f"{order.asked_for}\0batch:{batch}")
    if notify is None:
        return order
    # guard: webhook-notify-in-fingerprint
    return replace(order, notify=notify, asked_for=f"{order.asked_for}\0notify:{notify}")


def _order_of(preset: str | None, variants: str | None, recipe: str | None) -> Order:
    if recipe is not None:
        if preset is not None or variants is not None:
            raise Rejected(
                "conflicting_parameters",
                "A recipe is complete by itself: send either recipe, or preset with or without variants.",
            )
        own = recipe_from_json(recipe)
        return Order(recipe=own, preset=None, asked_for=f"recipe:{own.digest()}")
    name = preset if preset is not None else DEFAULT_PRESET
    preset_recipe = preset_named(name)
    whole = Order(recipe=preset_recipe, preset=name, preset_version=VERSIONS.get(name, 1), asked_for=f"preset:{name}")
    if variants is None:
        return whole
    names = sorted({variant.strip() for variant in variants.split(",")})
    return replace(
        whole,
        recipe=preset_recipe.choose(names),
        chooses=True,
        asked_for=f"{whole.asked_for}\0variants:{','.join(names)}",
    )


def fingerprint_of(sha256: str, request_signature: str) -> str:
    """What makes two requests under one key the same: the bytes and what was asked for.

    A preset and its variants count by their names, so that an edited preset does not turn a client's retry into a
    conflict; a client's own recipe counts by its content.
    """
    return hashlib.sha256(f"v1\0{sha256}\0{request_signature}".encode()).hexdigest()


def check_idempotency_key(key: str | None) -> None:
    """Raises Rejected (`invalid_idempotency_key`) for an invalid key."""
    if key is not None and not is_idempotency_key(key):
        raise Rejected("invalid_idempotency_key", "An Idempotency-Key is 1 to 255 printable ASCII characters.")


def check_repeats(image: Image, fingerprint: str) -> None:
    """Checks that a request under the image's key repeats the one that made it. Raises Rejected
    (`idempotency_key_reused`, `image_deleted`) if it does not, or if there is nothing left to report: what made a
    deleted image is no longer known, so every request under its key gets the same answer."""
    if image.is_deleted:  # guard: erasure-deleted-key-used-up
        raise Rejected(
            "image_deleted", "The image of this Idempotency-Key was deleted. Use a new key to upload the photo again."
        )
    if image.fingerprint != fingerprint:  # guard: accept-key-reuse-refused
        raise key_reused()


def check_reuse(idempotency_key: str | None) -> None:
    """Checks that an order that may be answered with another's image has no key. Raises Rejected
    (`conflicting_parameters`)."""
    if idempotency_key is not None:  # guard: reuse-no-key
        raise Rejected(
            "conflicting_parameters",
            "With on_duplicate=reuse a request can be repeated as it is: send it without an Idempotency-Key.",
        )


def is_there(image: Image, *, now: Milliseconds) -> bool:
    """Whether another upload of its bytes for its recipe may be answered with the image: it is done or may become so by
    itself, or awaits these bytes."""
    # guard: reuse-deleted-not-there, reuse-ended-not-there, reuse-expired-not-there
    return not image.is_deleted and image.outcome not in _ENDED_WITHOUT and not has_expired(image, now)


_ENDED_WITHOUT = frozenset({Status.FAILED, Status.CANCELLED, Status.EXPIRED})


def key_reused() -> Rejected:
    """The refusal of a key that was used for something else."""
    return Rejected(
        "idempotency_key_reused",
        "This Idempotency-Key was used with another photo, preset, recipe, time, notify, reference, tags, metadata or "
        "visibility, or in another kind of request. Use a new key for a new upload.",
    )


def no_imports() -> Rejected:
    """The refusal of a URL in a stack that fetches nothing."""
    return Rejected("part_not_deployed", "This stack does not fetch images. Post the photo itself.")


def require_delivery(wanted: Visibility | None, *, delivers: bool) -> None:
    """Checks that the stack `delivers` images by an edge if one is wanted that is not private. Raises Rejected
    (`part_not_deployed`)."""
    if wanted not in (None, Visibility.PRIVATE) and not delivers:  # guard: visibility-needs-an-edge
        raise Rejected(
            "part_not_deployed",
            "This stack delivers no images by CloudFront. Leave visibility out, and fetch variants with your "
            "credential.",
        )


def no_webhooks() -> Rejected:
    """The refusal of an order of which an endpoint is to hear, in a stack without webhooks."""
    return Rejected(
        "part_not_deployed",
        "This stack sends no webhooks. Leave notify out, and ask for the status of the image.",
    )


def no_batches() -> Rejected:
    """The refusal of an order for a batch, in a stack without batches."""
    return Rejected("part_not_deployed", "This stack has no batches. Leave batch out.")


def unknown_notify() -> Rejected:
    """The refusal of an order of which an endpoint is to hear that its tenant does not have."""
    return Rejected(
        "unknown_notify",
        "notify is the id of one of your webhooks, and there is none with this id: GET /webhooks lists them.",
    )
