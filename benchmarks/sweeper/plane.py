"""The sweeper's function in virtual time: its own operations, one sweep after another, over stores as AWS has them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.sweeper.calls import PLANS, learning, listed
from benchmarks.sweeper.loads import UNREACHABLE, URL
from benchmarks.sweeper.stores import IndexedImages, WorkedFetches, WorkedLanes, Workers
from darkroom.domain.kernel.lanes import FETCH_WORKERS, LANES, USUAL_PHOTO_SECONDS
from darkroom.operations.sweeping.measure_lanes import MeasureLanesPorts, measure_lanes
from darkroom.operations.sweeping.sweep_due_images import SweepDueImagesPorts, sweep_due_images
from darkroom.operations.sweeping.worker_counts import CountOutcomesPorts, OutcomeCounter, report_outcomes
from tests.support.fakes.stores import FakeDeadLetters, FakeRemoteImages
from tests.support.fakes.world import World
from tests.support.virtual.cloud import Cloud, Plan, Remote
from tests.support.virtual.latencies import DAYS, Latency
from tests.support.virtual.processor import Processor
from tests.support.virtual.virtual_time import VirtualTime

MEGABYTES = 1024
"""The memory of the sweeper's function, as in the template."""

SWEEP_SECONDS, TIMEOUT_SECONDS = 60, 50
"""The period of sweeps, and the function's timeout, as in the template."""

STOP_SECONDS = 10
"""How long before its timeout a sweep ends, as in its handler."""

START_MILLISECONDS = 15.0
"""The processor's part in an invocation besides the calls: the event, the log lines and the metrics."""

FETCH_MILLISECONDS = 200.0
"""How long a worker is busy with a source that refuses."""

DEAD_LETTER_QUEUES = ("fast", "slow", "hold", "upload", "fetch")
"""The queues that it measures, as in the template."""


class Plane:
    """Images in their table, and the function that sweeps them every minute, from the first second on.

    `inside` calls the stores without time, as other functions do; `sweeps` are the milliseconds of each sweep,
    `outcomes` what its looks came to, and `cloud` has counted its calls.
    """

    def __init__(self, *, day: str | Mapping[str, Latency], megabytes: int = MEGABYTES, seed: int) -> None:
        self.time = VirtualTime()
        self.outcomes: Counter[str] = Counter()
        self.problems: list[Exception] = []
        self.sweeps: list[float] = []
        self.megabytes = megabytes
        self.chance = random.Random(f"{seed} {megabytes}")
        self.images = IndexedImages(time=self.time)
        workers = {
            name: Workers(self.time, 1000 * USUAL_PHOTO_SECONDS / lane.concurrency) for name, lane in LANES.items()
        }
        self.lanes = WorkedLanes(images=self.images, workers=workers)
        self.inside = World(
            time=self.time,
            images=self.images,
            lanes=self.lanes,
            fetch_queue=WorkedFetches(
                workers=Workers(self.time, FETCH_MILLISECONDS / FETCH_WORKERS),
                fetch=lambda message: self.inside.fetch(message, "receipt"),
            ),
            dead_letters=FakeDeadLetters(messages={queue: [] for queue in DEAD_LETTER_QUEUES}),
            remote_images=FakeRemoteImages(answers={URL: [UNREACHABLE]}),
            jitter=self.chance.random,
        )
        latencies = DAYS[day] if isinstance(day, str) else day
        self.processor = Processor(self.time, megabytes=megabytes)
        self.cloud = Cloud(self.time, latencies, self.chance, self.processor)
        own: dict[str, Plan] = {
            "due": lambda *place, **_: listed(self.images.count_due(*place)),
            "tenants_of": lambda image_ids: learning(self._unknown(image_ids)),
        }
        plans = {**PLANS, "images": {**PLANS["images"], **own}}
        stores: dict[str, Any] = {
            name: Remote(self.cloud, name, getattr(self.inside, name), plans[name]) for name in plans
        }
        self._swept = World(time=self.time, **stores)
        self._outcomes = OutcomeCounter()
        self._known: set[str] = set()

    def sweep_every_minute(self) -> None:
        """Begins to sweep."""
        self.time.start(self.sweep)
        self.time.after(SWEEP_SECONDS * 1000, self.sweep_every_minute)

    def run(self, until_seconds: float) -> None:
        """Lets time pass until then."""
        self.time.pause(until_seconds * 1000 - self.time.elapsed())

    def sweep(self) -> None:
        """One invocation, as the function's handler composes it."""
        world, began = self._swept, self.time.elapsed()
        until = began + (TIMEOUT_SECONDS - STOP_SECONDS) * 1000

        def out_of_time() -> bool:
            return self.time.elapsed() > until

        self.time.pause(self.processor.take(START_MILLISECONDS))
        measures = measure_lanes(world.ports(MeasureLanesPorts))
        swept = sweep_due_images(world.ports(SweepDueImagesPorts), out_of_time=out_of_time)
        for lane, ended in swept.ended.items():
            self._outcomes.count(lane, ended, self.time.now())
        report_outcomes(world.ports(CountOutcomesPorts), self._outcomes)
        self.outcomes.update(swept.outcomes)
        self.problems += [*measures.problems.values(), *swept.errors.values(), *swept.unlisted.values()]
        self.sweeps.append(self.time.elapsed() - began)

    def _unknown(self, image_ids: Sequence[str]) -> int:
        """How many images there are whose tenant its process does not remember; it does now."""
        unknown = set(image_ids) - self._known
        self._known |= unknown
        return len(unknown)

    def overdue_seconds(self, image_ids: Iterable[str]) -> list[float]:
        """For how long those of these images have been due that are."""
        now, rows = self.time.now(), self.images.rows
        instants = (rows[image_id].due_at for image_id in image_ids)
        return [(now - due_at) / 1000 for due_at in instants if due_at is not None and due_at <= now]

    def counted(self) -> dict[str, Any]:
        """What the sweeps took until now."""
        seconds = sum(self.sweeps) / 1000
        billed = {unit: count for unit, count in self.cloud.billed.items() if count}
        return {
            "sweeps": len(self.sweeps),
            "longest_seconds": round(max(self.sweeps, default=0) / 1000, 1),
            "processor_percent": round(self.processor.busy_milliseconds / max(1.0, sum(self.sweeps)) * 100),
            "calls": self.cloud.calls.total(),
            "outcomes": dict(self.outcomes),
            "billed": billed
            | {"Lambda requests": len(self.sweeps), "Lambda GB-milliseconds": seconds * self.megabytes / 1024 * 1000},
        }

    def close(self) -> None:
        """Ends it. Raises what went wrong in a sweep."""
        self.time.close()
        for problem in self.problems[:1]:
            raise problem
