"""Looking at dead letters: grouped by what failed, with what the rows say of them now, at a glance or in hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from darkroom.domain.dead_letter import Verdict, explanation_in, explanation_of, verdict_of
from darkroom.domain.errors import Retryable
from darkroom.domain.hold import BatchDeadLetter, read_batch_dead_letter
from darkroom.domain.image import Image
from darkroom.domain.instants import Milliseconds
from darkroom.domain.message import Message, UnreadableMessage
from darkroom.domain.upload_notification import NOBODY, read_dead_letter
from darkroom.ports import Clock, DeadLetter, DeadLetters, Images, UnreadableRow

HOLD_SECONDS = 40
"""How long dead letters are worked on before they are given back and taken anew: taken ones are hidden for a minute."""

HANDFUL = 200
"""How many dead letters are taken at a time to be worked on."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One failure to decide on: all dead letters of one run of one image, one dead letter of a batch of scheduled
    images, or one that names neither.

    `explanation` is what the dead letter says, or else what the row remembers; empty where nobody knows.
    """

    queue: str
    letters: tuple[DeadLetter, ...]
    message: Message | None
    image: Image | None
    verdict: Verdict
    explanation: dict[str, Any]
    problem: str | None
    batch: BatchDeadLetter | None = None

    @property
    def sent_at(self) -> Milliseconds:
        """When the first of its messages was sent, from which its 14 days count."""
        return min(letter.sent_at for letter in self.letters)

    @property
    def error_code(self) -> str | None:
        """The code that its client is told, such as `internal`."""
        return self.explanation.get("cause")

    @property
    def last_error(self) -> dict[str, Any] | None:
        """The latest attempt that ended by an exception."""
        attempts = self.explanation.get("attempts") or []
        return next((attempt for attempt in reversed(attempts) if attempt.get("error_type")), None)

    @property
    def cause(self) -> str | None:
        """What an operator calls it: the exception's type; `worker_lost` where the workers died."""
        if self.batch is not None:
            return self.batch.error
        lost = self.error_code not in (None, "internal")
        return self.error_code if lost or self.last_error is None else str(self.last_error["error_type"])


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which cases are meant: those that fit every field that is set."""

    image_id: str | None = None
    tenant_id: str | None = None
    cause: str | None = None
    verdict: Verdict | None = None
    older_than_seconds: float | None = None
    newer_than_seconds: float | None = None

    def covers(self, case: Case, now: Milliseconds) -> bool:
        """Whether the case is one of those that are meant."""
        age_seconds = (now - case.sent_at) / 1000
        message = case.message
        return (
            (self.image_id is None or (message is not None and message.image_id == self.image_id))
            and (self.tenant_id is None or (message is not None and message.tenant_id == self.tenant_id))
            and (self.cause is None or self.cause.casefold() in _names_of_cause(case))
            and (self.verdict is None or case.verdict is self.verdict)
            and (self.older_than_seconds is None or age_seconds > self.older_than_seconds)
            and (self.newer_than_seconds is None or age_seconds < self.newer_than_seconds)
        )


EVERYTHING = Selection()


def _names_of_cause(case: Case) -> set[str]:
    error = case.last_error
    names = (case.error_code, case.cause, None if error is None else error["error_type"])
    return {str(name).casefold() for name in names if name is not None}


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What lies in the queues: the cases that were meant, each queue's depth, how many dead letters were read, and in
    which queues there were more than that."""

    cases: tuple[Case, ...]
    depths: dict[str, int]
    letters: int
    incomplete: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What looking at dead letters needs from outside."""

    dead_letters: DeadLetters
    images: Images
    clock: Clock


def list_dead_letters(
    ports: Ports,
    queues: Iterable[str],
    selection: Selection = EVERYTHING,
    *,
    limit: int,
    on_case: Callable[[int, int], None] = lambda done, total: None,
) -> Listing:
    """Reads up to `limit` dead letters of each queue and gives them back; oldest first within a queue.

    `on_case` is told how many cases have been looked up of how many. Raises Retryable where a queue or the table cannot
    answer.
    """
    depths, incomplete, found, letters = {}, [], [], 0
    for queue in queues:
        depths[queue] = ports.dead_letters.depth(queue)
        taken = ports.dead_letters.take(queue, limit)
        ports.dead_letters.give_back(taken.letters)
        letters += len(taken.letters)
        if not taken.complete:
            incomplete.append(queue)
        found += grouped(taken.letters)
    cases = []
    for number, group in enumerate(found):
        on_case(number, len(found))
        case = look_up(ports, group)
        if selection.covers(case, ports.clock()):
            cases.append(case)
    order = {queue: number for number, queue in enumerate(depths)}
    cases.sort(key=lambda case: (order[case.queue], case.sent_at))
    return Listing(cases=tuple(cases), depths=depths, letters=letters, incomplete=tuple(incomplete))


@dataclass(frozen=True, kw_only=True)
class Group:
    """Dead letters of one queue that describe the same run of the same image; `problem` says why one could not be
    read."""

    letters: tuple[DeadLetter, ...]
    message: Message | None
    problem: str | None
    batch: BatchDeadLetter | None = None

    @property
    def key(self) -> tuple[str, int]:
        """What it is known by when its dead letters are received again."""
        return (self.letters[0].message_id, 0) if self.message is None else (self.message.image_id, self.message.run)


def grouped(letters: Iterable[DeadLetter]) -> list[Group]:
    """The dead letters by what they describe, in the order in which they came."""
    groups: dict[tuple[str, int], Group] = {}
    for letter in letters:
        try:
            group = Group(letters=(letter,), message=read_dead_letter(letter.body), problem=None)
        except UnreadableMessage as error:
            batch = read_batch_dead_letter(letter.body)
            problem = str(error) if batch is None else f"{batch.error}: {batch.cause}"
            group = Group(letters=(letter,), message=None, problem=problem, batch=batch)
        earlier = groups.get(group.key)
        if earlier is not None:
            group = Group(letters=(*earlier.letters, letter), message=earlier.message, problem=earlier.problem)
        groups[group.key] = group
    return list(groups.values())


def look_up(ports: Ports, group: Group) -> Case:
    """The group as a case, by its image's row as it stands now. An unreadable row makes it a case that nobody acts on,
    and keeps no other waiting."""
    message, problem = group.message, group.problem
    try:
        image = None if message is None else ports.images.get(message.image_id)
        verdict = Verdict.BATCH if group.batch is not None else verdict_of(message, image)
    except UnreadableRow as error:
        image, verdict, problem = None, Verdict.UNREADABLE_ROW, str(error)
    if message is not None and message.tenant_id == NOBODY and image is not None:
        message = message.model_copy(update={"tenant_id": image.tenant_id})
    told = (explanation_in(letter.explanation) for letter in group.letters)
    explanation = next((one for one in told if one is not None), None)
    if explanation is None:
        explanation = {} if image is None or message is None else explanation_of(image, message.run)
    return Case(
        queue=group.letters[0].queue,
        letters=group.letters,
        message=message,
        image=image,
        verdict=verdict,
        explanation=explanation,
        problem=problem,
        batch=group.batch,
    )


def work_through(
    ports: Ports,
    queue: str,
    act: Callable[[Case], bool],
    *,
    wants: Callable[[Case], bool],
    before_each: Callable[[], None],
    stop: Callable[[], bool],
) -> bool:
    """Has `act` decide on each case of the queue that it `wants`, once, with its dead letters in hand: where it returns
    True they are removed, all others are given back in the end. Returns whether the whole queue was seen.

    Dead letters are hidden from others for a minute only, so that those of somebody who died show again soon: what
    cannot be worked on in that time is taken anew. `before_each` may wait. Raises Retryable where the queue or the
    table cannot answer.
    """
    seen: dict[tuple[str, int], bool] = {}  # whether its dead letters go
    asked_again = False
    in_hand: dict[str, DeadLetter] = {}

    def remove(group: Group) -> None:
        for letter in group.letters:
            ports.dead_letters.remove(letter)
            del in_hand[letter.message_id]

    try:
        while not stop():
            taken_at = ports.clock()
            taken = ports.dead_letters.take(queue, HANDFUL)
            in_hand |= {letter.message_id: letter for letter in taken.letters}
            asked_again |= taken.asked_again
            if not _is_held(taken_at, ports.clock):
                raise Retryable("reading dead letters takes longer than they stay hidden")
            groups = grouped(taken.letters)
            if taken.letters and not taken.complete and all(group.key in seen for group in groups):
                return False  # it goes round in circles: dead letters show again before all were seen
            for group in groups:
                if stop() or not _is_held(taken_at, ports.clock):
                    break
                if group.key not in seen:
                    case = look_up(ports, group)
                    wanted = wants(case)
                    if wanted:
                        before_each()
                        if stop() or not _is_held(taken_at, ports.clock):
                            break
                    seen[group.key] = wanted and act(case)
                if seen[group.key]:
                    remove(group)
            else:
                if taken.complete:
                    return not asked_again  # then some may be hidden, and show themselves to the next look
            # What is left of this handful is taken anew; what was seen of it stays hidden meanwhile.
            unseen = [letter for group in groups if group.key not in seen for letter in group.letters]
            ports.dead_letters.give_back(tuple(unseen))
        return False
    finally:
        ports.dead_letters.give_back(tuple(in_hand.values()))


def _is_held(taken_at: Milliseconds, clock: Clock) -> bool:
    return clock() - taken_at < HOLD_SECONDS * 1000
