"""Takes far-off images from the hold queue: stores them in batches, and sets an execution to wake each batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from darkroom.domain.kernel.errors import Retryable, Unplaceable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import HOLD
from darkroom.domain.kernel.message import Message, read_message
from darkroom.domain.kernel.signature import NotVerified, Received, VerificationFailure
from darkroom.domain.schedules.hold import (
    Batch,
    HeldMessage,
    batch_key,
    batches_of,
    execution_name,
    is_near,
    read_batch_dead_letter,
    unplaceable_because,
)
from darkroom.operations.images.enqueue import seconds_until
from darkroom.operations.kernel.check_message import CheckPorts, reject_message, verify
from darkroom.operations.schedules.stored_batch import stored_batch
from darkroom.ports.images import Lanes
from darkroom.ports.kernel import Clock
from darkroom.ports.schedules import Holds, WakeUps


@dataclass(kw_only=True)
class Holding:
    """What became of the messages: those that must come again, by their index, each with its error; how many images
    went to their lanes, how many batches hold the others, and how many given-up batches wake again. Those that did not
    verify are `rejected`, by their index, each with the reason: they may go.

    The error is Retryable, or the message's own: UnreadableMessage, Unplaceable or UnreadableBatch. Anything else is a
    bug.
    """

    failed: dict[int, Exception] = field(default_factory=dict)
    sent: int = 0
    held: int = 0
    batches: int = 0
    woken: int = 0
    rejected: dict[int, VerificationFailure] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class HoldImagesPorts(CheckPorts):
    """What holding needs, besides what checks messages, and the names of the existing lanes."""

    lanes: Lanes
    holds: Holds
    wake_ups: WakeUps
    clock: Clock
    known_lanes: Collection[str]


def hold_images(ports: HoldImagesPorts, messages: Sequence[Received], *, out_of_time: Callable[[], bool]) -> Holding:
    """Makes sure that the image of every message comes to its lane when it is due, and that every batch whose dead
    letter an operator has moved back wakes again; a message for which that cannot be promised now is `failed`.

    A message may be settled once its batch is stored and its wake-up is set, in that order: a repetition stores the
    same batch and finds it set. The rows are not read: the release reads them. Whatever is wrong with one message,
    batch or lane, the others continue.
    """
    event = _Arrivals(ports=ports)
    for place, message in enumerate(messages):
        event.read(place, message)
    event.send_near()
    # The largest last: if this process dies, all of its event comes again, and what was promised is promised twice.
    for batch in sorted(event.batches(), key=lambda batch: len(batch.entries)):
        event.store(batch, out_of_time=out_of_time)
    # After the images, whose time may be close: an operator may have moved thousands of dead letters back.
    for place, key in event.given_up.items():
        event.wake(place, key, out_of_time=out_of_time)
    # Last: however many somebody sends, no image waits for them.
    for place, mistrust in event.mistrusted.items():
        event.reject(place, messages[place], mistrust, out_of_time=out_of_time)
    return event.holding


@dataclass(kw_only=True)
class _Arrivals:
    """Messages that came together, by what is to be done with them."""

    ports: HoldImagesPorts
    holding: Holding = field(default_factory=Holding)
    given_up: dict[int, str] = field(default_factory=dict)
    places: dict[HeldMessage, list[int]] = field(default_factory=dict)
    mistrusted: dict[int, VerificationFailure] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.now = self.ports.clock()

    def read(self, place: int, received: Received) -> None:
        """Determines what the message asks for, if it is one of ours."""
        try:
            # guard: signatures-hold-queue
            verify(self.ports.message_keys, HOLD, received, may_be_unsigned=_is_of_the_state_machine)
            dead_letter = read_batch_dead_letter(received.body)
            if dead_letter is not None:  # an operator has moved it back
                self.given_up[place] = dead_letter.batch
                return
            message = read_message(received.body)
            # A message without a time was put here by hand: it belongs in its lane, now.
            entry = HeldMessage(
                message=message.model_copy(update={"process_at": None}), process_at=message.process_at or 0
            )
            reason = unplaceable_because(entry, self.now, self.ports.known_lanes)
            if reason is not None:
                raise Unplaceable(reason)  # guard: hold-unplaceable-refused
            self.places.setdefault(entry, []).append(place)  # one that was delivered twice waits once
        except NotVerified as error:
            self.mistrusted[place] = error.mistrust
        # guard: hold-message-bug-isolated
        except Exception as error:  # a message that trips a bug must not keep the others waiting
            self.holding.failed[place] = error

    def send_near(self) -> None:
        """Sends the messages that a lane can hold itself; a lane that does not answer does not affect other lanes'
        images."""
        near = sorted((entry for entry in self.places if is_near(entry, self.now)), key=_by_lane_and_time)
        for lane, group in groupby(near, key=lambda entry: entry.message.lane):  # guard: hold-sends-per-lane
            entries = list(group)
            try:
                unsent = self.ports.lanes.send_all(lane, [send_of(entry, self.ports.clock()) for entry in entries])
            # guard: hold-lane-bug-isolated
            except Exception as error:  # also a bug: the far-off ones are no lane's business
                self._fail(entries, error)
                continue
            for number, reason in unsent.items():
                self._fail([entries[number]], reason)
            self.holding.sent += len(entries) - len(unsent)

    def batches(self) -> list[Batch]:
        """The batches in which the far-off images wait."""
        far = [entry for entry in self.places if not is_near(entry, self.now)]
        try:
            return list(batches_of(far, self.now))
        except Exception:  # one of them hits a bug: whichever does alone is left out
            # guard: hold-wheel-bug-isolated
            return list(batches_of([entry for entry in far if self._has_a_bucket(entry)], self.now))

    def _has_a_bucket(self, entry: HeldMessage) -> bool:
        try:
            list(batches_of([entry], self.now))
        except Exception as error:
            self._fail([entry], error)
            return False
        return True

    def store(self, batch: Batch, *, out_of_time: Callable[[], bool]) -> None:
        """Stores the batch and sets it to wake."""
        try:
            if out_of_time():
                raise Retryable("time ran out")
            dumped = batch.dumped()
            key = batch_key(batch, dumped)
            self.ports.holds.put(key, dumped)
            self.ports.wake_ups.set(execution_name(key), key, batch.wake_at)
        # guard: hold-batch-bug-isolated
        except Exception as error:  # also a bug: the other batches are as good as without it
            self._fail(batch.entries, error)  # guard: hold-message-until-wake-set
        else:
            self.holding.batches += 1
            self.holding.held += len(batch.entries)

    def wake(self, place: int, key: str, *, out_of_time: Callable[[], bool]) -> None:
        """Sets a batch to wake again."""  # guard: hold-dead-letter-time-limit
        try:
            if out_of_time():
                raise Retryable("time ran out")
            self.holding.woken += wake_again(self.ports, key)
        # guard: hold-dead-letter-bug-isolated
        except Exception as error:  # also a bug: other dead letters, and the images beside it, are settled all the same
            self.holding.failed[place] = error

    def reject(
        self, place: int, received: Received, mistrust: VerificationFailure, *, out_of_time: Callable[[], bool]
    ) -> None:
        """Places the dead letter of a message that is not one of ours."""
        try:
            if out_of_time():  # guard: signatures-rejection-time
                raise Retryable("time ran out")
            reject_message(self.ports, HOLD, received, mistrust)
        except Exception as error:  # also a bug: the others are settled all the same
            self.holding.failed[place] = error
        else:
            self.holding.rejected[place] = mistrust

    def _fail(self, entries: Iterable[HeldMessage], error: Exception) -> None:
        self.holding.failed |= {place: error for entry in entries for place in self.places[entry]}


def wake_again(ports: HoldImagesPorts, key: str) -> bool:
    """Sets a batch to wake that an execution has given up; returns whether any of it was left to wake.

    A batch with windows continues from its latest one, any other from its beginning: an image that was already released
    is begun only once. Raises Retryable, and UnreadableBatch.
    """
    batch = stored_batch(ports.holds, key)
    if batch is None:
        return False
    ports.wake_ups.set(execution_name(key), key, batch.wake_at)
    return True


def _is_of_the_state_machine(body: str) -> bool:
    """Whether an execution gave up a batch with this message, which it cannot sign."""
    return read_batch_dead_letter(body) is not None


def send_of(entry: HeldMessage, now: Milliseconds) -> tuple[Message, int]:
    """The entry's message for its lane, with its remaining delay."""
    return entry.message.model_copy(update={"process_at": None}), seconds_until(entry.process_at, now)


def _by_lane_and_time(entry: HeldMessage) -> tuple[str, Milliseconds]:
    return entry.message.lane, entry.process_at
