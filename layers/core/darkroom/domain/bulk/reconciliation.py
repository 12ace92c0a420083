"""Reconciliation: every night a slice of all ids is compared, what the buckets hold with what the rows say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from darkroom.domain.images.image import Image, Status
from darkroom.domain.images.stored_by import StoredVersion, is_orphan, original_key
from darkroom.domain.kernel.ids import digits_of
from darkroom.domain.kernel.instants import Milliseconds

SLICES = 30
"""So many nights compare everything: a month. Ids are spread evenly, so of 10 million images one compares 333,000."""

MOST_RECORDED = 1000
"""How many differences are recorded; more are counted. So many look alike, and have one cause."""

AGE_SECONDS = 24 * 3600
"""How old an object or a row is of which a difference is told: whatever was under way has ended by then."""

SECOND_LOOK_SECONDS = 12 * 3600
"""How long after the first look that saw a difference another one may confirm it: it is in another night."""

_BOUND_DIGITS = 10


class Phase(StrEnum):
    """What a night does, in this order: it looks again at what earlier nights have seen, lists the ids of the slice's
    rows, and compares them with the buckets; then it waits for the next."""

    WAITING = "waiting"
    CONFIRMING = "confirming"
    LISTING = "listing"
    COMPARING = "comparing"


class DifferenceKind(StrEnum):
    """What differs: an original that no row means, or a row whose original or variant is not there."""

    ORIGINAL_WITHOUT_ROW = "original_without_row"
    ROW_WITHOUT_ORIGINAL = "row_without_original"
    ROW_WITHOUT_VARIANT = "row_without_variant"


@dataclass(frozen=True, kw_only=True)
class Reconciliation:
    """One row: how far the reconciliation is, of which a stack has one.

    `nights` have begun, the latest one at `began_at`. Its phase is done up to `after`: the name of a difference, a
    place in the list of rows, or an image's id. It has `compared` so many images and `found` so many differences among
    them. When it began, `recorded` ones were still there, `confirmed` of them for a day. `ended_at` is when the latest
    complete night ended. It rests without `due_at` until a night is to begin.
    """

    version: int = 1
    nights: int = 0
    phase: Phase = Phase.WAITING
    began_at: Milliseconds = 0
    after: str | None = None
    compared: int = 0
    found: int = 0
    recorded: int = 0
    confirmed: int = 0
    ended_at: Milliseconds | None = None
    due_at: Milliseconds | None = None

    @property
    def bounds(self) -> tuple[str, str]:
        """What all ids of the night's slice come after, and before."""
        number = (self.nights - 1) % SLICES
        return _bound(number), _bound(number + 1)

    @property
    def before(self) -> Milliseconds:
        """Objects and rows are compared that are older than that."""
        return self.began_at - AGE_SECONDS * 1000


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A difference between the buckets and the table, at an object's `key`: when it was seen first, and when a later
    look has confirmed it, if one has."""

    kind: DifferenceKind
    image_id: str
    key: str
    first_seen: Milliseconds
    confirmed_at: Milliseconds | None = None

    @property
    def name(self) -> str:
        """What tells it from all others."""
        return f"{self.kind}#{self.key}"


@dataclass(frozen=True, kw_only=True)
class Objects:
    """What the buckets hold of an image: the versions of its original, and the keys of its variants."""

    versions: tuple[StoredVersion, ...] = ()
    keys: frozenset[str] = frozenset()

    def __or__(self, others: Objects) -> Objects:
        return Objects(versions=self.versions + others.versions, keys=self.keys | others.keys)


NO_OBJECTS = Objects()


def begin(row: Reconciliation, *, now: Milliseconds) -> Reconciliation:
    """The row in its next night."""
    return replace(row, nights=row.nights + 1, phase=Phase.CONFIRMING, began_at=now, after=None, compared=0, found=0)


def looked_again(row: Reconciliation, known: Iterable[Difference]) -> Reconciliation:
    """The row after its night has looked again at what was recorded, of which these `known` ones are still there."""
    still = list(known)
    confirmed = sum(difference.confirmed_at is not None for difference in still)
    return replace(row, phase=Phase.LISTING, after=None, recorded=len(still), confirmed=confirmed)


def end(row: Reconciliation, *, now: Milliseconds) -> Reconciliation:
    """The row whose night has compared all of its slice."""
    return replace(row, phase=Phase.WAITING, after=None, ended_at=now, due_at=None)


def confirm(difference: Difference, *, now: Milliseconds) -> Difference:
    """The difference that is still there: confirmed if it was first seen long enough ago."""
    # guard: bulk-reconcile-seen-twice
    if difference.confirmed_at is not None or now - difference.first_seen < SECOND_LOOK_SECONDS * 1000:
        return difference
    return replace(difference, confirmed_at=now)


def differences_of(
    image_id: str, row: Image | None, stored: Objects, *, before: Milliseconds, now: Milliseconds
) -> tuple[Difference, ...]:
    """How the image's row and its objects differ, of what is older than `before`. A tombstone names no objects, which
    the sweeper removes."""

    def difference(kind: DifferenceKind, key: str) -> Difference:
        return Difference(kind=kind, image_id=image_id, key=key, first_seen=now)

    if row is None:
        is_one = is_orphan(stored.versions, before)
        return (difference(DifferenceKind.ORIGINAL_WITHOUT_ROW, original_key(image_id)),) if is_one else ()
    found = []
    there = {version.version_id for version in stored.versions if not version.is_marker}
    # What was announced, or is being fetched, has no original yet.
    if row.has_original and row.source.version_id not in there:
        found.append((row.accepted_at or row.created_at, DifferenceKind.ROW_WITHOUT_ORIGINAL, original_key(image_id)))
    if row.outcome is Status.DONE:
        missing = (variant.key for variant in row.variants if variant.key not in stored.keys)
        found += [(row.ended_at or row.created_at, DifferenceKind.ROW_WITHOUT_VARIANT, key) for key in missing]
    # guard: bulk-reconcile-young-rows-wait
    return tuple(difference(kind, key) for since, kind, key in found if since < before)


def _bound(number: int) -> str:
    return digits_of(number * (8 << 5 * (_BOUND_DIGITS - 1)) // SLICES, _BOUND_DIGITS)
