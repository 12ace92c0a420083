"""Delays from a second to a year, by the real operations, in virtual time: none early, lost, doubled or late.

    python -m tests.simulation.delays [--images 50000] [--days 30] [--pace 1] [--seed S]

Clients schedule, reschedule, cancel and let expire; processes die before, during and after what they do; messages are
delivered twice; calls are throttled and clocks differ by seconds. Every event of the hold queue contains bad messages,
batches are damaged in their store or when they are read, and some were written by a version that has one more lane.
Prints how often everything happened and which promises were broken.
Exits with 1 if a promise was broken or something never happened.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from darkroom.domain.images.claim import Claim, Expire, TooEarly, claim
from darkroom.domain.images.image import Image, due_shard_of, message_for
from darkroom.domain.images.transitions import complete
from darkroom.domain.kernel.errors import Rejected, Retryable, Unplaceable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import HOLD, LANE_DELAY_SECONDS, LANES
from darkroom.domain.kernel.message import Message, UnreadableMessage
from darkroom.domain.kernel.tenants import Tier
from darkroom.domain.schedules.hold import UnreadableBatch, read_batch, read_batch_dead_letter
from darkroom.domain.schedules.schedule import Timetable, appoint
from darkroom.operations.images.delete_image import DeleteImagePorts, delete_image
from darkroom.operations.images.enqueue import EnqueueInTimePorts, enqueue_in_time, seconds_until
from darkroom.operations.images.load_shedder import LoadShedder
from darkroom.operations.schedules.hold_images import HoldImagesPorts, hold_images
from darkroom.operations.schedules.release_images import ReleaseImagesPorts, release_images
from darkroom.operations.schedules.reschedule_image import RescheduleImagePorts, reschedule_image
from darkroom.operations.sweeping.sweep_due_images import SweepDueImagesPorts, sweep_due_images
from darkroom.ports.images import Due
from repository.report import Goal, write_report
from tests.support.fakes.at_once import one_after_another
from tests.support.fakes.damage import damaged, flipped
from tests.support.fakes.load_shedding import FakeDepths, FakeThroughput
from tests.support.fakes.messages import KEYS, received
from tests.support.fakes.rows import accepted_image, lease
from tests.support.fakes.stores import (
    FakeDeadLetters,
    FakeHoldQueue,
    FakeHolds,
    FakeImages,
    FakeLanes,
    FakeReservations,
    FakeWakeUps,
)
from tests.support.fakes.world import World
from tests.support.faults import Call, Faults, Mode, ProcessDied, Struck
from tests.support.virtual.virtual_time import VirtualTime

START: Milliseconds = 1_798_675_200_000 - 40 * 24 * 3600 * 1000
"""Forty days before the end of 2026, so that the end of the year and, with 364 days, every DST change are included."""

DAY = 24 * 3600
LATEST_SECONDS = 60
"""How much later than its time an image may reach its lane; or than its turn, if the lane's pace makes it wait."""

HOLD_BATCH = 7_000
"""How many messages one event of the hold queue contains: 6 MB of records."""

HOLD_WINDOW_SECONDS = 60
HOLD_VISIBILITY_SECONDS = 360
BAD_RETURNS = 2
"""How often a bad message returns: 49 times by the template; two are enough to show it."""

DEAD_LETTER_SECONDS = 600
"""How soon an operator moves the dead letter of a given-up batch back, without having repaired anything."""

RELEASE_TRIES = 12
"""How often an execution retries a release that failed for a reason of its own."""

NEWER_LANE = "newer"
"""A lane of a later version: after a rollback, this version reads what that one has written."""

ENOUGH_BROKEN = 1_000
"""The simulation ends after so many broken promises: what fails permanently returns for ever."""

RESCUED_SECONDS = 2 * 60
"""How long after its due time a sweep may send an image that was in a damaged batch."""

SKEW_MILLISECONDS = 3_000
ALLOWANCE_SECONDS = 2 * SKEW_MILLISECONDS / 1000 + 1
"""Two workers in a row may find that it is too early, each by its own clock."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """A message of the hold queue: `bad` says what is bad about it, and is empty for a good one. One that fails returns
    at most `returns` times."""

    body: str
    bad: str = ""
    returns: float = math.inf


BAD_FOR: dict[str, type[Exception]] = {
    "junk": UnreadableMessage,
    "a negative time": UnreadableMessage,
    "a time beyond the wheel": Unplaceable,
    "an unknown lane": Unplaceable,
    "a damaged batch": UnreadableBatch,
}
"""What can be bad about a message, and how it fails."""


MODES: tuple[Mode, ...] = ("dies before", "dies after", "throttled", "answer lost")


class StruckImages(Struck):
    """Rows whose lost answers are read back, as the adapter does."""

    def change(self, before: Image, after: Image, **options: Any) -> Image:
        written: list[Image] = []

        def once() -> Image:
            if not written:
                written.append(self._port.change(before, after, **options))
            return written[0]

        changed: Image = self._around("images.change", once)()
        return changed


class Rows(FakeImages):
    """Rows that tell the simulation when they are due for a look, so that it need not search for them."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self._simulation = simulation
        self.due_now: list[Due] = []

    def create(self, image: Image) -> Image:
        created = super().create(image)
        self._simulation.look_in_time(created)
        return created

    def change(self, before: Image, after: Image, *, fence: tuple[str, ...] = ("status", "run", "attempt")) -> Image:
        changed = super().change(before, after, fence=fence)
        if changed.due_at != before.due_at:
            self._simulation.look_in_time(changed)
        return changed

    def due(self, shard: str, now: Milliseconds, limit: int, *, latest_first: bool = False) -> Iterator[Due]:
        yield from [due for due in self.due_now if due_shard_of(due.image_id) == shard]


class Queues(FakeLanes):
    """The lanes, in the simulation's time; each message may be delivered twice."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self._simulation = simulation

    def send(self, message: Message, *, delay_seconds: int = 0) -> None:
        simulation = self._simulation
        if message.lane not in LANES:
            raise KeyError(message.lane)
        if not 0 <= delay_seconds <= LANE_DELAY_SECONDS or message.process_at is not None:
            raise ValueError(f"no message for a lane: {message}, {delay_seconds} s")
        simulation.counts["sent"] += 1
        row = simulation.rows.get(message.image_id)
        if row is not None and row.schedule == message.schedule:
            simulation.to_take[message.lane].append(row.process_at or row.created_at)
        for _ in range(1 + (simulation.chance.random() < simulation.duplicates)):
            simulation.at(simulation.now + delay_seconds * 1000, lambda: simulation.deliver(message, receive_count=1))

    def backlog(self, lane: str) -> int:
        return 0


class Holding(FakeHoldQueue):
    """The hold queue in the simulation's time; each message may be delivered twice."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self._simulation = simulation
        self.waiting: list[Record] = []

    def put(self, message: Message) -> None:
        simulation = self._simulation
        if message.process_at is None:
            raise ValueError(f"nothing says until when to hold {message}")
        for _ in range(1 + (simulation.chance.random() < simulation.duplicates)):
            simulation.into_hold([Record(body=message.model_dump_json())])


class Objects(FakeHolds):
    """Batches, and when each was last written. Some are damaged in storage: `undamaged` has the others. Others are
    read damaged once."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self._simulation = simulation
        self.put_at: dict[str, Milliseconds] = {}
        self.undamaged: dict[str, bytes] = {}
        self._misread: set[str] = set()

    def get(self, key: str) -> bytes | None:
        dumped, simulation = super().get(key), self._simulation
        if dumped is None or key in self._misread or simulation.chance.random() >= simulation.damages:
            self._misread.discard(key)
            return dumped
        self._misread.add(key)  # the next read of it is whole
        simulation.counts["reads damaged"] += 1
        return flipped(dumped)

    def put(self, key: str, dumped: bytes) -> None:
        simulation = self._simulation
        super().put(key, dumped)
        self.put_at[key] = simulation.now
        self.undamaged.pop(key, None)
        if simulation.chance.random() < simulation.damages:
            simulation.counts["batches damaged"] += 1
            self.undamaged[key] = dumped
            if simulation.chance.random() < 0.25:  # in gzip's header, which no checksum covers: only the key reveals it
                self.objects[key] = dumped[:4] + simulation.chance.randbytes(6) + dumped[10:]
            else:
                self.objects[key] = damaged(dumped, simulation.chance)


class Wakings(FakeWakeUps):
    """Executions: each wakes its batch, and retries if that fails."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self._simulation = simulation

    def set(self, name: str, key: str, wake_at: Milliseconds) -> None:
        new = name not in self.wakings
        super().set(name, key, wake_at)
        if new:
            self._simulation.counts["executions"] += 1
            self._simulation.at(wake_at, lambda: self._simulation.release(key, 0))


@dataclass(kw_only=True)
class Simulation:
    """A delay plane and its clients. `trouble_rate` is the chance that a fault strikes a call."""

    seed: int
    images: int
    days: int = 30
    trouble_rate: float = 0.002
    duplicates: float = 0.02
    damages: float = 0.01

    counts: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    latest_seconds: float = 0.0
    latest_in_turn_seconds: float = 0.0
    latest_rescued_seconds: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.faults = Faults(self._strikes, is_one_process=False, repeats_lost=True, records=False)
        self.time = VirtualTime(START)
        self._made = 0
        self.rows = Rows(self)
        self.holds = Objects(self)
        self.reservations = FakeReservations()
        self.load_shedder = LoadShedder(
            depths=FakeDepths(), throughput=FakeThroughput(), clock=lambda: self.now, service=LANES
        )
        self.lanes = Queues(self)
        self.hold_queue = Holding(self)
        self.wake_ups = Wakings(self)
        self.begun: Counter[tuple[str, int]] = Counter()
        self.to_take: dict[str, list[Milliseconds]] = {name: [] for name in LANES}
        self._begins: dict[str, list[tuple[Milliseconds, Milliseconds, str]]] = {name: [] for name in LANES}
        self.in_damaged_batches: set[tuple[str, int]] = set()
        self.wanted: dict[str, Milliseconds] = {}
        self.withdrawn: dict[str, Milliseconds] = {}
        self._drains_at: Milliseconds | None = None
        self._to_look_at: dict[Milliseconds, set[str]] = {}

    # ── Time ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _strikes(self, _: Call) -> Mode | None:
        """Strikes calls at random."""
        if self.chance.random() >= self.trouble_rate:
            return None
        return self.chance.choice(MODES)

    @property
    def now(self) -> Milliseconds:
        return self.time.now()

    def at(self, instant: Milliseconds, happen: Callable[[], None]) -> None:
        """Schedules something for an instant, or for now if that has passed."""
        self._made += 1

        def happen_now() -> None:
            self._skew = self.chance.randint(-SKEW_MILLISECONDS, SKEW_MILLISECONDS)
            happen()

        self.time.at_instant(instant, happen_now)

    def clock(self) -> Milliseconds:
        """A process's clock: off by seconds, either way."""
        return self.now + self._skew

    _skew = 0

    def run(self) -> None:
        """Plays everything to the end, or until so much is broken that there may be no end."""
        for number in range(self.images):
            self.at(START + self.chance.randrange(self.days * DAY * 1000), lambda number=number: self.arrive(number))  # type: ignore[misc]
        self.time.run(stop=lambda: self.broken.total() >= ENOUGH_BROKEN)
        if self.broken.total() < ENOUGH_BROKEN:
            self.check()

    # ── Clients ───────────────────────────────────────────────────────────────────────────────────────────────────

    def delay_seconds(self) -> float:
        """From a second to 364 days, short ones as likely as long ones; some at the same instants as others'."""
        return min(364 * DAY, 10 ** self.chance.uniform(0, 7.498))

    def arrive(self, number: int) -> None:
        """A client's upload, once its row is written: the promise."""
        process_at: Milliseconds = self.now + int(self.delay_seconds() * 1000)
        if self.chance.random() < 0.3:  # many choose nine o'clock
            process_at = min(-(-process_at // (DAY * 1000)) * DAY * 1000 + 9 * 3600 * 1000, START + 394 * DAY * 1000)
            process_at = min(process_at, self.now + 363 * DAY * 1000)
        expires_at = process_at + self.chance.choice((1_000, 3_600_000)) if self.chance.random() < 0.05 else None
        appointment = appoint(Timetable(process_at=process_at, expires_at=expires_at), now=self.now)
        image = accepted_image(
            image_id=f"{number:026d}",
            lane=self.chance.choice(("fast", "slow")),
            now=self.now,
            process_at=appointment.process_at,
            expires_at=appointment.expires_at,
        )
        self.rows.create(image)
        self.wanted[image.image_id] = image.process_at or self.now
        self.counts["accepted"] += 1
        self._as_client(lambda: self._enqueue(image))
        for _ in range(self.chance.choice((0, 0, 0, 1, 1, 2))):
            self._plan_change(image.image_id)

    def _plan_change(self, image_id: str) -> None:
        """A change of its time, perhaps there and back, or a withdrawal; many in the last seconds."""
        left = max(1, self.wanted[image_id] - self.now)
        at = self.wanted[image_id] - self.chance.choice((500, 2_000, 60_000, 400_000, left, left // 2))
        match self.chance.choice(("move", "move", "there and back", "withdraw")):
            case "withdraw":
                self.at(at, lambda: self.withdraw(image_id))
            case "move":
                self.at(at, lambda: self.reschedule(image_id, self.now + int(self.delay_seconds() * 1000)))
            case _:
                back = self.wanted[image_id]
                self.at(at, lambda: self.reschedule(image_id, self.now + int(self.delay_seconds() * 1000)))
                self.at(at + 200, lambda: self.reschedule(image_id, max(back, self.now + 1_000)))

    def reschedule(self, image_id: str, process_at: Milliseconds) -> None:
        """A client's PATCH, repeated until it is answered."""

        def once() -> None:
            ports = RescheduleImagePorts(
                images=self.struck_rows,
                lanes=self.struck_lanes,
                hold_queue=self.struck_hold_queue,
                load_shedder=self.load_shedder,
                clock=lambda: self.now,
            )
            timetable = Timetable(process_at=process_at)
            moved = reschedule_image(ports, image_id, timetable, tenant_id="default", tier=Tier.FREE)
            self.wanted[image_id] = moved.process_at or self.now

        try:
            self._as_client(once)
            self.counts["moved"] += 1
        except Rejected as refusal:
            self.counts[f"move refused: {refusal.code}"] += 1
        except LookupError:
            self.counts["move refused: gone"] += 1
        row = self.rows.get(image_id)
        if row is not None and row.process_at is not None:
            self.wanted[image_id] = row.process_at

    def withdraw(self, image_id: str) -> None:
        """A client's DELETE, repeated until it is answered."""
        ports = DeleteImagePorts(images=self.struck_rows, clock=lambda: self.now)
        self._as_client(lambda: delete_image(ports, image_id, tenant_id="default"))
        self.withdrawn.setdefault(image_id, self.now)
        self.counts["withdrawn"] += 1

    def _as_client(self, request: Callable[[], Any]) -> None:
        for _ in range(20):
            try:
                request()
            except (ProcessDied, Retryable):
                continue
            return
        raise AssertionError("twenty times in a row")

    # ── The plane ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def struck_rows(self) -> Any:
        return StruckImages("images", self.rows, self.faults)

    @property
    def struck_lanes(self) -> Any:
        return self.faults.around("lanes", self.lanes)

    @property
    def struck_hold_queue(self) -> Any:
        return self.faults.around("hold_queue", self.hold_queue)

    def _enqueue(self, image: Image) -> None:
        ports = EnqueueInTimePorts(
            images=self.struck_rows,
            lanes=self.struck_lanes,
            hold_queue=self.struck_hold_queue,
            clock=lambda: self.now,
        )
        enqueue_in_time(ports, image)

    def into_hold(self, records: Sequence[Record]) -> None:
        """Messages reach the hold queue, which is drained within its window."""
        self.hold_queue.waiting += records
        if self._drains_at is None or self._drains_at < self.now:
            self._drains_at = self.now + HOLD_WINDOW_SECONDS * 1000
            self.at(self._drains_at, self.drain)

    def drain(self) -> None:
        """One event of the hold queue; what was not settled returns after its visibility timeout."""
        records, self.hold_queue.waiting = self.hold_queue.waiting[:HOLD_BATCH], self.hold_queue.waiting[HOLD_BATCH:]
        if self.hold_queue.waiting:
            self.at(self.now, self.drain)
        if not records:
            return
        self.counts["drained"] += 1
        known_lanes = [*LANES]
        if any(not record.bad for record in records):
            records += [self._bad_message() for _ in range(self.chance.choice((1, 1, 2, 3)))]
            if self.chance.random() < 0.1:
                known_lanes.append(NEWER_LANE)
                records.append(self._message_of_a_newer_version())
            self.chance.shuffle(records)
        try:
            failed = hold_images(
                HoldImagesPorts(
                    lanes=self.struck_lanes,
                    holds=self.faults.around("holds", self.holds),
                    wake_ups=self.faults.around("wake_ups", self.wake_ups),
                    clock=self.clock,
                    known_lanes=known_lanes,
                    message_keys=KEYS,
                    rejected_messages=FakeDeadLetters(),
                ),
                [received(HOLD, record.body) for record in records],
                out_of_time=lambda: False,
            ).failed
        except ProcessDied as death:
            self.counts["kills"] += 1
            failed = dict.fromkeys(range(len(records)), death)  # type: ignore[arg-type]
        except Exception as error:
            self._hold(False, "bugs", "hold_images", repr(error))
            failed = dict.fromkeys(range(len(records)), error)
        again = []
        for place, record in enumerate(records):
            self._judge(record, failed.get(place))
            if place in failed and record.returns > 0:
                again.append(replace(record, returns=record.returns - 1))
        if again:
            self.at(self.now + HOLD_VISIBILITY_SECONDS * 1000, lambda: self.into_hold(again))

    def _judge(self, record: Record, error: BaseException | None) -> None:
        """Whether the message had the right result: a good one is settled, and a bad one fails for its own reason."""
        if isinstance(error, ProcessDied | Retryable):
            return
        if not record.bad:
            self._hold(error is None, "good messages refused", record.body, repr(error))
            return
        self.counts[f"bad: {record.bad}"] += 1
        dead_letter = read_batch_dead_letter(record.body)
        is_bad = dead_letter is None or dead_letter.batch in self.holds.undamaged
        expected = BAD_FOR[record.bad] if is_bad else type(None)
        self._hold(type(error) is expected, "bad messages taken for others", record.body[:200], repr(error))

    def _bad_message(self) -> Record:
        bad = self.chance.choice([*BAD_FOR])
        seconds = self.chance.choice((60, 3_600, 90 * DAY))
        message: dict[str, Any] = {
            "v": 1,
            "image_id": f"{self.chance.randrange(10**9):026d}",
            "tenant_id": "default",
            "lane": self.chance.choice([*LANES]),
            "run": 1,
            "schedule": 0,
            "process_at": self.now + seconds * 1000,
        }
        match bad:
            case "junk":
                junk = self.chance.choice(("", "null", "{}", "nothing of ours", "[" * 10_000))
                return Record(body=junk, bad=bad, returns=BAD_RETURNS)
            case "a negative time":
                message["process_at"] = self.chance.choice((-1, -(10**30)))
            case "a time beyond the wheel":
                message["process_at"] = self.chance.choice((10**30, 300_000_000_000_000, self.now + 366 * DAY * 1000))
            case "an unknown lane":
                message["lane"] = "nowhere"
            case _:
                # Of a missing batch, unless one is known to be damaged.
                key = self.chance.choice([*self.holds.undamaged] or [f"holds/x/{'0' * 40}.json.gz"])
                return self._dead_letter(key)
        return Record(body=json.dumps(message), bad=bad, returns=BAD_RETURNS)

    def _message_of_a_newer_version(self) -> Record:
        """A scheduled image in a lane that this version does not know: the release of its batch leaves it out."""
        self._made += 1
        process_at = self.now + int(max(3_600, self.delay_seconds()) * 1000)
        image = accepted_image(image_id=f"7{self._made:025d}", now=self.now, process_at=process_at)
        image = replace(image, lane=NEWER_LANE)
        self.rows.rows[image.image_id] = image  # the sweeper for it is of that version too
        message = message_for(image).model_copy(update={"process_at": process_at})
        return Record(body=message.model_dump_json(), returns=0)  # this version could do nothing with it

    def _dead_letter(self, key: str) -> Record:
        dead_letter = {"v": 1, "batch": key, "position": 0, "error": "", "cause": "", "execution": ""}
        return Record(body=json.dumps(dead_letter), bad="a damaged batch", returns=BAD_RETURNS)

    def release(self, key: str, position: int, begins_at: Milliseconds | None = None, tries: int = 0) -> None:
        """One step of an execution: if the function fails, it is invoked again, a little later each time."""
        try:
            released = release_images(
                ReleaseImagesPorts(
                    images=self.struck_rows,
                    lanes=self.struck_lanes,
                    hold_queue=self.struck_hold_queue,
                    holds=self.faults.around("holds", self.holds),
                    reservations=self.faults.around("reservations", self.reservations),
                    clock=self.clock,
                    service=LANES,
                ),
                key,
                position=position,
                begins_at=begins_at,
                out_of_time=lambda: self.chance.random() < 0.01,
            )
        except UnreadableBatch:
            self._hold(key in self.holds.undamaged, "batches refused", key, "")
            self._give_up(key)
            return
        except (ProcessDied, Retryable) as error:
            self.counts["kills"] += isinstance(error, ProcessDied)
            self.at(self.now + 2_000 * 2**tries, lambda: self.release(key, position, begins_at, tries + 1))
            return
        except Exception as error:
            self._hold(False, "bugs", f"release_images {key}", repr(error))
            if tries < RELEASE_TRIES:
                self.at(self.now + 150_000, lambda: self.release(key, position, begins_at, tries + 1))
            else:
                self._give_up(key)
            return
        self._hold(key not in self.holds.undamaged or key not in self.holds.objects, "damages unnoticed", key, "")
        self.counts["turns"] += 1
        self.counts["stale"] += released.stale
        self.counts["held again"] += released.held
        self.counts["left out"] += len(released.skipped)
        for image_id, reason in released.skipped.items():
            self._hold(self.rows.rows[image_id].lane == NEWER_LANE, "good images left out", image_id, reason)
        if not released.done:
            self.at(released.wake_at, lambda: self.release(key, released.position, released.begins_at))

    def _give_up(self, key: str) -> None:
        """One dead letter, which an operator moves back; the sweeper takes care of its images."""
        self.counts["batches given up"] += 1
        if key in self.holds.undamaged:
            entries = read_batch(self.holds.undamaged[key]).entries
            self.in_damaged_batches |= {(entry.message.image_id, entry.message.schedule) for entry in entries}
        self.at(self.now + DEAD_LETTER_SECONDS * 1000, lambda: self.into_hold([self._dead_letter(key)]))

    def deliver(self, message: Message, *, receive_count: int) -> None:
        """A worker's claim and finish, by its own clock."""
        row = self.rows.get(message.image_id)
        if row is None:
            return
        now = self.clock()
        decision = claim(row, message, lease(now=now, claimed_by=f"{self._made}"))
        match decision:
            case TooEarly(process_at=process_at):
                self.counts["came early"] += 1
                self.at(
                    self.now + seconds_until(process_at, now) * 1000,
                    lambda: self.deliver(message, receive_count=receive_count + 1),
                )
            case Expire(image=after):
                self.rows.change(row, after)
                self.counts["expired"] += 1
            case Claim(image=after):
                self._begin(row, self.rows.change(row, after))

    def _begin(self, before: Image, image: Image) -> None:
        image_id = image.image_id
        process_at = image.process_at or image.created_at
        early, late = (process_at - self.now) / 1000, (self.now - process_at) / 1000
        self.begun[image_id, image.schedule] += 1
        if (image_id, image.schedule) in self.in_damaged_batches:
            self._begin_rescued(image, late)
        else:
            self.latest_seconds = max(self.latest_seconds, late)
            self._begins[image.lane].append((process_at, self.now, image_id))
        # A worker reads its own clock, which is seconds off.
        self._hold(early * 1000 <= SKEW_MILLISECONDS, "early", image_id, early)
        self._hold(process_at == self.wanted[image_id], "another time's", image_id, self.wanted[image_id])
        self._hold(image_id not in self.withdrawn, "released after its withdrawal", image_id, "")
        self._hold(self.begun[image_id, image.schedule] == 1, "doubled", image_id, image.schedule)
        self.rows.change(image, complete(image, (), notices=(), now=self.now))

    def _begin_rescued(self, image: Image, late: float) -> None:
        """The images of a damaged batch are sent by the sweeper, which looks for them after twice their lane's service
        level, and waits for releases that have reserved the lane."""
        self.counts["rescued from damaged batches"] += 1
        self.latest_rescued_seconds[image.lane] = max(self.latest_rescued_seconds[image.lane], round(late))
        allowed = LANES[image.lane].first_look_at(0) / 1000 + RESCUED_SECONDS + ALLOWANCE_SECONDS
        reserved = (self.reservations.busy_until(image.lane) - (image.process_at or 0)) / 1000
        self._hold(late <= max(allowed, reserved + allowed), "rescued late", image.image_id, late)

    def look_in_time(self, row: Image) -> None:
        """Sweeps run every minute; those at which nothing is due are left out."""
        if row.due_at is None:
            return
        minute = max(-(-row.due_at // 60_000), self.now // 60_000 + 1) * 60_000
        if minute not in self._to_look_at:
            self._to_look_at[minute] = set()
            self.at(minute, lambda: self.sweep(minute))
        self._to_look_at[minute].add(row.image_id)

    def sweep(self, minute: Milliseconds) -> None:
        """What the sweeper does with the due images."""
        rows = (self.rows.get(image_id) for image_id in self._to_look_at.pop(minute))
        self.rows.due_now = [
            Due(row.due_at, row.image_id)
            for row in rows
            if row is not None and row.due_at is not None and row.due_at <= self.now
        ]
        if not self.rows.due_now:
            return
        world = World(
            images=self.rows,
            lanes=self.lanes,
            hold_queue=self.hold_queue,
            reservations=self.reservations,
            service=LANES,
            time=self.time,
        )
        swept = sweep_due_images(world.ports(SweepDueImagesPorts, at_once=one_after_another), out_of_time=lambda: False)
        outcomes = swept.outcomes
        self.counts.update({f"swept: {name}": count for name, count in outcomes.items()})

    # ── The end ───────────────────────────────────────────────────────────────────────────────────────────────────

    def check(self) -> None:
        """What must be true when everything has happened."""
        self._check_lateness()
        for image in self.rows.rows.values():
            if image.lane == NEWER_LANE:
                continue
            self.counts[f"ended {image.status}"] += 1
            self._hold(image.status.is_terminal, "lost", image.image_id, image.status)
        # An object whose writer died before it set the wake-up carries no promise: its images were delivered again in
        # another object. The same holds for one that was written again after its release.
        woken = dict(self.wake_ups.wakings.values())
        promised = {key for key, at in self.holds.put_at.items() if at <= woken.get(key, 0)}
        self.counts["orphaned objects"] = len(self.holds.objects.keys() - promised)
        left = sorted((self.holds.objects.keys() & promised) - self.holds.undamaged.keys())
        self._hold(not left, "objects left", "", left[:3])

    def _check_lateness(self) -> None:
        """An image is late if it begins later than its time, and later than it would in a lane that takes all messages
        at its pace, first come first served: nothing can begin before the lane can take it. If a crash doubles
        messages, the lane takes both."""
        for lane, begins in self._begins.items():
            taken_by: dict[Milliseconds, float] = {}
            taken_until, pause = 0.0, 1000 / LANES[lane].release_per_second
            for process_at in sorted(self.to_take[lane]):
                taken_by[process_at] = taken_until = max(process_at, taken_until + pause)
            for process_at, begun_at, image_id in begins:
                late = (begun_at - taken_by[process_at]) / 1000
                self.latest_in_turn_seconds = max(self.latest_in_turn_seconds, late)
                self._hold(late <= LATEST_SECONDS + ALLOWANCE_SECONDS, "late", image_id, late)

    def _hold(self, is_so: bool, harm: str, image_id: str, details: object) -> None:
        if not is_so:
            self.broken[harm] += 1
            if len(self.examples) < 10:
                self.examples.append(f"{harm}: {image_id}, {details}")


HARMS = (
    "early",
    "late",
    "lost",
    "doubled",
    "released after its withdrawal",
    "another time's",
    "objects left",
    "bugs",
    "good messages refused",
    "bad messages taken for others",
    "batches refused",
    "damages unnoticed",
    "good images left out",
    "rescued late",
)

MUST_HAPPEN = (
    "accepted",
    "moved",
    "withdrawn",
    "expired",
    "drained",
    "executions",
    "turns",
    "held again",
    "stale",
    "kills",
    "came early",
    *(f"bad: {bad}" for bad in BAD_FOR),
    "batches damaged",
    "reads damaged",
    "batches given up",
    "rescued from damaged batches",
    "left out",
    "ended done",
    "ended cancelled",
    "ended expired",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the simulation, prints what happened in it and writes the report; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.delays", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    long = os.environ.get("LONG") == "1"
    parser.add_argument("--images", type=int, default=1_000_000 if long else 50_000)
    parser.add_argument("--days", type=int, default=30, help="over how many days they arrive")
    parser.add_argument("--pace", type=float, default=1.0, help="how much wider the lanes are than the template's")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    for name, lane in LANES.items():
        LANES[name] = replace(lane, concurrency=round(lane.concurrency * options.pace))
    started = time.monotonic()
    simulation = Simulation(seed=options.seed, images=options.images, days=options.days)
    simulation.run()
    counts = simulation.counts + simulation.faults.struck
    for name, count in sorted(counts.items()):
        print(f"{name:<40}{count:>12,}")
    print(f"{'latest begin, after its time (s)':<40}{simulation.latest_seconds:>12.1f}")
    print(f"{'latest begin, after its turn (s)':<40}{simulation.latest_in_turn_seconds:>12.1f}")
    for lane_name, seconds in sorted(simulation.latest_rescued_seconds.items()):
        print(f"{f'latest begin of a damaged batch, {lane_name} (s)':<40}{seconds:>12}")
    print(f"{simulation.images:,} images in {time.monotonic() - started:.0f} s")
    for example in simulation.examples:
        print(example)
    missing = [name for name in MUST_HAPPEN if not counts[name]]
    for name in missing:
        print(f"never happened: {name}")
    goals = [
        *(
            Goal(name=f"{harm} of delayed images", value=simulation.broken[harm], limit=0, at_least=False)
            for harm in HARMS
        ),
        Goal(name="things that never happened to delayed images", value=len(missing), limit=0, at_least=False),
    ]
    write_report("delays", seed=options.seed, rows=[{"images": simulation.images, **counts}], goals=goals)
    return 1 if simulation.broken or missing else 0


if __name__ == "__main__":
    sys.exit(main())
