"""Taking far-off images out of the hold queue: they are written down together, and somebody is set to wake them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from darkroom.domain.errors import Retryable
from darkroom.domain.hold import Batch, Entry, batch_key, batches_of, execution_name, is_near, read_batch
from darkroom.domain.instants import Milliseconds
from darkroom.domain.message import Message
from darkroom.operations.enqueue import seconds_until
from darkroom.ports import Alarms, Clock, Holds, Lanes


@dataclass(kw_only=True)
class Holding:
    """What became of the entries: those that must come again, by their places, and what stood in their way; how many
    went to their lanes, and how many batches hold the others."""

    failed: list[int] = field(default_factory=list)
    causes: list[Retryable] = field(default_factory=list)
    sent: int = 0
    held: int = 0
    batches: int = 0


def hold_images(
    entries: Sequence[Entry],
    *,
    lanes: Lanes,
    holds: Holds,
    alarms: Alarms,
    clock: Clock,
    out_of_time: Callable[[], bool] = lambda: False,
) -> Holding:
    """Sees to it that every entry comes to its lane when it is due; what cannot be promised now is `failed`.

    An entry may be settled once its batch is stored and its waking is set, in that order: a repetition stores the same
    batch and finds it set. Nothing is asked of the rows: whoever releases them asks then.
    """
    holding = Holding()
    now = clock()
    places: dict[Entry, list[int]] = {}
    for place, entry in enumerate(entries):
        places.setdefault(entry, []).append(place)  # one that was delivered twice waits once
    near = sorted((entry for entry in places if is_near(entry, now)), key=lambda entry: entry.process_at)
    _send(near, places, holding, lanes=lanes, clock=clock)
    batches = batches_of([entry for entry in places if not is_near(entry, now)], now)
    # The largest last: if this dies, all of its event comes again, and what was promised is promised twice.
    for batch in sorted(batches, key=lambda batch: len(batch.entries)):
        try:
            if out_of_time():
                raise Retryable("time ran out")
            _store(batch, holds=holds, alarms=alarms)
        except Retryable as error:
            holding.causes.append(error)
            holding.failed += [place for entry in batch.entries for place in places[entry]]
        else:
            holding.batches += 1
            holding.held += len(batch.entries)
    return holding


def _send(
    near: Sequence[Entry], places: dict[Entry, list[int]], holding: Holding, *, lanes: Lanes, clock: Clock
) -> None:
    if not near:
        return
    try:
        holding.sent = lanes.send_all([parcel_of(entry, clock()) for entry in near])
    except Retryable as error:  # the far-off ones are no lane's business
        holding.causes.append(error)
    else:
        if holding.sent < len(near):
            holding.causes.append(Retryable("not all messages could be sent"))
    holding.failed += [place for entry in near[holding.sent :] for place in places[entry]]


def _store(batch: Batch, *, holds: Holds, alarms: Alarms) -> None:
    dumped = batch.dumped()
    key = batch_key(batch, dumped)
    holds.put(key, dumped)
    alarms.set(execution_name(key), key, batch.wake_at)


def wake_again(key: str, *, holds: Holds, alarms: Alarms) -> bool:
    """Sets a batch to wake that an execution has given up; whether there was anything left of it to wake.

    It goes on from its latest turn where it takes turns, and from its beginning where it does not: what was released of
    it before is begun once. Raises Retryable, and UnreadableBatch.
    """
    dumped = holds.get(key)
    if dumped is None:
        return False
    alarms.set(execution_name(key), key, read_batch(dumped).wake_at)
    return True


def parcel_of(entry: Entry, now: Milliseconds) -> tuple[Message, int]:
    """The entry's message for its lane, and the delay that is left to it."""
    return entry.message.model_copy(update={"process_at": None}), seconds_until(entry.process_at, now)
