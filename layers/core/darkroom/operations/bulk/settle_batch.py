"""Looks at one batch: ends it when all of its images have ended, and mends what a crash or an uncounted write
has left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from darkroom.domain.bulk.batches import (
    NO_COUNTS,
    RESERVED_SECONDS,
    Batch,
    BatchState,
    Counts,
    Look,
    Stop,
    close,
    counts_of,
    end,
    is_quiet,
    look_again,
    look_on,
    stop,
    stops_by,
)
from darkroom.domain.bulk.members import Change, Member, MemberState, may_still_cancel, of_row
from darkroom.domain.images.image import Image
from darkroom.domain.images.transitions import cancel_work, delete
from darkroom.domain.kernel.errors import Retryable
from darkroom.operations.bulk.give_turns import GiveTurnsPorts, begin, give_turns
from darkroom.ports.bulk import Batches
from darkroom.ports.kernel import Fenced, UnreadableRow

_TRIES = 5
"""A client, whoever counts, or another look may each come between reading a batch and writing it; not five in a row."""

_SOME, _MOST = 50, 1000
"""How many images are compared with their rows before their changes are counted; and how many are listed before a look
may rest."""

SHARE_SECONDS = 5
"""How long a look lasts before it is the next batch's turn, or left to the sweep: with a million images it takes
minutes."""

type Settled = Literal["gone", "ended", "later", "goes_on"]
"""What came of a look at bulk work: it is gone or has ended before, it has ended now, it is looked at later, or there
was no time for all of it: then the look goes on where it was left."""


class BatchesPorts(Protocol):
    """What changing a batch needs."""

    @property
    def batches(self) -> Batches:
        """The batches."""


@dataclass(frozen=True, kw_only=True)
class SettleBatchPorts(GiveTurnsPorts):
    """What a look at a batch needs."""


def settle_batch(
    ports: SettleBatchPorts,
    batch_id: str,
    *,
    out_of_time: Callable[[], bool] = lambda: False,
    unreadable: Callable[[UnreadableRow], object] = lambda _: None,
) -> Settled:
    """Looks at the batch: closes it after its time, gives turns, and, if all of its images seem to have ended or
    nothing was counted for a while, compares what it knows of each image with the image's row.

    It ends only if a list of its images and its sums agree that all have ended, or two looks saw the same list. The
    look rests after SHARE_SECONDS, or when it is `out_of_time`. An item of an image that is `unreadable` has not ended,
    and keeps none of the others from what is due to them. Raises Retryable if a table cannot answer, and UnreadableRow.
    """
    batch = ports.batches.get(batch_id)
    if batch is None or batch.state.has_ended:
        return "gone"
    now = ports.clock()
    rests_at = now + SHARE_SECONDS * 1000

    def rests() -> bool:
        # guard: bulk-looks-in-turns
        return out_of_time() or ports.clock() >= rests_at

    if now >= batch.closes_at:  # guard: bulk-closes-by-itself
        batch = change_batch(ports, batch, lambda row: close(row, now=now))
    counted = ports.batches.sums(batch_id)
    if stops_by(batch, counted.counts):
        batch = change_batch(ports, batch, lambda row: stop(row, Stop.FAILURE, now=now))
    given = give_turns(ports, batch)
    quiet = is_quiet(batch, counted, now) and not given
    seems_over = batch.state is BatchState.CLOSED and counted.counts.ended == counted.counts.images
    look = Look(is_full=bool(quiet or seems_over or batch.stops or batch.seen))
    if batch.look is not None and batch.look.covers(look):  # guard: bulk-look-goes-on
        look = batch.look
    if not look.is_full and batch.parallelism is None:
        return _later(ports, batch, is_quiet=False)
    # A turn that a crash has left half given takes up room, also while other images go on.
    looked = _look(ports, batch, look, rests, unreadable)  # guard: bulk-turns-mended-meanwhile
    if looked.changed:  # some wait of whose acceptance nobody has heard, or have ended unheard
        give_turns(ports, batch)
    if not looked.is_over:
        with suppress(Fenced):  # whoever changed it has said when it is due
            ports.batches.change(batch, look_on(batch, looked.look, now=ports.clock()))
        return "goes_on"
    counts = looked.look.counts
    if not look.is_full:
        return _later(ports, batch, is_quiet=False)
    if batch.state is not BatchState.CLOSED or counts.ended != counts.images:
        return _later(ports, batch, is_quiet=quiet and not looked.changed)
    # guard: bulk-end-seen-twice
    if counts not in (ports.batches.sums(batch_id).counts, batch.seen):
        return _later(ports, batch, is_quiet=quiet, seen=counts)
    return _end(ports, batch, counts)


def change_batch(ports: BatchesPorts, batch: Batch, decide: Callable[[Batch], Batch]) -> Batch:
    """Writes what is decided of the batch as it is now; returns the batch afterwards, which may have ended. Raises
    Retryable if it keeps changing, or is gone."""
    current: Batch | None = batch
    for _ in range(_TRIES):
        if current is None:
            break
        if current.state.has_ended or (after := decide(current)) == current:
            return current
        try:
            return ports.batches.change(current, after)
        except Fenced as lost:
            current = lost.current
    raise Retryable("the batch changed under every attempt to change it")


def _later(ports: SettleBatchPorts, batch: Batch, *, is_quiet: bool, seen: Counts | None = None) -> Settled:
    now = ports.clock()
    with suppress(Fenced):  # whoever changed it has said when it is due
        ports.batches.change(batch, look_again(batch, now=now, is_quiet=is_quiet, seen=seen))
    return "later"


def _end(ports: SettleBatchPorts, batch: Batch, counts: Counts) -> Settled:
    """Ends the batch, also if a look that saw less has just postponed it: no image joins one that is closed."""
    current: Batch | None = batch
    for _ in range(_TRIES):
        if current is None or current.state.has_ended:
            break
        try:
            ports.batches.change(current, end(current, counts, now=ports.clock()))  # guard: bulk-ends-once
        except Fenced as lost:
            current = lost.current  # guard: bulk-ends-although-postponed
        else:
            return "ended"
    return "later"


@dataclass(frozen=True, kw_only=True)
class _Looked:
    """How far a look has come, whether it has changed any image, or met one that is unreadable, and whether it is
    over."""

    look: Look
    changed: bool = False
    is_over: bool = True


def _look(
    ports: SettleBatchPorts,
    batch: Batch,
    look: Look,
    rests: Callable[[], bool],
    unreadable: Callable[[UnreadableRow], object],
) -> _Looked:
    """Compares each image after those that were looked at with its row, unless it has ended, until there are no more or
    the look rests; a call that fails ends it too, unless it is the first."""
    looked = _Looked(look=look)
    try:
        for portion in _portions(ports.batches.all_members(batch.batch_id, after=look.after), look):
            looked = _look_at(ports, batch, looked, portion, unreadable)
            if rests():
                return replace(looked, is_over=False)
    except Retryable:
        if looked.look.after == look.after:  # guard: bulk-look-fails-at-first-call
            raise
        return replace(looked, is_over=False)
    return looked


type _Portion = Mapping[str, Member | UnreadableRow]


def _portions(members: Iterable[tuple[str, Member | UnreadableRow]], look: Look) -> Iterator[_Portion]:
    """The images in parts: few enough to list, with few enough to compare."""
    portion: dict[str, Member | UnreadableRow] = {}
    compared = 0
    for image_id, member in members:
        portion[image_id] = member
        compared += isinstance(member, Member) and _is_compared(member, look)
        if len(portion) == _MOST or compared == _SOME:
            yield portion
            portion, compared = {}, 0
    if portion:
        yield portion


def _is_compared(member: Member, look: Look) -> bool:
    return member.state is MemberState.WORKING or (look.is_full and not member.state.has_ended)


def _look_at(
    ports: SettleBatchPorts,
    batch: Batch,
    looked: _Looked,
    portion: _Portion,
    unreadable: Callable[[UnreadableRow], object],
) -> _Looked:
    readable = {image_id: member for image_id, member in portion.items() if isinstance(member, Member)}
    for row in portion.values():
        if isinstance(row, UnreadableRow):
            unreadable(row)
    compared = {image_id: member for image_id, member in readable.items() if _is_compared(member, looked.look)}
    found = _compare(ports, batch, compared) if compared else _Compared()
    counts = counts_of(member for image_id, member in readable.items() if image_id not in compared) + found.counts
    counts += Counts(working=len(portion) - len(readable))  # guard: bulk-unreadable-has-not-ended
    look = replace(looked.look, after=list(portion)[-1], counts=looked.look.counts + counts)
    return replace(looked, look=look, changed=looked.changed or found.changed or len(readable) < len(portion))


@dataclass(frozen=True, kw_only=True)
class _Compared:
    """Images of a batch as they are after a look at them, and whether that has changed any."""

    counts: Counts = NO_COUNTS
    changed: bool = False


def _compare(ports: SettleBatchPorts, batch: Batch, members: Mapping[str, Member]) -> _Compared:
    rows = ports.images.get_all([member.image_id for member in members.values()])
    now_are: dict[str, Member | None] = {}
    for name, member in members.items():
        row = rows.get(member.image_id)
        if isinstance(row, UnreadableRow):  # a newer version's, which will say when it has ended
            now_are[name] = member
        elif row is None or not member.is_in(row):
            now_are[name] = _without_row(ports, member)
        else:
            now_are[name] = _with_row(ports, batch, member, row)
    changes = [Change(member, now_are[name]) for name, member in members.items() if now_are[name] != member]
    if changes and not ports.batches.count(batch, changes, now=ports.clock()):
        return _Compared(counts=counts_of(members.values()), changed=True)  # the next look sees what was counted
    return _Compared(
        counts=counts_of(member for member in now_are.values() if member is not None), changed=bool(changes)
    )


def _with_row(ports: SettleBatchPorts, batch: Batch, member: Member, image: Image) -> Member:
    if batch.stops is not None and may_still_cancel(member, image):
        now = ports.clock()
        try:
            image = ports.images.change(
                image,
                delete(image, now=now) if member.run is None else cancel_work(image, now=now),
                fence=("version",),  # guard: bulk-cancel-fence
            )
        except Fenced:
            return member  # the next look decides on what it is then
    after = of_row(member, image)
    if after.state is MemberState.WORKING and image.awaits_turn:  # guard: bulk-lost-turn-mended
        begin(ports, member, image)
    return replace(after, version=member.version) if after.state is member.state else after


def _without_row(ports: SettleBatchPorts, member: Member) -> Member | None:
    """The image whose row was not there, or said nothing of the work beside it: none ever comes of a request that has
    died, and a tombstone is forgotten."""
    # guard: bulk-row-may-yet-come
    if member.state is MemberState.JOINED and ports.clock() - member.joined_at < RESERVED_SECONDS * 1000:
        return member
    row = ports.images.get(member.image_id)  # no single look ends an image
    if row is not None and member.is_in(row):  # guard: bulk-absence-seen-twice
        return member
    return None if member.state is MemberState.JOINED else replace(member, state=MemberState.CANCELLED)
