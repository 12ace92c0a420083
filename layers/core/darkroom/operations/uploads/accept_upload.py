"""Accepts an upload that has come: its bytes become the image's original, and its processing starts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from darkroom.domain.images.image import Image, Source, Status, has_expired
from darkroom.domain.images.media_types import SNIFF_BYTES, accepted_media_type
from darkroom.domain.images.order import key_reused
from darkroom.domain.images.transitions import arrive, expire, reject
from darkroom.domain.kernel.errors import Rejected, Retryable, demand_none
from darkroom.operations.images.enqueue import EnqueueInTimePorts, enqueue_in_time
from darkroom.ports.images import Originals
from darkroom.ports.kernel import Fenced
from darkroom.ports.uploads import Uploads

if TYPE_CHECKING:
    from darkroom.domain.images.limits import InputFormat


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """What became of the notification: `accepted`, `failed` (the bytes were refused), `expired`, `late` (the image no
    longer awaits an upload), `nothing_there`, or `gone` (there is no such image). `image` is the row afterwards."""

    outcome: Literal["accepted", "failed", "expired", "late", "nothing_there", "gone"]
    image: Image | None


@dataclass(frozen=True, kw_only=True)
class AcceptUploadPorts(EnqueueInTimePorts):
    """What accepting an upload needs besides the ports of sending the message, and which formats it accepts.

    `require_healthy` raises Retryable while S3 or DynamoDB is known not to answer: nothing is begun then.
    """

    uploads: Uploads
    originals: Originals
    require_healthy: Callable[[], None]
    input_formats: frozenset[InputFormat]


def accept_upload(
    ports: AcceptUploadPorts, image_id: str, *, on_row: Callable[[Image], None] = lambda _: None
) -> Acceptance:
    """Takes the stored upload for the image that awaits it. The row decides whether it does, whatever the notification
    says; `on_row` hears of it as soon as it is known.

    The order is that of a photo sent directly: the original, the row, the message. The upload is deleted last, so that
    after a crash midway the next notification, or the sweeper, repeats the work. Raises Retryable if a store or the
    table cannot answer.
    """
    ports.require_healthy()
    image = ports.images.get(image_id)
    if image is None:
        return Acceptance(outcome="gone", image=None)
    on_row(image)
    if image.status is not Status.AWAITING_UPLOAD:
        return _late(ports, image)
    now = ports.clock()
    try:
        body = _body(ports, image)
        if body is None:
            return Acceptance(outcome="nothing_there", image=image)
        # guard: upload-late-arrival-expires
        after = expire(image, now=now) if has_expired(image, now) else arrive(image, _kept(ports, image, body), now=now)
    except Rejected as refusal:
        after = reject(image, code=refusal.code, message=refusal.message, now=now)
    try:
        image = ports.images.change(image, after)  # guard: upload-acceptance-fence
    except Fenced as lost:
        if lost.current is None:
            return Acceptance(outcome="gone", image=None)
        return _late(ports, lost.current)
    if image.has_original:
        enqueue_in_time(ports, image)
    _clear(ports, image)
    return Acceptance(outcome=_outcome(image), image=image)


def _outcome(image: Image) -> Literal["accepted", "failed", "expired"]:
    match image.status:
        case Status.FAILED:
            return "failed"
        case Status.EXPIRED:
            return "expired"
        case _:
            return "accepted"


def _late(ports: AcceptUploadPorts, image: Image) -> Acceptance:
    """The row of an image that no longer awaits an upload has all that counts; what came for it is deleted."""
    if image.status in (Status.PENDING, Status.SCHEDULED) and image.attempt == 0:  # guard: upload-lost-message-resent
        # An earlier acceptance may have crashed before it sent the message, and this is why the notification comes
        # again.
        enqueue_in_time(ports, image)
    _clear(ports, image)
    return Acceptance(outcome="late", image=image)


def _clear(ports: AcceptUploadPorts, image: Image) -> None:
    """Removes objects that are no longer needed. If that fails now, the notification must come again to do it: the
    image is fine, but clients' uploads must not be left behind."""
    # guard: upload-live-original-kept, upload-orphan-original-removed
    if not image.has_original and image.status.is_terminal:
        # Another process may have stored it while the row was ended.
        versions = ports.originals.versions_of(image.image_id)
        demand_none(ports.originals.remove([(image.image_id, version) for version in versions]))
    demand_none(ports.uploads.remove([image.image_id]))


def _body(ports: AcceptUploadPorts, image: Image) -> bytes | None:
    """The upload's bytes, or None if there are none. Raises Rejected if they are not the announced ones."""
    reads: list[tuple[int, str]] = []
    # The store enforces what was announced, so another file is one that bypassed it. Two reads must agree that it is
    # another: a single one may be damaged, and the verdict removes the file.
    for _ in range(2):  # guard: upload-mismatch-read-twice
        size_bytes = ports.uploads.size_bytes(image.image_id)
        if size_bytes is None:
            return None
        # The size is compared first, so that nothing is read that does not fit into memory.
        # guard: upload-size-before-read
        body = ports.uploads.get(image.image_id) if size_bytes == image.source.size_bytes else b""
        if body is None:
            return None
        reads.append((size_bytes, hashlib.sha256(body).hexdigest()))
        if reads[-1] == (image.source.size_bytes, image.source.sha256):  # guard: upload-announced-bytes-match
            return body
    if reads[0] != reads[1]:  # guard: upload-differing-reads-retried
        raise Retryable("the upload did not arrive whole")
    raise Rejected(
        "checksum_mismatch",
        "The uploaded file is not the announced one: its SHA-256 differs. Announce the file again and send it "
        "unchanged.",
    )


def _kept(ports: AcceptUploadPorts, image: Image, body: bytes) -> Source:
    """The original that the upload became. Raises Rejected if it is no image that can be developed."""
    media_type = accepted_media_type(body[:SNIFF_BYTES], ports.input_formats)  # guard: upload-type-from-bytes
    original = ports.originals.put_if_absent(image.image_id, body, sha256=image.source.sha256, media_type=media_type)
    if original.sha256 != image.source.sha256:  # guard: upload-original-matches
        # Only a key can lead to another original under its id: of a photo that was sent with the key and got no row.
        raise key_reused()
    return Source(
        version_id=original.version_id,
        sha256=original.sha256,
        size_bytes=original.size_bytes,
        media_type=media_type,
    )
