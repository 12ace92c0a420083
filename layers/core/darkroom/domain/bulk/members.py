"""What a batch knows of each of its images, and of each work beside an image: one item each, changed by the writes of
the image's row that are newer than what it says."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from darkroom.domain.images.image import Image, Status, Work
from darkroom.domain.kernel.errors import BATCH_STOPPED
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
    """An image of a batch, or work beside an image, for which its `run` is; `version` is the row's after the write that
    said so, 0 for none."""

    batch_id: str
    image_id: str
    run: int | None = None
    state: MemberState = MemberState.JOINED
    version: int = 0
    joined_at: Milliseconds

    @property
    def name(self) -> str:
        """What its batch knows it by: an image may be in a batch, and works beside it in others or in the same."""
        return self.image_id if self.run is None else f"{self.image_id}#{self.run}"

    @property
    def shard(self) -> int:
        """Its partition."""
        return shard_of(self.name)

    def work_in(self, image: Image) -> Work | None:
        """The work that it is, as the image's row has it."""
        works = (work for work in image.works if (work.run, work.batch) == (self.run, self.batch_id))
        return next(works, None)

    def is_in(self, image: Image) -> bool:
        """Whether the image's row says that it belongs to the batch, or has belonged to it."""
        if self.run is None:
            return image.batch == self.batch_id
        # A row describes the latest works.
        return self.work_in(image) is not None or (bool(image.works) and self.run < image.works[0].run)

    def has_turn_ahead(self, image: Image) -> bool:
        """Whether what the image's row awaits is its turn."""
        run = None if image.work is None else image.run
        return image.awaits_turn and self.is_in(image) and self.run == run  # guard: bulk-work-turn-is-its-own


def members_of(image: Image) -> Iterator[Member]:
    """What the image's row, as a write has left it, is to batches: the image, and the work that its latest run is
    for."""
    if image.batch is not None:
        yield Member(batch_id=image.batch, image_id=image.image_id, joined_at=image.created_at)
    work = image.latest_work
    if work is not None and work.batch is not None:
        yield Member(batch_id=work.batch, image_id=image.image_id, run=work.run, joined_at=work.requested_at)


def shard_of(name: str) -> int:
    """The partition of what a batch knows by that name, spread evenly by CRC-32."""
    return zlib.crc32(name.encode()) % SHARDS


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
    if member.run is not None:
        return replace(member, state=_of_work(member, image), version=max(member.version, image.version))
    if image.outcome.is_terminal:
        state = _OF_ENDS[image.outcome]
    elif not image.has_original:
        state = MemberState.JOINED
    else:
        state = _of_unfinished(member, image)
    return replace(member, state=state, version=max(member.version, image.version))


def _of_work(member: Member, image: Image) -> MemberState:
    work = member.work_in(image)
    if work is None:  # the row has forgotten it
        return MemberState.CANCELLED
    if work.ended_at is not None:
        is_cancelled = work.error is not None and work.error.code == BATCH_STOPPED
        failed = MemberState.CANCELLED if is_cancelled else MemberState.FAILED
        return failed if work.failed else MemberState.DONE
    if image.is_deleted or work.run != image.run:
        return MemberState.CANCELLED
    if image.status.is_terminal:  # an earlier version, that knows of no work, has ended it
        return _OF_ENDS[image.status]
    return _of_unfinished(member, image)


def _of_unfinished(member: Member, image: Image) -> MemberState:
    if not image.awaits_turn or member.state is MemberState.WORKING:  # a turn is given before its row says so
        return MemberState.WORKING
    return MemberState.WAITING


def may_still_cancel(member: Member, image: Image) -> bool:
    """Whether nothing of it was begun, so that a batch that stops can take it back."""
    if member.run is not None:
        is_under_way = image.work is not None and image.work == member.work_in(image)
        return is_under_way and image.attempt == 0 and image.status is Status.PENDING
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
