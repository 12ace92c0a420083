"""What a tenant stores, and whether one more file still fits into its quota."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.figures import added
from darkroom.domain.kernel.sizes import limit_in_words, size_beside, size_in_words
from darkroom.domain.kernel.tenants import UNLIMITED, Quota

NEAR = 0.9
"""From this share of a quota on, every upload looks at the sum anew."""


@dataclass(frozen=True, kw_only=True)
class Stored:
    """The bytes of originals and variants, how many images have an original, and the first run of how many of these is
    `unfinished`. A change of them may be negative."""

    size_bytes: int = 0
    images: int = 0
    unfinished: int = 0

    def __add__(self, other: Stored) -> Stored:
        return added(self, other)

    def __sub__(self, other: Stored) -> Stored:
        return Stored(
            size_bytes=self.size_bytes - other.size_bytes,
            images=self.images - other.images,
            unfinished=self.unfinished - other.unfinished,
        )

    @property
    def shown(self) -> Stored:
        """The sum as it counts: one that began when a tenant had images already may have fallen below zero."""
        return Stored(
            size_bytes=max(0, self.size_bytes), images=max(0, self.images), unfinished=max(0, self.unfinished)
        )

    @property
    def written(self) -> dict[str, int]:
        """The change as an event has it."""
        unfinished = {"unfinished": self.unfinished} if self.unfinished else {}
        return {"bytes": self.size_bytes, "images": self.images, **unfinished}

    @classmethod
    def read(cls, written: Any) -> Self:
        """The change in an event, none if it has none. Raises ValueError for what `written` did not write."""
        if written is None:
            return cls()
        if not isinstance(written, Mapping) or not all(type(figure) is int for figure in written.values()):
            raise ValueError(f"{written!r} is not a change of what is stored")
        return cls(
            size_bytes=written.get("bytes", 0),
            images=written.get("images", 0),
            unfinished=written.get("unfinished", 0),
        )


NOTHING = Stored()


class QuotaExceeded(Rejected):
    """The file does not fit into the tenant's quota: `used` of `quota`."""

    def __init__(self, used: Stored, quota: Quota) -> None:
        super().__init__(
            "quota_exceeded",
            f"This tenant stores {_bytes_of(used.size_bytes, quota.stored_bytes)} and "
            f"{_images_of(used.images, quota.images)}, and this one does not fit. Delete images that are no longer "
            "needed, which counts within a minute, or ask the operator for more.",
        )
        self.used, self.quota = used, quota


def has_room(quota: Quota, used: Stored, size_bytes: int, images: int = 1) -> bool:
    """Whether so many more images, whose originals have so many bytes, fit."""
    return used.size_bytes + size_bytes <= quota.stored_bytes and used.images + images <= quota.images


def is_near(quota: Quota, used: Stored) -> bool:
    """Whether so much of the quota is used that a sum of some seconds ago is no longer good enough."""
    shares = (
        (used.size_bytes, quota.stored_bytes),
        (used.images, quota.images),
        (used.unfinished, quota.unfinished),
    )
    return any(figure > NEAR * most for figure, most in shares)


def _bytes_of(used: int, allowed: int) -> str:
    if allowed == UNLIMITED:
        return size_in_words(used)
    return f"{size_beside(used, allowed)} of {limit_in_words(allowed)}"


def _images_of(used: int, allowed: int) -> str:
    return f"{used:,} images" if allowed == UNLIMITED else f"{used:,} of {allowed:,} images"
