"""What a client says of a file before it uploads it: how big, which bytes, and what is to become of it."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.order import Order
from darkroom.domain.schedule import AT_ONCE, Timetable

UNKNOWN_MEDIA_TYPE = "application/octet-stream"


@dataclass(frozen=True, kw_only=True)
class Announcement:
    """An upload to come: nothing but these bytes will be taken for it. What type they are is seen when they are here;
    `media_type` is only what they are stored as until then."""

    size_bytes: int
    sha256: str
    order: Order
    media_type: str = UNKNOWN_MEDIA_TYPE
    timetable: Timetable = AT_ONCE

    @property
    def asked_for(self) -> str:
        """What makes two announcements of the same bytes the same. It is no other request's: a key under which bytes
        were announced must not be answered as if it had brought them."""
        return f"upload\0{self.order.asked_for}{self.timetable.asked_for}"
