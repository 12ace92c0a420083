"""What is stored for an image: as its row tells it, and as its bucket lists it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from darkroom.domain.images.image import Image
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.stored import NOTHING, Stored


def stored_by(image: Image | None) -> Stored:
    """What is stored for the row: its original and the variants that it names. What was announced or is yet to be
    fetched is not here, and a tombstone has nothing. It is unfinished until its first run has ended: a replay and work
    beside it, whose beginnings no event tells, count as none."""
    if image is None or not image.has_original:  # guard: quotas-unarrived-not-stored
        return NOTHING
    is_unfinished = image.run == 1 and not image.status.is_terminal  # guard: unfinished-first-run-alone
    return Stored(size_bytes=image.source.size_bytes + variant_bytes(image), images=1, unfinished=int(is_unfinished))


def variant_bytes(image: Image) -> int:
    """The bytes of the variants that the row names: after a redo, those of the run before it until others are made."""
    return sum(variant.size_bytes for variant in image.variants)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredVersion:
    """One version of an object in the originals' bucket, or a delete marker on it (`is_marker`), which has no bytes.

    `image_id` is None if `key` is not an original's. `is_latest` is whether a read that names no version gets this one.
    """

    key: str
    image_id: str | None
    version_id: str
    stored_at: Milliseconds
    size_bytes: int
    is_marker: bool
    is_latest: bool


def original_key(image_id: str) -> str:
    """The key of an image's original."""
    return f"originals/{image_id}"


def is_orphan(versions: Sequence[StoredVersion], stored_before: Milliseconds) -> bool:
    """Whether the versions of an original without a row are an orphan: there is one, and no request that has stored one
    may still write the row, as all were stored by then. Delete markers do not count."""
    stored = [version.stored_at for version in versions if not version.is_marker]
    # guard: orphans-age-of-every-version
    return bool(stored) and max(stored) <= stored_before
