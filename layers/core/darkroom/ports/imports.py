"""What fetching images needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from darkroom.domain.imports.fetch import Fetched, Unfetched


class RemoteImages(Protocol):
    """What is served at URLs that clients give."""

    def fetch(self, url: str, *, max_bytes: int, is_picture: Callable[[bytes], bool]) -> Fetched | Unfetched:
        """Fetches up to `max_bytes`, within FETCH_SECONDS (`domain.fetch`) with all redirects; of a file whose first
        SNIFF_BYTES (`domain.media_types`) are not `is_picture`'s, these alone. It never raises for what the other side
        does."""
