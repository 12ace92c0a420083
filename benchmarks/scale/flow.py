"""Uploads through the gateway, the function that accepts them, the lanes and their workers: each at its own instant.

The decisions are the product's own: each process has its load shedder, each worker reports what it did. What an
operation does in between is the time and the writes of the sample."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.scale.aws import Account, Bites, Bucket, Function, Table
from benchmarks.scale.sample import Sample
from darkroom.aws.kernel.clients import ATTEMPTS
from darkroom.domain.images.load_shedding import FIRST_BATCHES, MORE_BATCHES_PER_SECOND
from darkroom.domain.kernel.errors import TurnedAway
from darkroom.domain.kernel.lanes import Lane, lane_for
from darkroom.domain.kernel.retry import OUTAGE, RetryPolicy
from darkroom.domain.kernel.tenants import Tier
from darkroom.operations.images.load_shedder import LoadShedder
from darkroom.operations.sweeping.worker_counts import ReportThroughputPorts, ThroughputCounter, report_throughput
from darkroom.ports.images import QueueDepth
from darkroom_cli.capacity.plan import READ_MILLISECONDS, STATUS_READS, VARIANTS
from darkroom_cli.capacity.quotas import INVOCATIONS_OF_A_POLLER, NEW_TABLE_WRITES, PREFIX_PUTS, Quotas
from tests.support.fakes.load_shedding import FakeThroughput
from tests.support.virtual.virtual_time import VirtualTime

POLLERS_BATCHES_PER_MINUTE = 1000
"""How many more batches per minute provisioned pollers take
(https://aws.amazon.com/blogs/aws/aws-lambda-enhances-sqs-processing-with-new-provisioned-mode-3x-faster-scaling-16x-higher-capacity)."""

TICK = 200.0
"""Milliseconds between two looks at what grows by itself."""

DEPTH_LAG = 1000.0
"""How old the depth of a queue is that SQS answers: its counts are approximate, and settle within a minute after the
last message (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html)."""

SUBMIT_STARTS, WORKER_STARTS = 516.0, 522.0
"""Milliseconds of a cold start: docs/benchmarks.md."""

REFUSAL = 10.0
RECEIVE, INVOKE = 10.0, 5.0
"""Milliseconds of an upload that is turned away, of a poller's receive, of the invocation of a warm function."""

FULL = 10
"""With so many images that wait for each worker, which is about five seconds of work, a lane counts as saturated."""

IDLE = 60_000.0
"""After so long without a message that waits, an event source begins with few batches again."""

THROTTLED = 1000.0
"""When a poller invokes a function again that was throttled."""


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """A stack and its account: the lanes' workers and provisioned pollers (0: none), the throttle of its route, the
    workers that are reserved, and the write units that its tables are warmed for."""

    service: Mapping[str, Lane]
    pollers: Mapping[str, int] = field(default_factory=dict)
    uploads_per_second: int = 500
    uploads_at_once: int = 1000
    reserved_workers: int = 0
    table_writes: float = NEW_TABLE_WRITES
    object_puts: float = PREFIX_PUTS
    quotas: Quotas = field(default_factory=Quotas)


@dataclass(frozen=True, kw_only=True)
class Phase:
    """So many uploads per second, for so many seconds."""

    per_second: float
    seconds: float


class Source:
    """A lane's queue with its event source, which runs more batches at a time while messages wait."""

    def __init__(self, flow: Flow, lane: Lane, pollers: int) -> None:
        self.lane = lane
        self.waiting: deque[float] = deque()
        self.in_flight = self.running = 0
        self.sent = self.done = 0
        self.late, self.longest = 0, 0.0
        self.depths: deque[tuple[float, int, int]] = deque()
        self._flow = flow
        first = INVOCATIONS_OF_A_POLLER * pollers if pollers else FIRST_BATCHES
        per_second = POLLERS_BATCHES_PER_MINUTE / 60 if pollers else MORE_BATCHES_PER_SECOND
        self._first, self._gain = min(first, lane.concurrency), per_second / 1000
        self._may_run = float(self._first)
        self._waited_at = self._grown_at = 0.0

    def send(self, accepted_at: float) -> None:
        """Takes the message of an image."""
        self.waiting.append(accepted_at)
        self.poll()

    def tick(self) -> None:
        """Grows, or shrinks, and polls."""
        now = self._flow.time.elapsed()
        if self.waiting:
            self._may_run = min(self.lane.concurrency, self._may_run + (now - self._grown_at) * self._gain)
            self._waited_at = now
        elif now - self._waited_at > IDLE:
            self._may_run = max(self._first, self.running)
        self._grown_at = now
        self.depths.append((now, len(self.waiting), self.in_flight))
        while len(self.depths) > 1 and self.depths[1][0] <= now - DEPTH_LAG:
            self.depths.popleft()
        self.poll()
        if len(self.waiting) > FULL * self.lane.concurrency and self.running == self.lane.concurrency:
            self._flow.bites.note(f"workers of the {self.lane.name} lane")
        elif len(self.waiting) > self._may_run and self.running < self.lane.concurrency:
            self._flow.bites.note(f"ramp of the event source of the {self.lane.name} lane")

    def poll(self) -> None:
        """Begins as many batches as may run."""
        while self.waiting and self.running < int(self._may_run):
            batch = [self.waiting.popleft() for _ in range(min(self.lane.batch_size, len(self.waiting)))]
            self.in_flight += len(batch)
            self.running += 1
            self._begin(batch)

    def _begin(self, batch: Sequence[float]) -> None:
        begun = self._flow.transcode.begin()
        time = self._flow.time
        if begun is None:
            time.after(THROTTLED, lambda: self._begin(batch))
            return
        counter, later = begun
        time.after(RECEIVE + INVOKE + later, lambda: self._work(counter, batch, 0))

    def _work(self, counter: ThroughputCounter, batch: Sequence[float], place: int, calls: int = 1) -> None:
        flow, now = self._flow, self._flow.time.elapsed()
        if place == len(batch):
            self.running -= 1
            report_throughput(flow.reporting, counter)
            flow.transcode.end(counter)
            self.poll()
            return
        policy = None
        if not flow.objects.take(VARIANTS):
            policy = RetryPolicy()
        elif not flow.table.write(flow.claim_units):
            policy = OUTAGE
        if policy is None:
            milliseconds = flow.chance.choice(flow.workers[self.lane.name])
            flow.time.after(milliseconds, lambda: self._finish(counter, batch, place, now))
        elif calls < ATTEMPTS:  # the SDK tries again
            pause = flow.chance.uniform(0, 1000 * 2 ** (calls - 1))
            flow.time.after(pause, lambda: self._work(counter, batch, place, calls + 1))
        else:
            flow.outcomes["tried again later"] += 1
            delay = policy.delay_seconds(1, flow.chance.random()) * 1000
            flow.time.after(delay, lambda: self._come_back(batch[place]))
            self._work(counter, batch, place + 1)

    def _come_back(self, accepted_at: float) -> None:
        self.in_flight -= 1
        self.send(accepted_at)

    def _finish(self, counter: ThroughputCounter, batch: Sequence[float], place: int, began: float) -> None:
        now, flow = self._flow.time.elapsed(), self._flow
        counter.count(self.lane.name, is_settled=True, busy_milliseconds=int(now - began))
        self.in_flight -= 1
        self.done += 1
        took = now - batch[place]
        self.longest = max(self.longest, took)
        self.late += took > self.lane.sla_seconds * 1000
        flow.resolve(self)
        self._work(counter, batch, place + 1)


class Flow:
    """One stack under one load. `refusals` has, for each lane, what `Retry-After` said and what the backlog that it was
    said for really took; `outcomes` counts answers."""

    def __init__(self, deployed: Deployed, sample: Sample, phases: Sequence[Phase], *, seed: int) -> None:
        self.time = VirtualTime()
        self.chance = random.Random(seed)
        self.bites = Bites(self.time)
        self.outcomes: Counter[str] = Counter()
        self.refusals: dict[str, list[tuple[float, float]]] = {name: [] for name in deployed.service}
        self.workers = sample.workers
        self.claim_units = sample.writes["images"] - 1
        self.throughput = FakeThroughput()
        self.reporting = ReportThroughputPorts(throughput=self.throughput, clock=self.time.now)
        quotas = deployed.quotas
        self.account = Account(concurrency=quotas.concurrency, reserved=deployed.reserved_workers)
        self._service = deployed.service
        self.transcode: Function[ThroughputCounter] = Function(
            self.bites,
            self.account,
            ThroughputCounter,
            initialisation=WORKER_STARTS,
            reserved=deployed.reserved_workers,
        )
        self.submit: Function[LoadShedder] = Function(
            self.bites, self.account, self._shedder, initialisation=SUBMIT_STARTS
        )
        self.table = Table(self.bites, "writes of a new images table", warm=deployed.table_writes)
        self.objects = Bucket(
            self.bites, "S3 PUTs of variants", per_second=deployed.object_puts, at_once=deployed.object_puts
        )
        self.sources = {
            name: Source(self, lane, deployed.pollers.get(name, 0)) for name, lane in deployed.service.items()
        }
        self._route = Bucket(
            self.bites,
            "the gateway's throttle",
            per_second=deployed.uploads_per_second,
            at_once=deployed.uploads_at_once,
        )
        self._gateway = Bucket(
            self.bites,
            "requests to the account's APIs",
            per_second=quotas.gateway_per_second,
            at_once=quotas.gateway_at_once,
        )
        self._uploads = sample.uploads
        self._open: dict[str, deque[tuple[float, float, int]]] = {name: deque() for name in deployed.service}
        self._arrive(phases)

    def depth(self, lane: str) -> QueueDepth:
        """The `Depths` port."""
        depths = self.sources[lane].depths
        _, waiting, in_flight = depths[0] if depths else (0.0, 0, 0)
        return QueueDepth(waiting=waiting, taken=in_flight)

    def run(self, *, patience_seconds: float) -> None:
        """Lets time pass until everything accepted is done, or for so long after the last upload."""
        self.time.pause(self._until)
        last = self._until + patience_seconds * 1000
        while self.time.elapsed() < last and any(source.done < source.sent for source in self.sources.values()):
            self.time.pause(1000)
        self.time.close()

    def resolve(self, source: Source) -> None:
        """Refusals whose backlog is done now are compared with what they were told."""
        open_refusals = self._open[source.lane.name]
        while open_refusals and open_refusals[0][2] <= source.done:
            at, seconds, _ = open_refusals.popleft()
            self.refusals[source.lane.name].append((seconds, (self.time.elapsed() - at) / 1000))

    def _shedder(self) -> LoadShedder:
        return LoadShedder(depths=self, throughput=self.throughput, clock=self.time.now, service=self._service)

    def _arrive(self, phases: Sequence[Phase]) -> None:
        begins = 0.0
        for phase in phases:
            self.time.at(begins, self._phase(phase, begins + phase.seconds * 1000))
            begins += phase.seconds * 1000
        self._until = begins
        self.time.at(0, self._tick)

    def _phase(self, phase: Phase, until: float) -> Callable[[], None]:
        def upload() -> None:
            self._upload()
            later = self.chance.expovariate(phase.per_second) * 1000
            if self.time.elapsed() + later < until:
                self.time.after(later, upload)

        return upload

    def _tick(self) -> None:
        for source in self.sources.values():
            source.tick()
        done = self.outcomes["accepted"]
        reads = STATUS_READS * (done - self.outcomes["read for"])
        self.outcomes["read for"] = done
        self._gateway.take(reads, anyway=True)
        self.account.others = reads / TICK * READ_MILLISECONDS
        self.time.after(TICK, self._tick)

    def _upload(self) -> None:
        self.outcomes["uploads"] += 1
        if not self._route.take() or not self._gateway.take():
            self.outcomes["429 of the gateway"] += 1
            return
        begun = self.submit.begin()
        if begun is None:
            self.outcomes["503 of Lambda"] += 1
            return
        shedder, later = begun
        tier = self.chance.choice((Tier.PAID, Tier.FREE))
        if later:
            self.time.after(later, lambda: self._submit(shedder, tier))
        else:
            self._submit(shedder, tier)

    def _submit(self, shedder: LoadShedder, tier: Tier) -> None:
        now, source = self.time.elapsed(), self.sources[lane_for(tier).name]
        try:
            shedder.require_capacity(source.lane.name, tier)
        except TurnedAway as refusal:
            self.outcomes["429 overloaded"] += 1
            self._open[source.lane.name].append((now, refusal.retry_after_seconds, source.sent))
            self.time.after(REFUSAL, lambda: self.submit.end(shedder))
            return
        if not self.table.write(1):
            self.outcomes["503 of the table"] += 1
            self.time.after(REFUSAL, lambda: self.submit.end(shedder))
            return
        self.outcomes["accepted"] += 1
        source.sent += 1
        self.time.after(self.chance.choice(self._uploads), lambda: self._accepted(shedder, source, now))

    def _accepted(self, shedder: LoadShedder, source: Source, now: float) -> None:
        self.submit.end(shedder)
        source.send(now)
