"""Live lanes beside a backfill, in virtual time: how long their images take with and without it, and whether it makes
and counts each of its images once after ten interruptions.

The backfill's looks and the decisions on each image are the product's own. Workers are as many as are deployed; where
an account lets fewer run at once, lanes get them in proportion.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import quantiles
from typing import Any

from benchmarks.forms import by_form
from benchmarks.sweeper.calls import PLANS, QUERY
from benchmarks.sweeper.loads import Load
from benchmarks.sweeper.stores import IndexedImages
from darkroom.domain.bulk.backfills import BackfillState, Selection, decided, start
from darkroom.domain.images.claim import Claim, claim
from darkroom.domain.images.image import Image, message_for
from darkroom.domain.images.transitions import complete
from darkroom.domain.kernel.lanes import BULK, LANES, LIVE_LANES
from darkroom.domain.kernel.message import Message
from darkroom.operations.bulk.feed_backfill import FeedBackfillPorts
from darkroom.operations.bulk.run_schedule import RunSchedulePorts
from darkroom.operations.bulk.sweep_due_bulk import SweepDueBulkPorts, sweep_due_bulk
from darkroom.ports.bulk import Found
from repository.report import Goal
from tests.support.fakes.backfills import OF_STANDARD, BackfillsWorld
from tests.support.fakes.rows import lease
from tests.support.fakes.stores import FakeLanes
from tests.support.faults import Faults, Mode, ProcessDied, at
from tests.support.virtual.cloud import Cloud, Remote
from tests.support.virtual.latencies import DAYS, Latency
from tests.support.virtual.virtual_time import VirtualTime

MINUTES, IMAGES = by_form(short=0.5, usual=20.0, long=180.0), by_form(short=500, usual=20_000, long=180_000)
"""How long live load comes, and how many images the backfill has: what its lane makes in that time."""

PER_SECOND: Mapping[str, float] = {"fast": 30, "slow": 15}
BURSTS: Mapping[str, int] = {"fast": 1_500, "slow": 2_000}
BURST_SECONDS, BURST_EVERY_SECONDS = 10, 300
"""The steady load, and what comes besides of it in a few seconds every five minutes."""

WORK = Latency(median=220, p99=900)
"""Milliseconds that a worker takes for an image, 0.26 seconds in the mean."""

USUAL_ACCOUNT, SMALL_ACCOUNT = 1000, 24
"""Concurrent executions of an account as AWS gives it, and of one with fewer than the lanes have workers, 34."""

MOST_RATIO = 1.25
MINUTE = 60_000
STOP_SECONDS = 40
"""How long a sweep goes on: ten seconds less than its function's timeout."""


@dataclass
class SortedScan:
    """The images' table, of which an id that comes later is the greater one."""

    images: IndexedImages
    ids: list[str] = field(default_factory=list)

    def select(self, selection: Selection, *, after: str | None, limit: int) -> Found:
        first = 0 if after is None else bisect_right(self.ids, after)
        read = self.ids[first : first + limit]
        return Found(
            image_ids=tuple(each for each in read if selection.covers(self.images.rows[each])),
            up_to=read[-1] if first + limit < len(self.ids) else None,
            read=len(read),
        )


@dataclass
class CalledLanes(FakeLanes):
    """The lanes, which hand each message to their workers."""

    come: Callable[[Message], None] = field(kw_only=True)

    def send(self, message: Message, *, delay_seconds: int = 0) -> None:
        self.come(message)


class Stack:
    """A stack at one load. `seconds` says how long each lane's images took, from their acceptance on."""

    def __init__(self, *, seed: int, day: str = "usual", most_running: int = USUAL_ACCOUNT) -> None:
        self.time, self.most_running, self.seed = VirtualTime(), most_running, seed
        self.chance, self.load = random.Random(seed), Load(seed)
        self.images = IndexedImages(time=self.time)
        self.world = BackfillsWorld(time=self.time, images=self.images, lanes=CalledLanes(come=self.come))
        self.world.scan = self.scan = SortedScan(self.images)
        self.waiting: dict[str, deque[Message]] = {name: deque() for name in LANES}
        self.running: Counter[str] = Counter()
        self.milliseconds: dict[str, float] = {}
        self.seconds: dict[str, list[float]] = {name: [] for name in LIVE_LANES}
        self.faults = Faults(records=False)
        plans: Any = {**PLANS, "backfills": defaultdict(lambda: QUERY), "scan": {"select": QUERY}}
        cloud = Cloud(self.time, DAYS[day], self.chance)
        fed: Any = {
            name: self.faults.around(name, Remote(cloud, name, getattr(self.world, name), plans[name]))
            for name in ("images", "lanes", "backfills", "scan")
        }
        feeding, scheduling = self.world.ports(FeedBackfillPorts, **fed), self.world.ports(RunSchedulePorts)
        self.sweeping = self.world.ports(SweepDueBulkPorts, imports=None, feeding=feeding, scheduling=scheduling)

    # ── Workers ───────────────────────────────────────────────────────────────────────────────────────────────────

    def come(self, message: Message) -> None:
        """A message is in its lane."""
        self.waiting[message.lane].append(message)
        self.poll()

    def poll(self) -> None:
        """Workers take what waits, as many as may run."""
        while self.running.total() < self.most_running:
            free = [name for name in LANES if self.waiting[name] and self.running[name] < LANES[name].concurrency]
            if not free:
                return
            lane = min(free, key=lambda name: self.running[name] / LANES[name].concurrency)
            self.running[lane] += 1
            self._work(lane, self.waiting[lane].popleft())

    def _work(self, lane: str, message: Message) -> None:
        row, milliseconds = self.images.rows[message.image_id], 20.0
        decision = claim(row, message, lease(now=self.time.now()))
        begun = self.images.change(row, decision.image) if isinstance(decision, Claim) else None
        if begun is not None:
            milliseconds = self.milliseconds.get(row.image_id) or WORK.draw(self.chance)

        def end() -> None:
            self.running[lane] -= 1
            if begun is not None:
                self._end(lane, begun)
            self.poll()

        self.time.after(milliseconds, end)

    def _end(self, lane: str, begun: Image) -> None:
        self.images.change(begun, complete(begun, (), notices=(), now=self.time.now()))
        if lane in LIVE_LANES:
            self.seconds[lane].append((self.time.now() - begun.created_at) / 1000)

    # ── What comes ────────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, images: int) -> None:
        """So many images that are done, a day ago."""
        done = [self.load.developed("default", at=self.time.now()) for _ in range(images)]
        rows = [replace(row, image_id=f"0{number:025d}") for number, row in enumerate(done)]
        self.images.put(rows)
        self.scan.ids += [row.image_id for row in rows]

    def serve(self, minutes: float) -> None:
        """Live images come for so long, the same ones with the same seed."""
        chance = random.Random(f"live {self.seed}")
        instants = [
            (second * 1000 + chance.uniform(0, 1000), lane)
            for second in range(round(minutes * 60))
            for lane, rate in PER_SECOND.items()
            for _ in range(round(rate + (BURSTS[lane] / BURST_SECONDS if _is_burst(second) else 0)))
        ]
        for number, (instant, lane) in enumerate(sorted(instants)):
            self.time.at(instant, lambda lane=lane, number=number: self._accept(lane, number))  # type: ignore[misc]
            self.milliseconds[f"1{number:025d}"] = WORK.draw(chance)

    def _accept(self, lane: str, number: int) -> None:
        accepted = self.load.image("default", accepted_at=self.time.now(), lane=lane)
        image = self.images.create(replace(accepted, image_id=f"1{number:025d}", preset_version=2))
        self.scan.ids.append(image.image_id)
        self.come(message_for(image))

    # ── The functions that sweep ──────────────────────────────────────────────────────────────────────────────────

    def sweep_every_minute(self) -> None:
        self.time.start(self.sweep)
        self.time.after(MINUTE, self.sweep_every_minute)

    def sweep(self) -> None:
        """An invocation of the sweep of bulk work, which a fault may kill, and one of the sweep of images."""
        self.faults.is_dead, until = False, self.time.elapsed() + STOP_SECONDS * 1000
        try:
            swept = sweep_due_bulk(self.sweeping, out_of_time=lambda: self.time.elapsed() > until)
            for error in swept.errors.values():
                raise error
        except ProcessDied:
            pass
        self.world.sweep()

    def start(self, backfill_id: str) -> None:
        """Begins a backfill of all."""
        self.world.backfills.create(start(backfill_id, OF_STANDARD, rate=None, now=self.time.now()))

    def pass_minutes(self, minutes: float) -> None:
        """Lets time pass."""
        self.time.pause(minutes * MINUTE)


def _is_burst(second: int) -> bool:
    return second % BURST_EVERY_SECONDS in range(60, 60 + BURST_SECONDS)


def beside(*, seed: int, images: int, minutes: float, most_running: int = USUAL_ACCOUNT) -> dict[str, Any]:
    """The live lanes for so long, beside a backfill of so many images, or none."""
    stack = Stack(seed=seed, most_running=most_running)
    stack.put(images)
    if images:
        stack.start("bf_1")
    stack.serve(minutes)
    stack.sweep_every_minute()
    stack.pass_minutes(minutes + 10)
    stack.time.close()
    p99s = {lane: round(quantiles(seconds, n=100)[-1], 2) for lane, seconds in stack.seconds.items() if seconds}
    return {
        "images": images,
        "executions": most_running,
        "made_again": sum(row.counts.done for row in stack.world.backfills.rows.values()),
        "live": sum(map(len, stack.seconds.values())),
        **{f"{lane}_p99_seconds": p99 for lane, p99 in p99s.items()},
        **{f"{lane}_longest_seconds": round(max(stack.seconds[lane]), 2) for lane in p99s},
    }


def strike(mode: Mode) -> Callable[[Stack], None]:
    """Strikes some call of the looks to come, and waits until it has."""

    def interrupt(stack: Stack) -> None:
        stack.faults.plan = at(stack.faults.number + stack.chance.randrange(5, 100), mode)
        struck = stack.faults.struck.total()
        while stack.faults.struck.total() == struck:
            stack.pass_minutes(0.5)
        stack.faults.plan = lambda call: None

    return interrupt


def outage(stack: Stack) -> None:
    """For two minutes every call of the looks is throttled."""
    stack.faults.plan = lambda call: "throttled"
    stack.pass_minutes(2)
    stack.faults.plan = lambda call: None


def two_looks(stack: Stack) -> None:
    stack.time.start(stack.sweep)
    stack.time.start(stack.sweep)


def lost_messages(stack: Stack) -> None:
    stack.waiting[BULK.name].clear()


def started_again(stack: Stack) -> None:
    row = stack.world.backfills.rows["bf_1"]
    stack.world.backfills.change(row, decided(row, BackfillState.CANCELLED, now=stack.time.now()))
    stack.start("bf_2")


INTERRUPTIONS: Sequence[Callable[[Stack], None]] = (
    strike("dies before"),
    two_looks,
    strike("dies after"),
    lost_messages,
    strike("answer lost"),
    strike("throttled"),
    started_again,
    strike("dies after"),
    outage,
    strike("dies before"),
)


def interrupted(*, seed: int, images: int) -> dict[str, Any]:
    """A backfill of so many images on a bad day that is interrupted ten times; `wrong` are the images that were not
    made again once, and those by which the counts are not those of the rows."""
    stack = Stack(seed=seed, day="bad")
    stack.put(images)
    stack.start("bf_1")
    stack.sweep_every_minute()
    for interrupt in INTERRUPTIONS:
        interrupt(stack)
    backfills = stack.world.backfills.rows
    while not all(row.has_ended for row in backfills.values()):
        stack.pass_minutes(2)
    stack.time.close()
    made = Counter[str]()
    wrong = 0
    for row in stack.images.rows.values():
        works = [work.backfill for work in row.works if work.ended_at is not None and not work.failed]
        wrong += (len(works), len(row.works), row.preset_version) != (1, 1, 2)
        made.update(name for name in works if name is not None)
    wrong += sum(abs(row.counts.done - made[name]) + row.in_work for name, row in backfills.items())
    return {
        "images": images,
        "interruptions": len(INTERRUPTIONS),
        "made_again": made.total(),
        "counted": sum(row.counts.done for row in backfills.values()),
        "wrong": wrong,
        "hours": round(stack.time.elapsed() / MINUTE / 60, 1),
    }


def rows(seed: int, *, images: int = IMAGES, minutes: float = MINUTES) -> list[dict[str, Any]]:
    """The live lanes with and without a backfill, in a usual account and in a small one, and one with interruptions."""
    live = [
        beside(seed=seed, images=some, minutes=minutes, most_running=most_running)
        for most_running in (USUAL_ACCOUNT, SMALL_ACCOUNT)
        for some in (0, images)
    ]
    return [*live, interrupted(seed=seed, images=images)]


def goals_of(rows: Sequence[Mapping[str, Any]]) -> list[Goal]:
    """Of the worse account and lane the p99 beside a backfill, in itself and as a share of what is promised."""
    *live, broken = rows
    ratio = max(
        with_it[f"{lane}_p99_seconds"] / without[f"{lane}_p99_seconds"]
        for without, with_it in (live[:2], live[2:])
        for lane in PER_SECOND
    )
    share = max(row[f"{lane}_p99_seconds"] / LIVE_LANES[lane].sla_seconds for row in live for lane in PER_SECOND)
    return [
        Goal(name="p99 of a live lane beside a backfill, of that without", value=round(ratio, 3), limit=MOST_RATIO),
        Goal(name="the same, of what the lane promises", value=round(share, 3), limit=1),
        Goal(name="images made or counted wrong after ten interruptions", value=broken["wrong"], limit=0),
    ]
