"""Accepting an upload: the original, then the row, then the message; after the row nothing can be lost."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from darkroom.domain.errors import Rejected
from darkroom.domain.ids import image_id_for_key, image_id_from_bits, is_idempotency_key
from darkroom.domain.image import Image, Source, Status, accept
from darkroom.domain.lanes import SLOW
from darkroom.domain.media_types import MEDIA_TYPES, SNIFF_BYTES, input_format_of, name_of_unsupported, names_of
from darkroom.domain.presets import DEFAULT_PRESET, preset_named
from darkroom.domain.schedule import AT_ONCE, Timetable, appoint
from darkroom.domain.written_recipes import recipe_from_json
from darkroom.operations.enqueue import enqueue_in_time
from darkroom.ports import Clock, HoldQueue, Images, Lanes, Originals, Randomness

if TYPE_CHECKING:
    from darkroom.domain.limits import InputFormat
    from darkroom.domain.recipes import Recipe

MAX_UPLOAD_BYTES = 4 * 1024 * 1024
"""The most that a direct upload may weigh. Base64 makes 4/3 of it, and Lambda's synchronous payload ends at 6 MB."""


@dataclass(frozen=True, kw_only=True)
class Upload:
    """What a client sent, and who sent it.

    `variants` are names of the preset's variants, parted by commas; `recipe` is a recipe of the client's own, in JSON,
    instead of a preset.
    """

    body: bytes
    tenant_id: str
    correlation_id: str
    preset: str | None = None
    variants: str | None = None
    recipe: str | None = None
    idempotency_key: str | None = None
    timetable: Timetable = AT_ONCE


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """The image that the upload became, or that an earlier upload with the same key had become (`replayed`)."""

    image: Image
    replayed: bool


def submit_image(
    upload: Upload,
    *,
    input_formats: frozenset[InputFormat],
    images: Images,
    originals: Originals,
    lanes: Lanes,
    hold_queue: HoldQueue,
    clock: Clock,
    randomness: Randomness,
) -> Accepted:
    """Stores the upload, writes its row and sends its message.

    Raises Rejected for an upload that can never be accepted (`empty_upload`, `upload_too_large`, `unsupported_format`,
    `unknown_preset`, `unknown_variants`, `invalid_recipe`, `conflicting_parameters`, `invalid_idempotency_key`,
    `idempotency_key_reused`, `image_deleted`, and what `appoint` raises), and Retryable where the store or the table
    cannot answer: then nothing was promised. A queue that cannot answer is no error: the row is due, the sweeper sends.
    """
    if upload.idempotency_key is not None and not is_idempotency_key(upload.idempotency_key):
        raise Rejected("invalid_idempotency_key", "An Idempotency-Key is 1 to 255 printable ASCII characters.")
    order = _order(upload)
    media_type = _media_type(upload.body, input_formats)
    sha256 = hashlib.sha256(upload.body).hexdigest()
    fingerprint = _fingerprint(sha256, order.asked_for + upload.timetable.asked_for)

    if upload.idempotency_key is None:
        image_id = image_id_from_bits(randomness(16))
    else:
        image_id = image_id_for_key(upload.tenant_id, upload.idempotency_key)
        earlier = images.get(image_id)
        if earlier is not None:
            return _replay(earlier, fingerprint, images=images, lanes=lanes, hold_queue=hold_queue, clock=clock)

    now = clock()
    # After the look at an earlier request: a time that was to come then may have passed since.
    appointment = appoint(upload.timetable, now=now)
    original = originals.put_if_absent(image_id, upload.body, sha256=sha256, media_type=media_type)
    if original.sha256 != sha256:
        # Only a key can meet another original under its id: an earlier upload put it and got no row, or is about to.
        raise _key_reused()
    row = accept(
        image_id=image_id,
        tenant_id=upload.tenant_id,
        lane=SLOW.name,
        preset=order.preset,
        recipe=order.recipe,
        fingerprint=fingerprint,
        correlation_id=upload.correlation_id,
        source=Source(
            version_id=original.version_id, sha256=sha256, size_bytes=original.size_bytes, media_type=media_type
        ),
        now=now,
        process_at=appointment.process_at,
        expires_at=appointment.expires_at,
    )
    image = images.create(row)
    if image.correlation_id != row.correlation_id:
        return _replay(image, fingerprint, images=images, lanes=lanes, hold_queue=hold_queue, clock=clock)
    # The row may be this request's own from a write whose answer was lost: then the message is still to be sent.
    enqueue_in_time(image, images=images, lanes=lanes, hold_queue=hold_queue, clock=clock)
    return Accepted(image=image, replayed=False)


def _replay(
    image: Image, fingerprint: str, *, images: Images, lanes: Lanes, hold_queue: HoldQueue, clock: Clock
) -> Accepted:
    """Answers a repeated request with the image of the first one."""
    if image.fingerprint != fingerprint:
        raise _key_reused()
    if image.is_deleted and image.status is not Status.CANCELLED:
        raise Rejected(
            "image_deleted", "The image of this Idempotency-Key was deleted. Use a new key to upload the photo again."
        )
    if image.status in (Status.PENDING, Status.SCHEDULED) and image.attempt == 0:
        # The earlier request may have ended between its row and its message: that is why a client repeats it. A second
        # message costs one look at the row; without it the image would wait for the sweeper, which waits for a backlog.
        enqueue_in_time(image, images=images, lanes=lanes, hold_queue=hold_queue, clock=clock)
    return Accepted(image=image, replayed=True)


def _key_reused() -> Rejected:
    return Rejected(
        "idempotency_key_reused",
        "This Idempotency-Key was used with another photo, preset or recipe. Use a new key for a new upload.",
    )


@dataclass(frozen=True, kw_only=True)
class _Order:
    """What is to be made: a recipe, the preset that it is from (if any), and the words in which it was asked for."""

    recipe: Recipe
    preset: str | None
    asked_for: str


def _order(upload: Upload) -> _Order:
    if upload.recipe is not None:
        if upload.preset is not None or upload.variants is not None:
            raise Rejected(
                "conflicting_parameters",
                "A recipe says all there is to make: send either recipe, or preset with or without variants.",
            )
        recipe = recipe_from_json(upload.recipe)
        return _Order(recipe=recipe, preset=None, asked_for=f"recipe:{recipe.digest()}")
    preset = upload.preset if upload.preset is not None else DEFAULT_PRESET
    recipe = preset_named(preset)
    if upload.variants is None:
        return _Order(recipe=recipe, preset=preset, asked_for=f"preset:{preset}")
    names = sorted({name.strip() for name in upload.variants.split(",")})
    return _Order(recipe=recipe.choose(names), preset=preset, asked_for=f"preset:{preset}\0variants:{','.join(names)}")


def _media_type(body: bytes, input_formats: frozenset[InputFormat]) -> str:
    if not body:
        raise Rejected("empty_upload", "The body is empty. Send the file's bytes: curl --data-binary @photo.jpg")
    if len(body) > MAX_UPLOAD_BYTES:
        raise Rejected(
            "upload_too_large",
            f"The upload has {len(body)} bytes; at most {MAX_UPLOAD_BYTES} can be sent in one request. "
            "Send a smaller version of the photo.",
        )
    input_format = input_format_of(body[:SNIFF_BYTES])
    if input_format is None or input_format not in input_formats:
        raise Rejected(
            "unsupported_format",
            f"The bytes are {name_of_unsupported(body[:SNIFF_BYTES])}, whatever the file is called. "
            f"Send a {names_of(input_formats)} image.",
        )
    return MEDIA_TYPES[input_format]


def _fingerprint(sha256: str, asked_for: str) -> str:
    """What makes two uploads under one key the same: the bytes and what was asked for.

    A preset and its variants count by their names, so that an edited preset does not turn a client's retry into a
    conflict; a recipe of the client's own counts by what it says.
    """
    return hashlib.sha256(f"v1\0{sha256}\0{asked_for}".encode()).hexdigest()
