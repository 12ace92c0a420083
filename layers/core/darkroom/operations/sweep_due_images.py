"""Looks at every unfinished image that is due: messages that were lost on the way are sent again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.claim import Expire, GiveUp, NothingToDo
from darkroom.domain.dead_letter import explanation_of, without_texts
from darkroom.domain.due import (
    LookForUpload,
    PlaceDeadLetter,
    Refetch,
    Remove,
    Rescue,
    Wait,
    dead_letter_placed,
    look_at_due,
)
from darkroom.domain.errors import Retryable
from darkroom.domain.image import DUE_SHARD_NAMES, DeadLetterState, Image, Status, message_for
from darkroom.domain.instants import Milliseconds
from darkroom.domain.lanes import FETCH, Lane
from darkroom.domain.message import UnreadableMessage, read_message
from darkroom.domain.service_level import GIVEN_UP, NO_OUTCOMES, Outcomes, end_of
from darkroom.operations.blank_deliveries import blank_deliveries
from darkroom.operations.enqueue import DUE_FENCE, EnqueueInTimePorts, enqueue_in_time, send_or_mark_due
from darkroom.ports import (
    DeadLetter,
    DeadLetters,
    Deliveries,
    Due,
    Fenced,
    FetchQueue,
    Memory,
    Originals,
    Outputs,
    Reservations,
    Taken,
    UnreadableRow,
    UploadQueue,
    Uploads,
)

SHARD_LIMIT = 500
"""The most images of a shard that one sweep looks at; the oldest come first, and the next sweep continues."""

DEAD_LETTERS_LIMIT = 1000
"""The most dead letters of a queue that one sweep searches for the one that it is about to place."""

LOOKS_AT_DEAD_LETTERS = 3
"""How often a sweep that could not see all dead letters leaves the decision to the next one: they may be many, taken by
an operator, or hidden by a receive whose answer was lost."""


POSTPONED_SECONDS = 600
"""How long an image is postponed that cannot be processed because its row is unreadable or hits a bug: it stays due,
before all others, so that a few hundred of them would keep a shard's sweeps from everything else."""


@dataclass(kw_only=True)
class Sweep:
    """What one sweep did, by outcome: `rescued`, `waiting`, `gave_up`, `dead_letter_placed`, `removed`, `unsent`,
    `unreadable`, or the reason why there was nothing to do.

    `unreadable` are the rows that were met and left as they are; `errors` holds unexpected errors by image id, and
    `unlisted`, by shard, why the due index could not be listed. `complete` is False if time ran out. `ended` is, by
    lane, how the images count that this sweep gave up or let expire.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    ended: dict[str, Outcomes] = field(default_factory=dict)
    unreadable: list[UnreadableRow] = field(default_factory=list)
    errors: dict[str, Exception] = field(default_factory=dict)
    unlisted: dict[str, Exception] = field(default_factory=dict)
    complete: bool = True


@dataclass(frozen=True, kw_only=True)
class Ports(EnqueueInTimePorts):
    """What a sweep needs besides the ports of sending messages, and each lane's deployed configuration."""

    uploads: Uploads
    originals: Originals
    outputs: Outputs
    memory: Memory
    deliveries: Deliveries
    upload_queue: UploadQueue
    fetch_queue: FetchQueue
    reservations: Reservations
    dead_letters: DeadLetters
    service: Mapping[str, Lane]


def sweep_due_images(ports: Ports, *, out_of_time: Callable[[], bool]) -> Sweep:
    """Looks at what is due in every shard until done or `out_of_time`.

    An image that a queue or the table cannot serve now stays due. One that is unreadable or hits a bug is looked at
    again later and does not stop the others; neither does a shard that cannot be listed.
    """
    sweep = Sweep()
    round_ = _Round(ports, sweep.ended)
    for due in _by_turns(ports, sweep, out_of_time):
        if out_of_time():
            sweep.complete = False
            break
        try:
            outcome = round_.look_at(due.image_id)
        except UnreadableRow as error:
            outcome = "unreadable"
            sweep.unreadable.append(error)
        except Exception as error:  # a row that trips a bug must not keep the sweeper from all the others
            outcome = "error"
            sweep.errors[due.image_id] = error
        sweep.outcomes[outcome] += 1
        if outcome in _LEFT_DUE:
            # If even that fails, the next sweep meets it again.
            with bookkeeping("look not postponed", image_id=due.image_id):
                ports.images.postpone(due, ports.clock() + POSTPONED_SECONDS * 1000)
    return sweep


_LEFT_DUE = frozenset({"unreadable", "error", "terminal"})
"""Outcomes that changed nothing, and would repeat in every sweep. (`terminal` is an image that has ended and owes
nothing that this version knows of.)"""


def _by_turns(ports: Ports, sweep: Sweep, out_of_time: Callable[[], bool]) -> Iterator[Due]:
    """What is due, the oldest of each shard first, in turns: if time runs out, every shard has had the same share. Each
    minute begins with another shard, so that slow shards do not always keep the same ones waiting."""
    first = ports.clock() // 60_000 % len(DUE_SHARD_NAMES)
    listed: list[list[Due]] = []
    for shard in DUE_SHARD_NAMES[first:] + DUE_SHARD_NAMES[:first]:
        if out_of_time():
            sweep.complete = False
            break
        try:
            listed.append(list(ports.images.due(shard, ports.clock(), SHARD_LIMIT)))
        except Exception as error:
            sweep.unlisted[shard] = error
    for turn in zip_longest(*listed):
        yield from (due for due in turn if due is not None)


class _Round:
    """One sweep, which asks each queue at most once for its backlog and for its dead letters."""

    def __init__(self, ports: Ports, ended: dict[str, Outcomes]) -> None:
        self._ports = ports
        self._ended = ended
        self._backlogs: dict[str, int] = {}
        self._letters: dict[str, Taken] = {}
        self._releasing: dict[str, Milliseconds] = {}

    def look_at(self, image_id: str) -> str:
        # The index is eventually consistent, so a sweep acts only on the row that it has read, and only if the row is
        # unchanged when it is written: of two concurrent sweeps one continues.
        images, clock = self._ports.images, self._ports.clock
        try:
            before = images.get(image_id)
            if before is None:
                return "gone"
            duty = look_at_due(
                before,
                now=clock(),
                backlog=self._backlog(FETCH if before.status is Status.FETCHING else before.lane),
                releasing_until=self._releasing_until(before.lane) if before.status is Status.SCHEDULED else 0,
                service=self._ports.service,
            )
            match duty:
                case NothingToDo(reason=reason):
                    return reason
                case GiveUp(image=after) | Expire(image=after):
                    self._count(before, images.change(before, after, fence=DUE_FENCE))
                    return "gave_up" if isinstance(duty, GiveUp) else "expired"
                case Wait(image=after):
                    images.change(before, after, fence=DUE_FENCE)
                    return "waiting"
                case Rescue(image=after):
                    # Postponed before it is sent. What cannot be sent is due at once, because a queue's outage is no
                    # reason to look less often afterwards.
                    pushed = images.change(before, after, fence=DUE_FENCE)
                    is_sent = enqueue_in_time(self._ports, pushed)
                    return "rescued" if is_sent else "unsent"
                case Refetch(image=after):
                    pushed = images.change(before, after, fence=DUE_FENCE)
                    message = message_for(pushed)
                    is_sent = send_or_mark_due(self._ports, pushed, lambda: self._ports.fetch_queue.put(message))
                    return "rescued" if is_sent else "unsent"
                case LookForUpload(came=came, never_came=never_came):
                    return self._look_for_upload(before, came=came, never_came=never_came)
                case PlaceDeadLetter(image=after):
                    return self._place_dead_letter(images.change(before, after, fence=DUE_FENCE))
                case Remove(image=after, memories=memories):
                    return self._remove(before, after, memories)
        except Fenced:
            return "fenced"
        except UnreadableRow:
            raise
        except Retryable:
            return "unreachable"

    def _count(self, before: Image, ended: Image) -> None:
        if before.status is Status.FETCHING and ended.status is Status.FAILED:  # its service level has not begun
            end = GIVEN_UP
        else:
            end = end_of(ended, waiting_since=before.waiting_since, lane=self._ports.service[ended.lane])
        self._ended[ended.lane] = self._ended.get(ended.lane, NO_OUTCOMES) + end

    def _remove(self, before: Image, after: Image, memories: Sequence[str]) -> str:
        ports = self._ports
        ports.outputs.delete_all(before.image_id)
        ports.originals.delete(before.image_id)
        ports.uploads.delete(before.image_id)
        ports.memory.forget(memories)
        if before.is_deleted and not blank_deliveries(ports.deliveries, before.image_id, now=ports.clock()):
            return "being_delivered"  # the next sweep looks again
        ports.images.change(before, after, fence=DUE_FENCE)
        return "removed"

    def _look_for_upload(self, before: Image, *, came: Image, never_came: Image) -> str:
        """Expires an image whose upload is not there; if the upload is there, S3's event was lost or is stuck."""
        ports = self._ports
        if all(ports.uploads.size_bytes(before.image_id) is None for _ in range(2)):  # no single look ends an image
            ports.images.change(before, never_came, fence=DUE_FENCE)
            return "expired"
        pushed = ports.images.change(before, came, fence=DUE_FENCE)
        is_sent = send_or_mark_due(ports, pushed, lambda: ports.upload_queue.put(message_for(pushed)))
        return "rescued" if is_sent else "unsent"

    def _place_dead_letter(self, image: Image) -> str:
        """Makes sure of exactly one dead letter: SQS may have made one, or several, or none, and so may a sweep that
        died before it could write that it had."""
        ports = self._ports
        taken = self._dead_letters_in(image.lane)
        letters = [letter for letter in taken.letters if _is_about(letter, image)]
        kept = next((letter for letter in letters if letter.explanation is not None), None)
        # The decision depends on what is missing: no dead letter with an explanation yet, and in the last look no other
        # one.
        must_see_all = image.dead_letter is DeadLetterState.PLACED or kept is None
        if must_see_all and not taken.complete and image.rescues < LOOKS_AT_DEAD_LETTERS:
            return "dead_letter_owed"
        if kept is None and image.dead_letter is DeadLetterState.OWED:
            ports.dead_letters.put(image.lane, message_for(image), without_texts(explanation_of(image)))
        elif kept is None and letters:
            kept = letters[0]
        for letter in letters:
            if letter is not kept:
                ports.dead_letters.remove(letter)
        ports.images.change(image, dead_letter_placed(image, now=ports.clock()), fence=DUE_FENCE)
        return "dead_letter_placed"

    def _dead_letters_in(self, queue: str) -> Taken:
        if queue not in self._letters:
            dead_letters = self._ports.dead_letters
            taken = dead_letters.take(queue, DEAD_LETTERS_LIMIT)
            # An operator may have taken some, hidden from us, and some may be hidden by a lost answer.
            are_all = taken.complete and not taken.asked_again and dead_letters.depth(queue) <= len(taken.letters)
            dead_letters.give_back(taken.letters)
            self._letters[queue] = replace(taken, complete=are_all)
        return self._letters[queue]

    def _backlog(self, queue: str) -> int:
        if queue not in self._backlogs:
            ports, is_fetch = self._ports, queue == FETCH
            self._backlogs[queue] = 0  # nothing explains a wait, and the message is sent once more
            with bookkeeping("lane's backlog not read"):
                self._backlogs[queue] = ports.fetch_queue.depth().waiting if is_fetch else ports.lanes.backlog(queue)
        return self._backlogs[queue]

    def _releasing_until(self, lane: str) -> Milliseconds:
        if lane not in self._releasing:
            self._releasing[lane] = 0  # nothing explains the wait, and the message is sent again
            with bookkeeping("reservations not read"):
                self._releasing[lane] = self._ports.reservations.busy_until(lane)
        return self._releasing[lane]


def _is_about(letter: DeadLetter, image: Image) -> bool:
    try:
        message = read_message(letter.body)
    except UnreadableMessage:
        return False
    return (message.image_id, message.run) == (image.image_id, image.run)
