"""Fakes that check every write: a forbidden change of a row or an output breaks the promise at once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from darkroom.aws.kernel.signing import MessageSigner
from darkroom.domain.images.claim import Lease
from darkroom.domain.images.image import Image, Status, Variant
from darkroom.domain.images.stored_by import stored_by
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.message import Message, read_message
from darkroom.domain.kernel.retry import MAX_RECEIVES, RETRIES
from darkroom.domain.kernel.signature import Received
from darkroom.domain.kernel.stored import NOTHING, Stored
from darkroom.domain.webhooks.row_events import event_of, events_of
from darkroom.ports.dead_letters import DeadLetter, Taken
from darkroom.ports.images import Due, IdempotencyUnavailable, StoredOutput
from tests.support.fakes import FakeDeadLetters, FakeImages, FakeLanes, FakeOutputs
from tests.support.fakes.messages import SIGNER, signature_in
from tests.support.fakes.stores import send_each
from tests.support.fakes.world import VISIBILITY_SECONDS

HIDDEN_MILLISECONDS = 60_000
"""After this time a taken dead letter that is not given back is visible again, as the adapter asks of SQS."""


type ViolationName = Literal["lost", "doubled", "stuck", "differing"]
HARMS: tuple[ViolationName, ...] = ("lost", "doubled", "stuck", "differing")


class Broken(AssertionError):
    """A promise was broken: what was accepted was lost, doubled, left stuck, or came out differently."""

    def __init__(self, harm: ViolationName, promise: str) -> None:
        super().__init__(f"{harm}: {promise}")
        self.harm = harm


def must(holds: bool, harm: ViolationName, promise: str) -> None:
    """Raises Broken if the promise does not hold."""
    if not holds:
        raise Broken(harm, promise)


LISTED = 1
"""The most entries of a shard that the due index lists: one row that is never moved away hides all others."""


@dataclass
class WatchedImages(FakeImages):
    """The rows, an index of them that may lag, and how often each run has ended."""

    endings: Counter[tuple[str, int]] = field(default_factory=Counter)
    planted: dict[str, Image] = field(default_factory=dict)
    lagging: dict[str, Image] | None = None
    lease_is_over: Callable[[Image], bool] = lambda image: True
    on_claim: Callable[[Image, Image], None] = lambda before, after: None
    may_begin: Callable[[Image], bool] = lambda image: False
    """Whether somebody has asked for the next run of an image that has ended so."""

    def create(self, image: Image) -> Image:
        must((image.status, image.run, image.attempt) == (Status.PENDING, 1, 0), "lost", "a row begins pending")
        if image.image_id not in self.rows:
            _check_stored(None, image)
        return super().create(image)

    def change(self, before: Image, after: Image, *, fence: tuple[str, ...] = ("status", "run", "attempt")) -> Image:
        old = self.rows.get(before.image_id)
        new = super().change(before, after, fence=fence)
        if old is not None:
            self._watch(old, new)
        return new

    def claim_unseen(self, message: Message, lease: Lease) -> Image:
        old = self.rows.get(message.image_id)
        new = super().claim_unseen(message, lease)
        if old is not None:
            self._watch(old, new)
        return new

    def plant(self, image: Image) -> None:
        """Puts a row there that an unknown version has written."""
        self.planted[image.image_id] = self.unreadable[image.image_id] = image

    def check_planted(self) -> None:
        """Such a row is for the version that can read it: only the time of the next look at it may change."""
        for image_id, image in self.planted.items():
            now = self.unreadable.get(image_id)
            left_alone = now is not None and replace(now, due_at=image.due_at) == image
            must(left_alone, "lost", "what a newer version has written stays as it is")

    def _watch(self, old: Image, new: Image) -> None:
        _check_stored(old, new)
        event = event_of(old, new)
        if event is not None:
            again = {event.event_id: event.type for event in events_of(new)}
            must(again.get(event.event_id) is event.type, "lost", "what a write tells can be told again from the row")
        must(new.attempt <= RETRIES["standard"].attempts, "doubled", "a run has at most five attempts")
        must(old.deleted_at in (None, new.deleted_at), "lost", "a tombstone stays as it was first written")
        must(old.outcome is not Status.DONE or new.outcome is Status.DONE, "lost", "what is done stays done")
        if new.run != old.run:
            may_begin = old.status in (Status.FAILED, Status.DONE) and self.may_begin(old)
            must(may_begin and new.status is Status.PENDING, "doubled", "a run begins after another, by a request")
            must(
                (new.run, new.attempt) == (old.run + 1, 0), "lost", "a replay begins the next run, at its first attempt"
            )
            must(not old.is_deleted, "doubled", "what was withdrawn is not developed again")
            must(new.variants == old.variants, "lost", "variants stay until another run has made others")
        elif old.status.is_terminal:
            must(new.is_deleted or _ending(new) == _ending(old), "doubled", "a terminal state is written once a run")
            must(new.variants == (() if new.is_deleted else old.variants), "differing", "what is done stays as it is")
        else:
            must(new.attempt in (old.attempt, old.attempt + 1), "doubled", "attempts are counted one by one")
            claimed = new.claimed_by not in (None, old.claimed_by)
            must(claimed == (new.attempt > old.attempt), "doubled", "an attempt is claimed once")
            must(not claimed or self.lease_is_over(old), "doubled", "nobody claims what another holds")
            if claimed:
                self.on_claim(old, new)
            made = () if new.is_deleted else old.variants
            is_made = new.status is Status.DONE and not new.is_deleted and new.failed_work is None
            is_moved = old.work is not None and old.work.visibility is not None and _bytes(new.variants) == _bytes(made)
            must(is_made or is_moved or new.variants == made, "lost", "only a run that is done replaces variants")
            must(_names(made) <= _names(new.variants), "lost", "what was served once is served until it is deleted")
            if new.status.is_terminal:
                self.endings[new.image_id, new.run] += 1
                must(self.endings[new.image_id, new.run] == 1, "doubled", "a run ends once")

    def due(self, shard: str, now: Milliseconds, limit: int, *, latest_first: bool = False) -> Iterator[Due]:
        rows = self.rows if self.lagging is None else self.lagging
        index = FakeImages(rows=rows, unreadable=self.unreadable)
        # Read when the call is made, not when its answer is checked.
        return iter(list(index.due(shard, now, min(limit, LISTED), latest_first=latest_first)))


def _check_stored(old: Image | None, new: Image) -> None:
    """What is stored changes by what the write's event says, and by nothing else: so the sum of all events is what all
    rows store. An event that is told again says the same, or nothing."""
    event = event_of(old, new)
    change = NOTHING if event is None else Stored.read(event.data.get("stored"))
    must(change == stored_by(new) - stored_by(old), "differing", "what is stored changes by what its event says")
    for again in events_of(new):
        if event is not None and again.event_id == event.event_id:
            said = Stored.read(again.data.get("stored"))
            must(said in (change, NOTHING), "differing", "an event that is told again says the same of what is stored")


def _names(variants: Sequence[Variant]) -> set[str]:
    return {variant.name for variant in variants}


def _bytes(variants: Sequence[Variant]) -> list[tuple[str, str]]:
    return [(variant.name, variant.sha256) for variant in variants]


def _ending(image: Image) -> tuple[Any, ...]:
    return (image.status, image.attempt, image.error, image.completed_at, image.notices)


@dataclass
class WatchedOutputs(FakeOutputs):
    """The outputs; `may_remove` tells whether one may be removed: of what was withdrawn, or was moved from there."""

    may_remove: Callable[[str], bool] = lambda key: False

    def put_if_absent(
        self, key: str, body: bytes, *, sha256: str, media_type: str, viewer_seconds: int | None = None
    ) -> StoredOutput:
        before = self.objects.get(key)
        stored = super().put_if_absent(key, body, sha256=sha256, media_type=media_type, viewer_seconds=viewer_seconds)
        must(before in (None, self.objects[key]), "differing", "an output never changes")
        return stored

    def remove(self, keys: Sequence[str]) -> Mapping[str, Exception]:
        for key in keys:
            must(self.may_remove(key), "lost", "only outputs of what was withdrawn or moved are removed")
        return super().remove(keys)


@dataclass(eq=False, kw_only=True)
class QueuedMessage[Content]:
    """One message in a queue, or held by a worker: SQS counts its receives and hides it for a while."""

    message: Content
    visible_at: Milliseconds
    message_id: str = ""
    signature: str | None = None
    receive_count: int = 0


@dataclass
class SimulatedQueue[Content]:
    """A queue with what SQS does to messages: visibility, receive counts, and the redrive after `max_receives`."""

    clock: Callable[[], Milliseconds] = lambda: 0
    visibility_seconds: int = VISIBILITY_SECONDS
    max_receives: int = MAX_RECEIVES
    messages: list[QueuedMessage[Content]] = field(default_factory=list)

    def send(self, message: Content, *, delay_seconds: int = 0) -> None:
        """Puts a message into the queue."""
        self.messages.append(QueuedMessage(message=message, visible_at=self.clock() + delay_seconds * 1000))

    def visible(self) -> list[QueuedMessage[Content]]:
        """The messages that a worker may receive now."""
        return [message for message in self.messages if message.visible_at <= self.clock()]

    def receive(self, message: QueuedMessage[Content]) -> bool:
        """Delivers the message; after too many receives, it leaves the queue instead."""
        if message.receive_count >= self.max_receives:
            self.give_up(message)
            self.acknowledge(message)
            return False
        message.receive_count += 1
        self.hide(message, self.visibility_seconds)
        return True

    def give_up(self, message: QueuedMessage[Content]) -> None:
        """What SQS does with what it has delivered too often."""

    def acknowledge(self, message: QueuedMessage[Content]) -> None:
        """Removes the message, if it is still there."""
        if message in self.messages:
            self.messages.remove(message)

    def hide(self, message: QueuedMessage[Content], seconds: int) -> None:
        """Makes the message visible again after that time."""
        message.visible_at = self.clock() + seconds * 1000


@dataclass
class ModelLanes(SimulatedQueue[Message], FakeLanes):
    """The `Lanes` port over a queue: what it has delivered too often becomes a dead letter."""

    dead_letters: FakeDeadLetters = field(default_factory=FakeDeadLetters)
    crowd: int = 0
    made: int = 0

    def send(self, message: Message, *, delay_seconds: int = 0) -> None:
        """What anyone sends who has the key, or SQS that moves a dead letter back as it is."""
        self.put(message, _signature_of(SIGNER, message), delay_seconds=delay_seconds)

    def put(self, message: Message, signature: str | None, *, delay_seconds: int = 0) -> None:
        """What anyone sends."""
        self.made += 1
        visible_at = self.clock() + delay_seconds * 1000
        self.messages.append(
            QueuedMessage(
                message=message, visible_at=visible_at, message_id=f"message-{self.made}", signature=signature
            )
        )

    def backlog(self, lane: str) -> int:
        return self.crowd + sum(message.message.lane == lane for message in self.visible())

    def give_up(self, message: QueuedMessage[Message]) -> None:
        is_signed = message.signature is not None
        self.dead_letters.add(message.message.lane, message.message.model_dump_json(), is_signed=is_signed)


def received(message: QueuedMessage[Message]) -> Received:
    """What the message's worker is given."""
    return Received(
        message_id=message.message_id,
        body=message.message.model_dump_json(),
        group=message.message.tenant_id,
        signature=message.signature,
        sent_at=message.visible_at,
    )


@dataclass
class SigningLanes:
    """The `Lanes` port as processes have it: each reads the key before it sends, and may get no answer."""

    lanes: Any
    keys: Any
    clock: Callable[[], Milliseconds]

    def send(self, message: Message, *, delay_seconds: int = 0) -> None:
        signature = _signature_of(MessageSigner(self.keys, self.clock), message)
        self.lanes.put(message, signature, delay_seconds=delay_seconds)

    def send_all(self, lane: str, messages: Sequence[tuple[Message, int]]) -> Mapping[int, Exception]:
        return send_each(messages, lambda message: self.send(message[0], delay_seconds=message[1]))

    def backlog(self, lane: str) -> int:
        backlog: int = self.lanes.backlog(lane)
        return backlog


def _signature_of(signer: MessageSigner, message: Message) -> str:
    return signature_in(signer.signed(message.lane, group=message.tenant_id, body=message.model_dump_json()))


@dataclass
class ModelDeadLetters(FakeDeadLetters):
    """Dead letters of which a taken one is visible again after a minute, unless it is given back."""

    now: Milliseconds = 0
    taken_at: dict[str, Milliseconds] = field(default_factory=dict)
    is_kept: Callable[[Message], bool] = lambda message: False
    late: set[str] = field(default_factory=set)
    """Those that SQS made when the one dead letter of their run was already kept."""

    def take(self, queue: str, limit: int) -> Taken:
        self.hidden = {
            message_id for message_id in self.hidden if self.taken_at[message_id] + HIDDEN_MILLISECONDS > self.now
        }
        taken = super().take(queue, limit)
        self.taken_at |= {dead_letter.message_id: self.now for dead_letter in taken.dead_letters}
        return taken

    def add(self, queue: str, body: str, explanation: str | None = None, *, is_signed: bool = True) -> DeadLetter:
        dead_letter = super().add(queue, body, explanation, is_signed=is_signed)
        if explanation is None and self.is_kept(read_message(body)):
            self.late.add(dead_letter.message_id)
        return dead_letter

    def all(self) -> list[DeadLetter]:
        """The dead letters of all queues."""
        return [dead_letter for dead_letters in self.messages.values() for dead_letter in dead_letters]


@dataclass
class ModelOnce:
    """The `Once` port. `call` makes each of its calls to AWS a call of the working process."""

    call: Callable[[str, Callable[[], Any]], Any]
    results: dict[str, str] = field(default_factory=dict)

    def __call__(self, key: str, work: Callable[[], dict[str, Any]], *, is_first: bool) -> dict[str, Any]:
        try:
            kept = None if is_first else self.call("look", lambda: self.results.get(key))
        except Retryable as error:
            raise IdempotencyUnavailable(str(error)) from error
        result: dict[str, Any] = work() if kept is None else json.loads(kept)
        return result

    def keep(self, key: str, result: dict[str, Any]) -> None:
        self.call("keep", partial(self.results.__setitem__, key, json.dumps(result)))

    def forget(self, keys: Sequence[str]) -> None:
        """The `Memory` port."""
        for key in keys:
            self.call("forget", partial(self.results.pop, key, None))

    def remember_otherwise(self, key: str) -> None:
        """A record of a newer version that has since been rolled back."""
        self.results[key] = json.dumps({"v": 9})
