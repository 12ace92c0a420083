"""What it costs to publish events and to bring each to two consumers: requests counted in virtual time, by rate."""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.forms import by_form
from benchmarks.webhooks.load import before_its_end, event_image
from benchmarks.webhooks.queue import Done, Message, Queue
from darkroom.aws.events.events_topic import SnsTopic
from darkroom.operations.events.publish_events import PublishEventsPorts, publish_events
from darkroom.ports.events import RowChange
from darkroom_cli.capacity.prices import cost
from repository.expand_template import raw_template
from repository.report import Goal
from tests.support.fakes.events import FakeUnpublished
from tests.support.fakes.messages import SIGNER
from tests.support.virtual.virtual_time import VirtualTime

SOURCE, TOPIC = "/darkroom/benchmark", "arn:aws:sns:us-east-1:123456789012:events"

SHARDS = 4
"""How many partitions a new on-demand table has, each with a shard of the stream
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html)."""

POLL_MILLISECONDS = 250.0
"""Lambda polls each shard four times a second
(https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html)."""

MOST_CHANGES = 100
"""`BatchSize` of the stream, as in the template. Only what is filtered is handed over."""

PUBLISH_MILLISECONDS = 10.0, 40.0
INVOKE_MILLISECONDS = 5.0
FAN_OUT_MILLISECONDS = 5.0, 30.0
"""How long a PublishBatch takes, how long an invocation takes besides, and how long a message takes from the topic to a
queue, each on its own. They are estimates, and decide how large the batches of a queue without a window are."""

CONSUMER_MILLISECONDS = 20.0
"""How long the function of the queue without a window takes, which bounds the batches that run at a time."""

MEMORY_GB = 0.5
CHUNK_BYTES = 64 * 1024
"""SNS and SQS bill a request for each 64 KB (https://aws.amazon.com/sns/pricing, https://aws.amazon.com/sqs/pricing)."""

POLLERS, RECEIVED = 5, 10
"""Lambda starts with five pollers, and each is taken to fill a batch of its own, which is the dearest; a receive
returns ten messages at most."""

RATES = by_form(short=(100.0,), usual=(1.0, 10.0, 30.0, 100.0, 400.0))
"""Events per second."""

GOAL_RATE, GOAL_DOLLARS = 100.0, 1.0
"""At this rate and above it, a million events cost at most so much: at a lower one batches are smaller."""

EVENTS = 20_000


def mapping(function: str) -> Mapping[str, Any]:
    """The event source mapping of a consumer, as in the template."""
    (event,) = raw_template()["Resources"][function]["Properties"]["Events"].values()
    properties: Mapping[str, Any] = event["Properties"]
    return properties


WEBHOOK_CONCURRENCY: int = raw_template()["Parameters"]["OtherConcurrency"]["Default"]
WINDOW_BATCH: int = mapping("CountUsageFunction")["BatchSize"]
WINDOW_SECONDS: float = mapping("CountUsageFunction")["MaximumBatchingWindowInSeconds"]


class CountingTopic:
    """A client of SNS that counts what it is asked to publish, and bills it."""

    def __init__(self) -> None:
        self.requests = 0
        self.messages: list[str] = []

    def publish_batch(self, *, TopicArn: str, PublishBatchRequestEntries: Sequence[Mapping[str, Any]]) -> Any:  # noqa: N803
        """As boto3's."""
        bodies = [entry["Message"] for entry in PublishBatchRequestEntries]
        size = sum(len(body.encode()) for body in bodies) + sum(
            len(name) + len(value["DataType"]) + len(value["StringValue"])
            for entry in PublishBatchRequestEntries
            for name, value in entry["MessageAttributes"].items()
        )
        self.requests += chunks(size)
        self.messages += bodies
        return {"Successful": [], "Failed": []}


def chunks(size: int) -> int:
    """How many requests so many bytes are billed as."""
    return max(1, -(-size // CHUNK_BYTES))


class FanOut:
    """The stream, the topic and both consumers' queues; `billed` has units of the price list."""

    def __init__(self, *, per_second: float, events: int, seed: int) -> None:
        self.time = VirtualTime()
        self.billed: defaultdict[str, float] = defaultdict(float)
        self.invocations: Counter[str] = Counter()
        self.heard: Counter[str] = Counter()
        self._events = events
        self._chance = random.Random(seed)
        self._shards: list[deque[RowChange]] = [deque() for _ in range(SHARDS)]
        self._windows: list[list[str]] = [[] for _ in range(POLLERS)]
        self._webhooks = Queue(
            self.time, concurrency=WEBHOOK_CONCURRENCY, visibility_seconds=200, handle=self._create_deliveries
        )
        at = 0.0
        for number in range(events):
            at += self._chance.expovariate(per_second) * 1000
            image = event_image(self._chance, at / 1000, f"tenant-{number % 22:02}")
            change = RowChange(
                place=str(number),
                subject=image.image_id,
                version=image.version,
                before=before_its_end(image),
                after=image,
            )
            shard = self._shards[self._chance.randrange(SHARDS)]
            self.time.at(at, lambda change=change, shard=shard: shard.append(change))  # type: ignore[misc]
        self._until = at
        for number in range(SHARDS):
            self.time.after(self._chance.uniform(0, POLL_MILLISECONDS), lambda number=number: self._poll(number))  # type: ignore[misc]

    def run(self) -> None:
        """Lets time pass until both consumers have heard of every event."""
        self.time.pause(self._until)
        while min(self.heard["webhooks"], self.heard["usage"]) < self._events:
            self.time.pause(1000)
        self.time.close()

    def _poll(self, number: int) -> None:
        shard = self._shards[number]
        if not shard:
            self.time.after(POLL_MILLISECONDS, lambda: self._poll(number))
            return
        batch = [shard.popleft() for _ in range(min(MOST_CHANGES, len(shard)))]
        client = CountingTopic()
        topic = SnsTopic(client, TOPIC, SIGNER, source=SOURCE)  # type: ignore[arg-type]
        publishing = publish_events(PublishEventsPorts(topic=topic, unpublished=FakeUnpublished()), batch)
        if publishing.begin_again_at is not None or publishing.published.total() != len(batch):
            raise RuntimeError("an event was not published")
        calls = -(-len(batch) // RECEIVED)
        milliseconds = INVOKE_MILLISECONDS + sum(self._chance.uniform(*PUBLISH_MILLISECONDS) for _ in range(calls))
        self.invocations["publish_events"] += 1
        self.billed["SNS requests"] += client.requests
        self.billed["Lambda requests"] += 1
        self.billed["Lambda GB-milliseconds"] += MEMORY_GB * milliseconds
        for body in client.messages:
            for queue in (self._to_webhooks, self._to_usage):
                later = milliseconds + self._chance.uniform(*FAN_OUT_MILLISECONDS)
                self.time.after(later, lambda body=body, queue=queue: queue(body))  # type: ignore[misc]
        self.time.after(max(POLL_MILLISECONDS, milliseconds), lambda: self._poll(number))

    # ── A queue without a window ─────────────────────────────────────────────────────────────────────────────────────

    def _to_webhooks(self, body: str) -> None:
        self._webhooks.send(body, group="")

    def _create_deliveries(self, batch: Sequence[Message], done: Done) -> None:
        self._consumed("webhooks", [message.body for message in batch])
        self.time.after(CONSUMER_MILLISECONDS, lambda: done([]))

    # ── A queue with a window ────────────────────────────────────────────────────────────────────────────────────────

    def _to_usage(self, body: str) -> None:
        window = self._chance.choice(self._windows)
        window.append(body)
        if len(window) == 1:
            self.time.after(WINDOW_SECONDS * 1000, lambda: self._close(window, body))
        if len(window) == WINDOW_BATCH:
            self._count_usage(window)

    def _close(self, window: list[str], first: str) -> None:
        if window and window[0] is first:  # it has not been filled meanwhile
            self._count_usage(window)

    def _count_usage(self, window: list[str]) -> None:
        self._consumed("usage", window)
        window.clear()

    def _consumed(self, consumer: str, bodies: Sequence[str]) -> None:
        """One invocation: its messages are received and deleted, ten at a time."""
        self.invocations[consumer] += 1
        self.heard[consumer] += len(bodies)
        self.billed["Lambda requests"] += 1
        for first in range(0, len(bodies), RECEIVED):
            received = sum(len(body.encode()) for body in bodies[first : first + RECEIVED])
            self.billed["SQS requests"] += chunks(received) + 1


def counted(*, per_second: float, events: int, seed: int) -> dict[str, Any]:
    """What an event takes on average at that rate, and the dollars for a million. What consumers do with an event is
    theirs, and not in it."""
    run = FanOut(per_second=per_second, events=events, seed=seed)
    run.run()
    each = {name: units / events for name, units in sorted(run.billed.items())}
    return {
        "part": "fan-out",
        "seed": seed,
        "per_second": per_second,
        "events": events,
        "batch": {name: round(events / count, 1) for name, count in sorted(run.invocations.items())},
        "billed": {name: round(units, 3) for name, units in each.items()},
        "dollars": {name: round(cost({name: units}) * 1_000_000, 3) for name, units in each.items()},
        "dollars_a_million": round(cost(each) * 1_000_000, 3),
    }


def measure(*, seed: int, events: int = EVENTS) -> tuple[list[dict[str, Any]], list[Goal]]:
    """Each rate; the goal is the dearest from `GOAL_RATE` on."""
    rows = [counted(per_second=rate, events=events, seed=seed) for rate in RATES]
    dearest = max(row["dollars_a_million"] for row in rows if row["per_second"] >= GOAL_RATE)
    name = f"a million events to two consumers, at {GOAL_RATE:.0f} a second or more ($)"
    return rows, [Goal(name=name, value=dearest, limit=GOAL_DOLLARS)]
