"""Announces an upload: writes its row, then makes a form with which its bytes, and no others, can be sent to the
store."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.images.image import Image, Source, Status
from darkroom.domain.images.order import check_repeats, fingerprint_of, is_there
from darkroom.domain.images.transitions import UPLOAD_SECONDS, await_upload, renew_upload
from darkroom.domain.kernel.errors import Rejected, Retryable
from darkroom.domain.kernel.sizes import excess_in_words
from darkroom.domain.uploads.announcement import AnnouncedFile
from darkroom.operations.images.check_order import (
    CheckOrderPorts,
    ImageRequest,
    check_order,
    find_answer,
)
from darkroom.operations.images.enqueue import DUE_FENCE
from darkroom.ports.kernel import Fenced
from darkroom.ports.uploads import UploadForm, Uploads

_TRIES = 5
"""The sweeper or the upload itself may come between reading the row and writing it; not five times in a row."""


@dataclass(frozen=True, kw_only=True)
class Announced(ImageRequest):
    """A file that a client announced."""

    announcement: AnnouncedFile


@dataclass(frozen=True, kw_only=True)
class Begun:
    """The image that awaits its upload, and the form to send it; None if it is no longer awaited, because an earlier
    request with the same key, or for the same bytes if it reuses them, led to it (`replayed`)."""

    image: Image
    form: UploadForm | None
    replayed: bool


@dataclass(frozen=True, kw_only=True)
class BeginUploadPorts(CheckOrderPorts):
    """What an announcement needs, and the largest file that may be announced."""

    uploads: Uploads
    max_bytes: int


def begin_upload(ports: BeginUploadPorts, announced: Announced) -> Begun:
    """Writes the row of an image that awaits its upload, and makes the form.

    The row comes first: no upload can come before its image is known. A repeated request with the same key gets a fresh
    form and the full time again. Raises Rejected (`upload_too_large`, `unknown_notify`, `invalid_recipe`,
    `invalid_idempotency_key`, `idempotency_key_reused`, `image_deleted`, `conflicting_parameters`, and what `appoint`
    raises), Rejected (`quota_exceeded`) or TurnedAway (`overloaded`) while its tenant stores too much or its lane has
    too much work, unless an earlier request's image is the answer, and Retryable if the table cannot answer. An
    announced upload is always let in when it comes.
    """
    announcement = announced.announcement
    if announcement.size_bytes > ports.max_bytes:
        raise Rejected(
            "upload_too_large",
            f"The file has {excess_in_words(announcement.size_bytes, ports.max_bytes)} are allowed. "
            "Send a smaller version of the photo.",
        )
    fingerprint = fingerprint_of(announcement.sha256, announcement.request_signature)
    order = announcement.order
    image_id, earlier = find_answer(ports, announced, order, sha256=announcement.sha256)
    if earlier is not None:
        return _replay(ports, announced, earlier, fingerprint)

    checked = check_order(ports, announced, order, image_id, size_bytes=announcement.size_bytes)
    source = Source(
        version_id="",
        sha256=announcement.sha256,
        size_bytes=announcement.size_bytes,
        media_type=announcement.media_type,
    )
    row = await_upload(checked.row(image_id, fingerprint=fingerprint, source=source), now=checked.now)
    image = ports.images.create(row)
    if image.correlation_id != row.correlation_id:
        return _replay(ports, announced, image, fingerprint)
    return Begun(image=image, form=_form(ports, image), replayed=False)


def _replay(ports: BeginUploadPorts, announced: Announced, image: Image, fingerprint: str) -> Begun:
    """Answers a repeated request with the image of the first one, which is awaited anew."""
    reuses = announced.announcement.order.reuses
    current: Image | None = image
    for _ in range(_TRIES):
        if current is None:
            break
        if not reuses:
            check_repeats(current, fingerprint)
        elif not is_there(current, now=ports.clock()):  # guard: reuse-awaited-asks-again
            return begin_upload(ports, announced)
        if current.status is not Status.AWAITING_UPLOAD:
            return Begun(image=current, form=None, replayed=True)
        try:
            # guard: upload-renewal-fence
            renewed = ports.images.change(current, renew_upload(current, now=ports.clock()), fence=DUE_FENCE)
        except Fenced as lost:
            current = lost.current
            continue
        return Begun(image=renewed, form=_form(ports, renewed), replayed=True)
    raise Retryable("the image changed under every attempt to wait for it anew")


def _form(ports: BeginUploadPorts, image: Image) -> UploadForm:
    return ports.uploads.form_for(
        image.image_id,
        sha256=image.source.sha256,
        size_bytes=image.source.size_bytes,
        media_type=image.source.media_type,
        seconds=UPLOAD_SECONDS,
        now=ports.clock(),
    )
