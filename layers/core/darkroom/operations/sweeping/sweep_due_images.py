"""Looks at every unfinished image that is due: messages that were lost on the way are sent again."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import batched, chain, zip_longest

from darkroom.bookkeeping import bookkeeping, report_failure
from darkroom.domain.dead_letters.dead_letter import explanation_of, without_texts
from darkroom.domain.images.claim import Expire, GiveUp, NothingToDo, Park
from darkroom.domain.images.image import DUE_PARTITIONS, DeadLetterState, DutyKind, Image, Status, message_for
from darkroom.domain.images.service_level import GIVEN_UP, NO_OUTCOMES, Outcomes, end_of
from darkroom.domain.images.works import is_failed_change
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import FETCH, LANE_DELAY_SECONDS, Lane
from darkroom.domain.kernel.message import UnreadableMessage, read_message
from darkroom.domain.pauses.pauses import Pauses
from darkroom.domain.sweeping.due import (
    DueAction,
    LookForUpload,
    PlaceDeadLetter,
    Refetch,
    Remove,
    Rescue,
    Wait,
    dead_letter_placed,
    decide_due,
)
from darkroom.for_each import for_each
from darkroom.operations.images.enqueue import DUE_FENCE, EnqueueInTimePorts, mark_due, seconds_until, send_or_mark_due
from darkroom.operations.images.move_variants import remove_unshown
from darkroom.operations.sweeping.remove_leftovers import RemovalPorts, remove_leftovers
from darkroom.ports.dead_letters import DeadLetter, DeadLetters, Taken
from darkroom.ports.images import Due, FetchQueue, HasTurn, has_turn_at_once
from darkroom.ports.kernel import Fenced, UnreadableRow
from darkroom.ports.pauses import KnownPauses, nothing_paused
from darkroom.ports.schedules import Reservations
from darkroom.ports.sweeping import Cleanup
from darkroom.ports.uploads import UploadQueue

PARTITION_LIMIT = 5000
"""How many of the oldest entries of a partition one sweep lists: one page of an answer."""

LATEST_LIMIT = 1000
"""How many of the latest entries it lists as well where there are more: what has just become due of one tenant is seen
behind any pile of another's."""

ROWS_AT_ONCE = 100
"""How many rows one read brings: DynamoDB's limit for a batch."""

ROWS_IN_TURN = ROWS_AT_ONCE
"""How many rows of a kind are looked at before the next: as many as one read brings."""

TURNS_AT_ONCE: Mapping[DutyKind, int] = {DutyKind.REMOVALS: 4}
"""Of which kinds several turns are taken at the same time: a removal's calls go to S3, whose slowest answer keeps the
others of a turn waiting."""

MESSAGES_AT_ONCE = 10
"""How many messages one call sends: SQS's limit for a batch."""

THREADS: Mapping[DutyKind, int] = {
    DutyKind.RESCUES: 16,
    DutyKind.DEAD_LETTERS: 2,
    DutyKind.EXPIRIES: 6,
    DutyKind.FETCHES: 4,
    DutyKind.REMOVALS: 8,
}
"""How many images of a turn are looked at at the same time. This is a kind's share, which no other can take: kinds do
not wait for each other, and the threads that are ready take turns on the processor."""

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
    """What one sweep did, by outcome: `rescued`, `waiting`, `paused`, `gave_up`, `dead_letter_placed`, `removed`,
    `unsent`, `unreadable`, or the reason why there was nothing to do.

    `unreadable` are the rows that were met and left as they are; `errors` holds unexpected errors by image id, and
    `unlisted`, by partition, why the due index could not be listed. `complete` is False if time ran out; `late_seconds`
    is, by kind, how late the oldest look is that could not be done. `ended` is, by lane, how the images count that this
    sweep gave up or let expire.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    ended: dict[str, Outcomes] = field(default_factory=dict)
    unreadable: list[UnreadableRow] = field(default_factory=list)
    errors: dict[str, Exception] = field(default_factory=dict)
    unlisted: dict[str, Exception] = field(default_factory=dict)
    late_seconds: dict[str, float] = field(default_factory=dict)
    complete: bool = True


@dataclass(frozen=True, kw_only=True)
class SweepDueImagesPorts(EnqueueInTimePorts, RemovalPorts):
    """What a sweep needs besides the ports of sending messages and removing objects, and each lane's deployed
    configuration. `cleanups` are those of what parts keep of an image, and `fetches` is False where no function fetches
    what clients gave a URL of."""

    upload_queue: UploadQueue
    fetch_queue: FetchQueue
    reservations: Reservations
    dead_letters: DeadLetters
    service: Mapping[str, Lane]
    cleanups: Sequence[Cleanup] = ()
    fetches: bool = True
    pauses: KnownPauses = nothing_paused
    has_turn: HasTurn = has_turn_at_once


def sweep_due_images(ports: SweepDueImagesPorts, *, out_of_time: Callable[[], bool]) -> Sweep:
    """Looks at what is due of every kind until done or `out_of_time`, all kinds at the same time.

    An image that a queue or the table cannot serve now stays due. One that is unreadable or hits a bug is looked at
    again later and does not stop the others; neither does a partition that cannot be listed.
    """
    total, pauses = Sweep(), ports.pauses()
    # guard: sweep-kinds-independent
    for sweep in ports.at_once([_Round(ports, kind, pauses, out_of_time).sweep for kind in DutyKind]):
        total.outcomes += sweep.outcomes
        for lane, ended in sweep.ended.items():
            total.ended[lane] = total.ended.get(lane, NO_OUTCOMES) + ended
        total.unreadable += sweep.unreadable
        total.errors |= sweep.errors
        total.unlisted |= sweep.unlisted
        total.late_seconds |= sweep.late_seconds
        total.complete &= sweep.complete
    return total


_LEFT_DUE = frozenset({"unreadable", "error", "terminal"})
"""Outcomes that changed nothing, and would repeat in every sweep. (`terminal` is an image that has ended and owes
nothing that this version knows of.)"""

_UNDONE = frozenset({"no_time", "unreachable", "unsent"})
"""Outcomes that leave an image due because the sweep could not serve it."""


_HOLD = ""
"""The way to the hold queue, which is no lane."""

type _Letters = tuple[Taken, Mapping[tuple[str, int], list[DeadLetter]]]
"""The dead letters of a queue, and by image id and run those that are about it."""


class _Round:
    """One sweep of one kind, which asks each queue at most once for its backlog and for its dead letters."""

    def __init__(
        self, ports: SweepDueImagesPorts, kind: DutyKind, pauses: Pauses, out_of_time: Callable[[], bool]
    ) -> None:
        self._ports = ports
        self._pauses = pauses
        self._kind = kind
        self._out_of_time = out_of_time
        self._sweep = Sweep()
        self._ends: list[tuple[str, Outcomes]] = []
        self._silent: set[str] = set()
        self._backlogs: dict[str, int] = {}
        self._dead_letters: dict[str, _Letters | Exception] = {}
        self._releasing: dict[str, Milliseconds] = {}

    def sweep(self) -> Sweep:
        """Looks at everything that is listed, and says what came of it."""
        sweep, at_once = self._sweep, TURNS_AT_ONCE.get(self._kind, 1)
        turns = list(batched(self._by_turns(self._listed()), ROWS_IN_TURN, strict=False))
        taken = self._ports.at_once([partial(self._take, turns[first::at_once]) for first in range(at_once)])
        for some in chain(*taken):
            sweep.outcomes.update(outcome for outcome in some.values() if outcome != "no_time")
        undone = [entry.due_at for some in chain(*taken) for entry, outcome in some.items() if outcome in _UNDONE]
        sweep.complete = not any("no_time" in some.values() for some in chain(*taken))
        for lane, end in self._ends:
            sweep.ended[lane] = sweep.ended.get(lane, NO_OUTCOMES) + end
        if undone:
            # guard: sweep-lateness-reported
            sweep.late_seconds[self._kind] = max(0.0, (self._ports.clock() - min(undone)) / 1000)
        return sweep

    def _take(self, turns: Sequence[Sequence[Due]]) -> Sequence[Mapping[Due, str]]:
        """Takes turns one after another; returns what came of each look."""
        taken = []
        for turn in turns:
            due = {entry.image_id: entry for entry in turn}
            outcomes = dict.fromkeys(due, "no_time") if self._out_of_time() else self._look_at(list(due))
            self._each(
                lambda image_id, due=due: self._postpone(due[image_id]),  # type: ignore[misc]
                # guard: sweep-hopeless-row-delay
                [image_id for image_id, outcome in outcomes.items() if outcome in _LEFT_DUE],
            )
            taken.append({due[image_id]: outcome for image_id, outcome in outcomes.items()})
        return taken

    def _postpone(self, due: Due) -> None:
        # If even that fails, the next sweep meets it again.
        with bookkeeping("look not postponed", image_id=due.image_id):  # guard: sweep-postponement-isolated
            self._ports.images.postpone(due, self._ports.clock() + POSTPONED_SECONDS * 1000)

    def _each(self, look: Callable[[str], None], image_ids: Sequence[str]) -> None:
        """Calls `look` with every id, in as many threads as the kind has."""
        for_each(self._ports.at_once, look, image_ids, threads=THREADS[self._kind])

    # ── What is due, and in which order ──────────────────────────────────────────────────────────────────────────────

    def _listed(self) -> list[Due]:
        """What is due, the oldest first."""
        partitions = DUE_PARTITIONS[self._kind]
        listed = self._ports.at_once([partial(self._list, partition) for partition in partitions])
        return list(heapq.merge(*listed))

    def _list(self, partition: str) -> list[Due]:
        images, now = self._ports.images, self._ports.clock()
        try:
            oldest = list(images.due(partition, now, PARTITION_LIMIT))
            if len(oldest) < PARTITION_LIMIT:
                return oldest
            # guard: sweep-latest-also-listed
            return sorted({*oldest, *images.due(partition, now, LATEST_LIMIT, latest_first=True)})
        except Exception as error:  # guard: sweep-shard-isolated
            self._sweep.unlisted[partition] = error
            return []

    def _by_turns(self, listed: Sequence[Due]) -> Iterator[Due]:
        """What is listed, the oldest first; where it is more than one read, that of each tenant, in turns."""
        if len(listed) <= ROWS_IN_TURN:
            return iter(listed)
        owners = dict[str, str]()

        def learn(some: Sequence[Due]) -> None:
            if not self._out_of_time():
                with bookkeeping("tenants not read"):  # then these count as one tenant's
                    owners.update(self._ports.images.tenants_of([entry.image_id for entry in some]))

        parts = list(batched(listed, ROWS_AT_ONCE, strict=False))
        for_each(self._ports.at_once, learn, parts, threads=THREADS[self._kind])
        of_tenants = defaultdict[str, list[Due]](list)
        for entry in listed:
            of_tenants[owners.get(entry.image_id, "")].append(entry)  # guard: sweep-tenant-turns
        turns = zip_longest(*of_tenants.values())
        return (entry for turn in turns for entry in turn if entry is not None)

    # ── Looking at some ──────────────────────────────────────────────────────────────────────────────────────────────

    def _look_at(self, image_ids: Sequence[str]) -> Mapping[str, str]:
        """What came of each look, by image id."""
        # The index is eventually consistent, so a sweep acts only on the rows that it has read, and only if a row is
        # unchanged when it is written: of two concurrent sweeps one continues.
        outcomes: dict[str, str] = {}
        duties: dict[str, tuple[Image, DueAction]] = {}
        rows = self._read(image_ids)
        for image_id in image_ids:
            outcomes[image_id] = self._safely(image_id, partial(self._decide, rows.get(image_id), duties))
        removals = {image_id: duty for image_id, (_, duty) in duties.items() if isinstance(duty, Remove)}
        if removals:
            # guard: sweeper-tombstone-last
            for image_id, failure in remove_leftovers(self._ports, removals, self._each).items():
                outcomes[image_id] = self._safely(image_id, partial(_raise, failure))
                del duties[image_id]
        sendings: list[Image] = []

        def look(image_id: str) -> None:
            if not self._out_of_time():
                outcomes[image_id] = self._safely(image_id, partial(self._do, *duties[image_id], sendings))

        self._each(look, list(duties))
        for image in self._send(sendings):
            outcomes[image.image_id] = "unsent"
        return outcomes

    def _decide(self, row: Image | Exception | None, duties: dict[str, tuple[Image, DueAction]]) -> str:
        if row is None:
            return "gone"
        if isinstance(row, Exception):
            raise row
        duty = self._duty_of(row)
        if isinstance(duty, NothingToDo):
            return duty.reason
        duties[row.image_id] = row, duty
        return "no_time"  # until it is done

    def _read(self, image_ids: Sequence[str]) -> Mapping[str, Image | Exception]:
        try:
            return self._ports.images.get_all(image_ids)
        except Retryable as error:
            return dict.fromkeys(image_ids, error)
        # guard: sweeper-bad-row-isolated
        except Exception:  # which of them it is about shows when each is read by itself
            rows: dict[str, Image | Exception] = {}
            for image_id in image_ids:
                rows.update(self._read_one(image_id))
            return rows

    def _read_one(self, image_id: str) -> Mapping[str, Image | Exception]:
        try:
            row = self._ports.images.get(image_id)
        except Exception as error:
            return {image_id: error}
        return {} if row is None else {image_id: row}

    def _safely(self, image_id: str, look: Callable[[], str]) -> str:
        """The outcome of a look, whatever happens: a row that trips a bug must not keep the sweeper from the others."""
        try:
            return look()
        except Fenced:
            return "fenced"
        except UnreadableRow as error:
            self._sweep.unreadable.append(error)
            return "unreadable"
        except Retryable:
            return "unreachable"
        except Exception as error:
            self._sweep.errors[image_id] = error
            return "error"

    def _duty_of(self, image: Image) -> DueAction:
        is_scheduled = image.status is Status.SCHEDULED
        duty = decide_due(
            image,
            now=self._ports.clock(),
            backlog=self._backlog(FETCH if image.status is Status.FETCHING else image.lane),
            releasing_until=self._releasing_until(image.lane) if is_scheduled else 0,
            service=self._ports.service,
            fetches=self._ports.fetches,
            is_paused=self._pauses.of(image.lane, image.tenant_id) is not None,
            has_turn=not image.awaits_turn or self._ports.has_turn(image),
        )
        if isinstance(duty, PlaceDeadLetter):
            self._dead_letters_in(image.lane)  # here, so that no two threads take them
        return duty

    def _do(self, before: Image, duty: DueAction, sendings: list[Image]) -> str:
        """Does one duty, and says what came of it; `sendings` is joined by the images whose messages are to be sent."""
        images, ports = self._ports.images, self._ports
        match duty:
            case GiveUp(image=after) | Expire(image=after):
                self._count(before, images.change(before, after, fence=DUE_FENCE))
                return "gave_up" if isinstance(duty, GiveUp) else "expired"
            case Wait(image=after) | Park(image=after):
                images.change(before, after, fence=DUE_FENCE)
                return "waiting" if isinstance(duty, Wait) else "paused"
            case Rescue(image=after):
                # Postponed before it is sent. What cannot be sent is due at once, because a queue's outage is no reason
                # to look less often afterwards.
                if self._way_of(after)[0] in self._silent:
                    return "unsent"
                sendings.append(images.change(before, after, fence=DUE_FENCE))
                return "rescued"
            case Refetch(image=after):
                if FETCH in self._silent:
                    return "unsent"
                pushed = images.change(before, after, fence=DUE_FENCE)
                message = message_for(pushed)
                is_sent = send_or_mark_due(ports, pushed, lambda: ports.fetch_queue.put(message))
                if not is_sent:
                    self._silent.add(FETCH)
                return "rescued" if is_sent else "unsent"
            case LookForUpload(arrived=arrived, expired=expired):
                return self._look_for_upload(before, arrived=arrived, expired=expired)
            case PlaceDeadLetter(image=after):
                return self._place_dead_letter(images.change(before, after, fence=DUE_FENCE))
            case Remove(image=after):  # its objects are gone
                # guard: erasure-sweeper-blanks-deliveries
                if before.is_deleted and not all(cleanup(before.image_id) for cleanup in ports.cleanups):
                    return "being_delivered"  # the next sweep looks again
                images.change(before, after, fence=DUE_FENCE)
                return "removed"
            case NothingToDo(reason=reason):
                return reason

    def _way_of(self, image: Image) -> tuple[str, int]:
        """The lane of an image's message and its delay there in seconds; "" for the hold queue, if it is to show later
        than the lane can delay it."""
        delay_seconds = seconds_until(image.process_at, self._ports.clock())
        return (image.lane, delay_seconds) if delay_seconds <= LANE_DELAY_SECONDS else (_HOLD, 0)

    def _send(self, images: Iterable[Image]) -> Sequence[Image]:
        """Sends the images' messages; returns those that could not be sent, which are due at once. What goes to a queue
        that has not answered once is not tried in this sweep again."""
        ports, unsent = self._ports, list[Image]()
        ways: defaultdict[str, list[tuple[Image, int]]] = defaultdict(list)
        for image in images:
            way, delay_seconds = self._way_of(image)
            ways[way].append((image, delay_seconds))

        def send(way: str, some: Sequence[tuple[Image, int]]) -> None:
            try:
                if way == _HOLD:
                    later = [
                        message_for(image).model_copy(update={"process_at": image.process_at}) for image, _ in some
                    ]
                    failures = ports.hold_queue.put_all(later)
                else:
                    # guard: sweeper-lost-message-sent
                    failures = ports.lanes.send_all(way, [(message_for(image), delay) for image, delay in some])
            except Exception as error:
                failures = dict.fromkeys(range(len(some)), error)
            if len(failures) == len(some) and all(isinstance(failure, Retryable) for failure in failures.values()):
                self._silent.add(way)  # guard: sweep-silent-queue-once
            for place, failure in failures.items():
                image = some[place][0]
                report_failure("message not sent", failure, image_id=image.image_id)
                mark_due(ports, image)
                unsent.append(image)

        works = [
            partial(send, way, some)
            for way, all_of_it in ways.items()
            for some in batched(all_of_it, MESSAGES_AT_ONCE, strict=False)
        ]
        for some_works in batched(works, THREADS[self._kind], strict=False):
            ports.at_once(some_works)
        return unsent

    def _count(self, before: Image, ended: Image) -> None:
        if before.status is Status.FETCHING and not self._ports.fetches:  # guard: imports-off-pages-nobody
            return
        # guard: sweeper-fetch-failure-counted
        if before.status is Status.FETCHING and ended.status is Status.FAILED:  # its service level has not begun
            end = GIVEN_UP
        else:
            since = before.waiting_since
            if since is not None:  # guard: pause-sweeper-counts-from-resume
                since = self._pauses.counted_since(since, ended.lane, ended.tenant_id)
            end = end_of(ended, waiting_since=since, lane=self._ports.service[ended.lane])
        self._ends.append((ended.lane, end))

    def _look_for_upload(self, before: Image, *, arrived: Image, expired: Image) -> str:
        """Expires an image whose upload is not there; if the upload is there, S3's event was lost or is stuck."""
        ports = self._ports
        # guard: upload-absence-seen-twice, upload-looked-for-before-expiry
        if all(ports.uploads.size_bytes(before.image_id) is None for _ in range(2)):  # no single look ends an image
            ports.images.change(before, expired, fence=DUE_FENCE)  # guard: upload-expiry-fence
            return "expired"
        pushed = ports.images.change(before, arrived, fence=DUE_FENCE)
        is_sent = send_or_mark_due(ports, pushed, lambda: ports.upload_queue.put(message_for(pushed)))
        return "rescued" if is_sent else "unsent"

    def _place_dead_letter(self, image: Image) -> str:
        """Makes sure of exactly one dead letter: SQS may have made one, or several, or none, and so may a sweep that
        died before it could write that it had."""
        ports = self._ports
        taken, about = self._dead_letters_in(image.lane)
        dead_letters = about.get((image.image_id, image.run), [])  # guard: dead-letters-placed-once
        kept = next((dead_letter for dead_letter in dead_letters if dead_letter.explanation is not None), None)
        # The decision depends on what is missing: no dead letter with an explanation yet, and in the last look no other
        # one.
        must_see_all = image.dead_letter is DeadLetterState.PLACED or kept is None
        if must_see_all and not taken.complete and image.rescues < LOOKS_AT_DEAD_LETTERS:
            return "dead_letter_owed"
        if kept is None and image.dead_letter is DeadLetterState.OWED:
            # guard: erasure-dead-letter-no-texts
            ports.dead_letters.put(image.lane, message_for(image), without_texts(explanation_of(image)))
        elif kept is None and dead_letters:
            kept = dead_letters[0]
        for dead_letter in dead_letters:
            if dead_letter is not kept:
                ports.dead_letters.remove(dead_letter)  # guard: dead-letters-sqs-own-removed
        if is_failed_change(image) and image.dead_letter is DeadLetterState.OWED:
            # Nobody can ask for another change until this is written.
            remove_unshown(ports.outputs, ports.stale_edge, image)  # guard: visibility-failed-copies-removed
        ports.images.change(image, dead_letter_placed(image, now=ports.clock()), fence=DUE_FENCE)
        return "dead_letter_placed"

    def _dead_letters_in(self, queue: str) -> _Letters:
        if queue not in self._dead_letters:
            try:
                self._dead_letters[queue] = self._take_dead_letters(queue)
            except Exception as error:  # the same for all images of this lane
                self._dead_letters[queue] = error
        dead_letters = self._dead_letters[queue]
        if isinstance(dead_letters, Exception):
            raise dead_letters
        return dead_letters

    def _take_dead_letters(self, queue: str) -> _Letters:
        dead_letters = self._ports.dead_letters
        taken = dead_letters.take(queue, DEAD_LETTERS_LIMIT)
        # An operator may have taken some, hidden from us, and some may be hidden by a lost answer.
        # guard: dead-letters-sweep-lost-answer
        are_all = taken.complete and not taken.asked_again and dead_letters.depth(queue) <= len(taken.dead_letters)
        dead_letters.give_back(taken.dead_letters)
        about = defaultdict[tuple[str, int], list[DeadLetter]](list)
        for dead_letter in taken.dead_letters:
            with suppress(UnreadableMessage):
                message = read_message(dead_letter.body)
                about[message.image_id, message.run].append(dead_letter)  # guard: dead-letters-own-run
        return replace(taken, complete=are_all), about

    def _backlog(self, queue: str) -> int:
        if queue not in self._backlogs:
            ports, is_fetch = self._ports, queue == FETCH
            waiting = 0  # nothing explains a wait, and the message is sent once more
            with bookkeeping("lane's backlog not read"):
                waiting = ports.fetch_queue.depth().waiting if is_fetch else ports.lanes.backlog(queue)
            self._backlogs[queue] = waiting
        return self._backlogs[queue]

    def _releasing_until(self, lane: str) -> Milliseconds:
        if lane not in self._releasing:
            self._releasing[lane] = 0  # nothing explains the wait, and the message is sent again
            with bookkeeping("reservations not read"):
                self._releasing[lane] = self._ports.reservations.busy_until(lane)
        return self._releasing[lane]


def _raise(failure: Exception) -> str:
    raise failure
