"""What a client announces about a file before it uploads it: its size, its hash, and how to develop it."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.images.order import Order

UNKNOWN_MEDIA_TYPE = "application/octet-stream"


@dataclass(frozen=True, kw_only=True)
class AnnouncedFile:
    """A future upload: only these bytes will be accepted for it. Their type is detected when they arrive; `media_type`
    is only the type they are stored with until then."""

    size_bytes: int
    sha256: str
    order: Order
    media_type: str = UNKNOWN_MEDIA_TYPE

    @property
    def request_signature(self) -> str:
        """What makes two announcements of the same bytes the same. It differs from every other kind of request: a key
        that announced bytes must not be answered as if it had sent them."""
        return f"upload\0{self.order.request_signature}"  # guard: upload-announced-key-distinct
