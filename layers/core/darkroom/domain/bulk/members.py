"""What a batch knows of each of its images: one item per image, changed by the writes of its row that are newer than
what it says."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.instants import Milliseconds

SHARDS = 8
"""The partitions of a batch's images. At 500 images a second each takes 63: each image costs five write units (joining
one, and two transactional ones each for its acceptance and its end), so 313 of a partition's 1,000."""

MOST_CHANGES = 99
"""How many images one transaction changes at most: DynamoDB takes 100 items, and one is the sum."""


class MemberState(StrEnum):
    """How far an image is, as its batch knows. `joined`: a request has named the batch, and its image may follow, or
    awaits its bytes; `waiting`: it waits until it is its turn; `working`: it may be begun."""

    JOINED = "joined"
    WAITING = "waiting"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is to be done for it."""
        return self not in (MemberState.JOINED, MemberState.WAITING, MemberState.WORKING)


@dataclass(frozen=True, kw_only=True)
class Member:
    """An image of a batch; `version` is its row's after the write that said so, 0 for none."""

    batch_id: str
    image_id: str
    state: MemberState = MemberState.JOINED
    version: int = 0
    joined_at: Milliseconds

    @property
    def shard(self) -> int:
        """Its partition."""
        return shard_of(self.image_id)


def shard_of(image_id: str) -> int:
    """The partition of an image of a batch, spread evenly by CRC-32."""
    return zlib.crc32(image_id.encode()) % SHARDS


class Change(NamedTuple):
    """What an image's item was, None for none, and what it becomes, None to be left out."""

    before: Member | None
    after: Member | None


_OF_ENDS = {
    Status.DONE: MemberState.DONE,
    Status.FAILED: MemberState.FAILED,
    Status.CANCELLED: MemberState.CANCELLED,
    Status.EXPIRED: MemberState.EXPIRED,
}


def after_write(member: Member, image: Image) -> Member | None:
    """The image after a write of its row, None if the batch knows of a later one."""
    # guard: bulk-older-write-ignored
    return None if image.version <= member.version else of_row(member, image)


def of_row(member: Member, image: Image) -> Member:
    """The image as its row says."""
    if image.outcome.is_terminal:
        state = _OF_ENDS[image.outcome]
    elif not image.has_original:
        state = MemberState.JOINED
    elif not image.awaits_turn:
        state = MemberState.WORKING
    else:  # its turn is given before its row says so
        state = MemberState.WORKING if member.state is MemberState.WORKING else MemberState.WAITING
    return replace(member, state=state, version=max(member.version, image.version))


def may_still_cancel(image: Image) -> bool:
    """Whether nothing of an image was begun, so that a batch that stops can take it back."""
    # The attempts of one that is being fetched are those of fetching.
    unbegun = image.status is Status.FETCHING or image.attempt == 0
    return unbegun and not image.outcome.is_terminal and image.status is not Status.PROCESSING


def differences(changes: Iterable[Change]) -> Mapping[str, int]:
    """What the changes add to a batch's sums, by state; `joined` is in none."""
    added = Counter[str]()
    for before, after in changes:
        if before is not None:
            added[before.state] -= 1
        if after is not None:
            added[after.state] += 1
    return {state: figure for state, figure in added.items() if figure and state != MemberState.JOINED}


def transactions_of(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    """The changes in as few parts as can be, each for one transaction."""
    for first in range(0, len(changes), MOST_CHANGES):
        yield changes[first : first + MOST_CHANGES]
