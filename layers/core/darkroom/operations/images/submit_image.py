"""Accepts an upload: stores the original, then the row, then the message; after the row nothing can be lost."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from darkroom.domain.images.image import Image, Source, Status
from darkroom.domain.images.limits import MAX_BODY_BYTES
from darkroom.domain.images.media_types import SNIFF_BYTES, accepted_media_type
from darkroom.domain.images.order import Order, check_repeats, fingerprint_of, key_reused
from darkroom.domain.images.transitions import arrive
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.sizes import excess_in_words
from darkroom.operations.images.check_order import (
    Accepted,
    CheckOrderPorts,
    ImageRequest,
    check_order,
    find_answer,
)
from darkroom.operations.images.enqueue import EnqueueInTimePorts, enqueue_in_time
from darkroom.ports.images import Originals
from darkroom.ports.kernel import Fenced

if TYPE_CHECKING:
    from darkroom.domain.images.limits import InputFormat


@dataclass(frozen=True, kw_only=True)
class PhotoUpload(ImageRequest):
    """A photo that a client sent, and how and when to develop it."""

    body: bytes
    order: Order


@dataclass(frozen=True, kw_only=True)
class SubmitImagePorts(EnqueueInTimePorts, CheckOrderPorts):
    """What an upload needs besides the ports of sending its message, and which formats are accepted."""

    originals: Originals
    input_formats: frozenset[InputFormat]


def submit_image(ports: SubmitImagePorts, upload: PhotoUpload) -> Accepted:
    """Stores the upload, writes its row and sends its message.

    Raises Rejected for an upload that can never be accepted (`empty_upload`, `upload_too_large`, `unsupported_format`,
    `invalid_recipe`, `unknown_notify`, `invalid_idempotency_key`, `idempotency_key_reused`, `image_deleted`,
    `conflicting_parameters`, and what `appoint` raises), Rejected (`quota_exceeded`) or TurnedAway (`overloaded`) while
    its tenant stores too much or its lane has too much work, unless an earlier upload's image is the answer, and
    Retryable if the store or the table cannot answer: then nothing was promised. A queue that cannot answer is no
    error: the row is due, and the sweeper sends the message.
    """
    media_type = _media_type(upload.body, ports.input_formats)
    sha256 = hashlib.sha256(upload.body).hexdigest()
    fingerprint = fingerprint_of(sha256, upload.order.request_signature)
    reuses = upload.order.reuses
    image_id, earlier = find_answer(ports, upload, upload.order, sha256=sha256)
    if earlier is not None and reuses and earlier.status is Status.AWAITING_UPLOAD:
        return _bring(ports, upload, earlier, media_type)
    if earlier is not None:
        return _replay(ports, earlier, None if reuses else fingerprint)

    checked = check_order(ports, upload, upload.order, image_id, size_bytes=len(upload.body))
    source = _stored(ports, image_id, upload.body, sha256=sha256, media_type=media_type)
    row = checked.row(image_id, fingerprint=fingerprint, source=source)
    image = ports.images.create(row)
    if image.correlation_id != row.correlation_id:
        # guard: reuse-lost-race-asks-again
        return submit_image(ports, upload) if reuses else _replay(ports, image, fingerprint)
    # The row may be this request's own, from a write whose answer was lost: then the message is still to be sent.
    enqueue_in_time(ports, image)
    return Accepted(image=image, replayed=False)


def _stored(ports: SubmitImagePorts, image_id: str, body: bytes, *, sha256: str, media_type: str) -> Source:
    original = ports.originals.put_if_absent(image_id, body, sha256=sha256, media_type=media_type)
    if original.sha256 != sha256:
        # Only a key can lead to another original under its id: an earlier upload put it and got no row, or is about to.
        raise key_reused()
    return Source(version_id=original.version_id, sha256=sha256, size_bytes=original.size_bytes, media_type=media_type)


def _bring(ports: SubmitImagePorts, upload: PhotoUpload, awaited: Image, media_type: str) -> Accepted:
    """Gives an image that was announced, and would be reused, its bytes: a later upload by its form is late."""
    source = _stored(ports, awaited.image_id, upload.body, sha256=awaited.source.sha256, media_type=media_type)
    try:
        image = ports.images.change(awaited, arrive(awaited, source, now=ports.clock()))  # guard: reuse-brings-fenced
    except Fenced:
        return submit_image(ports, upload)
    enqueue_in_time(ports, image)
    return Accepted(image=image, replayed=True)


def _replay(ports: SubmitImagePorts, image: Image, fingerprint: str | None) -> Accepted:
    """Answers a repeated request, or one that reuses the image (without a fingerprint), with the image of the first
    one."""
    if fingerprint is not None:
        check_repeats(image, fingerprint)
    # guard: accept-no-message-once-claimed, accept-repeat-resends-message
    if image.status in (Status.PENDING, Status.SCHEDULED) and image.attempt == 0:
        # The earlier request may have ended between its row and its message: that is why clients repeat requests. A
        # second message costs one read of the row; without it the image would wait for the sweeper, which waits for a
        # backlog.
        enqueue_in_time(ports, image)
    return Accepted(image=image, replayed=True)


def _media_type(body: bytes, input_formats: frozenset[InputFormat]) -> str:
    if not body:
        raise Rejected("empty_upload", "The body is empty: there is no photo in it. Send the bytes of an image file.")
    if len(body) > MAX_BODY_BYTES:
        raise Rejected(
            "upload_too_large",
            f"The upload has {excess_in_words(len(body), MAX_BODY_BYTES)} can be sent in one request. "
            "Announce a larger file with POST /uploads, which answers with a form to upload it.",
        )
    return accepted_media_type(body[:SNIFF_BYTES], input_formats)
