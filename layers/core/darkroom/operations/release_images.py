"""Letting a batch go when it wakes: what is still wanted goes to its lane, or is held once more, closer by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import batched

from darkroom.domain.errors import Retryable
from darkroom.domain.hold import FULL_BUCKET, LANE_DELAY_SECONDS, RELEASE, Batch, Entry, is_near, read_batch
from darkroom.domain.image import Image, Status
from darkroom.domain.instants import Milliseconds
from darkroom.domain.lanes import LANES
from darkroom.operations.enqueue import seconds_until
from darkroom.ports import Calendar, Clock, HoldQueue, Holds, Images, Lanes

CHUNK = 100
"""Rows that are read at once: as many as BatchGetItem takes."""

AGAIN_SECONDS = 5
"""How long a release waits after a call that failed in its midst."""


@dataclass(frozen=True, kw_only=True)
class Released:
    """How far a release has come: `position` entries are settled. Where it is not `done`, it goes on at `wake_at`;
    `begins_at` is when the stretch of its lane begins that is reserved for it, None where none is.

    `sent` went to their lanes and `held` are held once more; `stale` were cancelled, moved or are gone, and
    `latest_seconds` is how late the latest of those sent was, 0 where none was.
    """

    done: bool
    position: int
    wake_at: Milliseconds
    begins_at: Milliseconds | None = None
    sent: int = 0
    held: int = 0
    stale: int = 0
    latest_seconds: float = 0.0


def release_images(
    key: str,
    *,
    position: int,
    begins_at: Milliseconds | None,
    images: Images,
    lanes: Lanes,
    hold_queue: HoldQueue,
    holds: Holds,
    calendar: Calendar,
    clock: Clock,
    out_of_time: Callable[[], bool],
) -> Released:
    """Settles the batch under `key` from `position` on, and removes it when all is settled.

    Where many have the same time, they come to their lane one after the other, in a stretch of it that is reserved when
    the first of them goes: the state between two turns is `position` and `begins_at`.

    Each entry's row is read first (consistently): only what still waits for this time goes. It may be done again from
    any point: a message that was sent twice finds its image begun. Raises Retryable where nothing could be settled, and
    UnreadableBatch.
    """
    dumped = holds.get(key)
    if dumped is None:  # an earlier attempt has settled and removed it, and its answer was lost
        return Released(done=True, position=position, wake_at=_whole_second(clock()))
    batch = read_batch(dumped)
    if begins_at is None and batch.is_release and len(batch.entries) >= FULL_BUCKET:
        begins_at = _reserve(batch, calendar=calendar, now=clock())
    tally = _Tally(position=position, begins_at=begins_at)
    for chunk in batched(batch.entries[position:], CHUNK, strict=False):
        wake_at = _not_before(batch, chunk, tally, now=clock())
        if wake_at is None and out_of_time():
            wake_at = _whole_second(clock())
        if wake_at is not None:
            return tally.released(done=False, wake_at=wake_at)
        try:
            _settle(batch, chunk, tally, images=images, lanes=lanes, hold_queue=hold_queue, clock=clock)
        except Retryable:
            if tally.position == position:
                raise
            # What was settled is not gone through again.
            return tally.released(done=False, wake_at=_whole_second(clock() + AGAIN_SECONDS * 1000))
    holds.delete(key)
    return tally.released(done=True, wake_at=_whole_second(clock()))


@dataclass(kw_only=True)
class _Tally:
    position: int
    begins_at: Milliseconds | None
    sent: int = 0
    held: int = 0
    stale: int = 0
    latest_seconds: float = 0.0

    def released(self, *, done: bool, wake_at: Milliseconds) -> Released:
        return Released(
            done=done,
            position=self.position,
            wake_at=wake_at,
            begins_at=self.begins_at,
            sent=self.sent,
            held=self.held,
            stale=self.stale,
            latest_seconds=self.latest_seconds,
        )


def _reserve(batch: Batch, *, calendar: Calendar, now: Milliseconds) -> Milliseconds:
    first = batch.entries[0]
    rate = LANES[first.message.lane].release_per_second
    return calendar.reserve(
        first.message.lane,
        not_before=max(first.process_at, now),
        milliseconds=round(1000 * len(batch.entries) / rate),
    )


def _slot(entry: Entry, place: int, begins_at: Milliseconds | None) -> Milliseconds:
    """When the entry in that place of its batch comes to its lane: at its time, or when it is its turn after that."""
    if begins_at is None:
        return entry.process_at
    return max(entry.process_at, begins_at + round(1000 * place / LANES[entry.message.lane].release_per_second))


def _not_before(batch: Batch, chunk: Sequence[Entry], tally: _Tally, *, now: Milliseconds) -> Milliseconds | None:
    """When the chunk may go, where that is not now because it is further ahead than its lane can hold."""
    if not batch.is_release:
        return None
    slots = [_slot(entry, tally.position + number, tally.begins_at) for number, entry in enumerate(chunk)]
    if max(slots) <= now + LANE_DELAY_SECONDS * 1000:
        return None
    # Later than it could be, so that a turn sends the more; and no later than keeps the lead of a release.
    return _whole_second(max(min(slots) - RELEASE.lead_seconds * 1000, max(slots) - LANE_DELAY_SECONDS * 1000))


def _settle(
    batch: Batch,
    chunk: Sequence[Entry],
    tally: _Tally,
    *,
    images: Images,
    lanes: Lanes,
    hold_queue: HoldQueue,
    clock: Clock,
) -> None:
    rows = images.get_all([entry.message.image_id for entry in chunk])
    wanted = [
        (entry, _slot(entry, place, tally.begins_at))
        for place, entry in enumerate(chunk, start=tally.position)
        if is_awaited(entry, rows.get(entry.message.image_id))
    ]
    now = clock()
    # Whatever woke so late that its lane can hold it by now goes there at once: the hold queue would cost it a minute.
    going = [(entry, slot) for entry, slot in wanted if batch.is_release or is_near(entry, now)]
    staying = [entry for entry, _ in wanted if not batch.is_release and not is_near(entry, now)]
    sent = lanes.send_all([(entry.message, seconds_until(slot, now)) for entry, slot in going])
    late = ((max(clock(), slot) - entry.process_at) / 1000 for entry, slot in going[:sent])
    tally.latest_seconds = max(tally.latest_seconds, *late, 0.0)
    tally.sent += sent
    held = hold_queue.put_all([entry.message.model_copy(update={"process_at": entry.process_at}) for entry in staying])
    tally.held += held
    if sent + held < len(wanted):
        # The next attempt begins with this chunk: what of it was sent already is sent twice, and begun once.
        raise Retryable("not all messages could be sent")
    tally.stale += len(chunk) - len(wanted)
    tally.position += len(chunk)


def is_awaited(entry: Entry, image: Image | None) -> bool:
    """Whether the image still waits for the time that the entry remembers."""
    message = entry.message
    return (
        image is not None
        and image.status is Status.SCHEDULED
        and (image.run, image.schedule) == (message.run, message.schedule)
    )


def _whole_second(instant: Milliseconds) -> Milliseconds:
    """Not before `instant`: Step Functions cuts a Timestamp's milliseconds off."""
    return -(-instant // 1000) * 1000
