"""What uploads need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from darkroom.domain.kernel.instants import Milliseconds
    from darkroom.domain.kernel.message import Message


@dataclass(frozen=True, kw_only=True)
class UploadForm:
    """A form that anyone may send to `url` (multipart/form-data) until `expires_at`: all `fields` as they are, then the
    file as `file`."""

    url: str
    fields: Mapping[str, str]
    expires_at: Milliseconds


class Uploads(Protocol):
    """Where clients upload files that are too large for a request, one object per image, until the upload becomes an
    original. Every method but `form_for` and `remove` raises Retryable if the store cannot answer."""

    def form_for(
        self, image_id: str, *, sha256: str, size_bytes: int, media_type: str, seconds: int, now: Milliseconds
    ) -> UploadForm:
        """A form with which the image's upload can be sent, for that long from `now` on: these bytes and no others."""

    def size_bytes(self, image_id: str) -> int | None:
        """The size of the stored upload, or None."""

    def get(self, image_id: str) -> bytes | None:
        """The bytes of the stored upload, or None."""

    def remove(self, image_ids: Sequence[str]) -> Mapping[str, Exception]:
        """Removes the uploads; returns, by image id, why one may still be there: Retryable, or the error that refused
        it. A missing upload is not an error."""


class UploadQueue(Protocol):
    """The queue of notifications that uploads have come."""

    def put(self, message: Message) -> None:
        """Sends a reminder of this image to the upload queue's worker. Raises Retryable if the queue cannot answer."""
