"""How many events a second `count_usage` keeps up with: the real operation and table, where transactions conflict."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import ClientError

from darkroom.aws.usage.usage_table import UsageTable
from darkroom.domain.events.event import EventType, PublishedEvent, body_of
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.usage.usage import MOST_ITEMS
from darkroom.operations.usage.count_usage import CountUsagePorts, count_usage
from repository.expand_template import raw_template
from tests.support.virtual.latencies import DAYS, Latency
from tests.support.virtual.processor import Processor
from tests.support.virtual.virtual_time import VirtualTime

GOAL_PER_SECOND = 1000

EVENTS = 40_000

TWICE_SHARE = 0.001
"""How many events come a second time: SQS and SNS promise at least once, and a batch may return."""

TRIPS = 2
"""A transaction takes as long as two calls: DynamoDB prepares it in every partition, and then commits it
(https://www.usenix.org/conference/atc23/presentation/idziorek)."""

CPU_MILLISECONDS = 0.15
"""A whole processor's time for one event, checked, read and written: about twice what a development machine takes."""

INVOKE_MILLISECONDS = 20.0
"""Between two batches of a consumer: the invocation, and the deletion of the messages."""


class Tables:
    """A DynamoDB client whose transactions take time, in which no other may change the same items: it is cancelled
    (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-conflict-handling).
    """

    def __init__(self, time: VirtualTime, latency: Latency, chance: random.Random) -> None:
        self.transactions, self.conflicts, self.write_units = 0, 0, 0
        self.marks: set[str] = set()
        self.images: Counter[tuple[str, str]] = Counter()
        self._held: set[tuple[str, ...]] = set()
        self._time, self._latency, self._chance = time, latency, chance

    def transact_write_items(self, TransactItems: Sequence[dict[str, Any]]) -> None:  # noqa: N803
        keys = [_key_of(item) for item in TransactItems]
        if len(keys) != len(set(keys)) or len(keys) > MOST_ITEMS:
            raise ValueError("DynamoDB refuses such a transaction")
        self.transactions += 1
        self.write_units += 2 * len(keys)  # of up to a kilobyte each
        met = [key in self._held for key in keys]
        if any(met):
            self.conflicts += 1
            self._time.pause(self._latency.draw(self._chance))
            raise _cancelled("TransactionConflict" if conflict else "None" for conflict in met)
        self._held |= set(keys)
        self._time.pause(TRIPS * self._latency.draw(self._chance, items=len(keys)))
        self._held -= set(keys)
        existing = [key[0] in self.marks for key in keys]
        if any(existing):
            raise _cancelled("ConditionalCheckFailed" if exists else "None" for exists in existing)
        for key, item in zip(keys, TransactItems, strict=True):
            if "Put" in item:
                self.marks.add(key[0])
            else:
                added = item["Update"]["ExpressionAttributeValues"].get(":images", {"N": "0"})
                self.images[key[0], key[1]] += int(added["N"])


def _key_of(item: dict[str, Any]) -> tuple[str, ...]:
    key = item["Put"]["Item"] if "Put" in item else item["Update"]["Key"]
    names = ("event_id",) if "Put" in item else ("tenant_id", "day")
    return tuple(key[name]["S"] for name in names)


def _cancelled(codes: Iterator[str]) -> ClientError:
    answer: Any = {
        "Error": {"Code": "TransactionCanceledException"},
        "CancellationReasons": [{"Code": code} for code in codes],
    }
    return ClientError(answer, "TransactWriteItems")


def counted(*, tenants: int, day: str, seed: int, events: int = EVENTS) -> dict[str, Any]:
    """How fast the consumers of the template empty a full queue on such a day (`DAYS`). Raises AssertionError if an
    event was counted twice or not at all."""
    chance, time = random.Random(seed), VirtualTime()
    properties = raw_template()["Resources"]["CountUsageFunction"]["Properties"]
    (source,) = (event["Properties"] for event in properties["Events"].values())
    tables = Tables(time, DAYS[day]["DynamoDB"], chance)
    queue = [_body(number, f"tenant-{chance.randrange(tenants)}", time.now()) for number in range(events)]
    queue += chance.sample(queue, int(events * TWICE_SHARE))
    chance.shuffle(queue)
    returned: list[str] = []
    seconds, again = 0.0, 0

    def consume() -> None:
        client: Any = tables
        ports = CountUsagePorts(usage=UsageTable(client, "usage", "counted"), clock=time.now)
        processor = Processor(time, megabytes=properties["MemorySize"])
        while queue:
            batch, queue[-source["BatchSize"] :] = queue[-source["BatchSize"] :], []
            time.pause(INVOKE_MILLISECONDS + processor.take(CPU_MILLISECONDS * len(batch)))
            failures = count_usage(ports, batch).failures
            if bugs := [failure for failure in failures.values() if not isinstance(failure, Retryable)]:
                raise bugs[0]
            returned.extend(batch[place] for place in failures)

    with _ended(time):
        while queue:  # what comes back is there again after the visibility timeout, when nothing else is left
            time.at_once([consume] * source["ScalingConfig"]["MaximumConcurrency"])
            seconds = seconds or time.elapsed() / 1000
            again += len(returned)
            queue, returned = returned, []
    if not sum(tables.images.values()) == len(tables.marks) == events:
        raise AssertionError("an event was counted twice or not at all")
    return {
        "part": "usage",
        "tenants": tenants,
        "day": day,
        "events_per_second": round(events / seconds),
        "conflicts_percent": round(100 * tables.conflicts / tables.transactions, 2),
        "came_back": again,
        "write_units_per_event": round(tables.write_units / events, 2),
    }


@contextmanager
def _ended(time: VirtualTime) -> Iterator[None]:
    try:
        yield
    finally:
        time.close()


def _body(number: int, tenant_id: str, now: int) -> str:
    image_id = f"{number:026d}"
    event = PublishedEvent(
        type=EventType.ACCEPTED,
        subject=image_id,
        tenant_id=tenant_id,
        lane="fast",
        preset=None,
        sequence=1,
        time=now,
        data={"id": image_id, "tenant_id": tenant_id, "bytes": 500, "stored": {"bytes": 500, "images": 1}},
    )
    return body_of(event, source="/")


def rows(seed: int, *, events: int = EVENTS) -> list[dict[str, Any]]:
    """One row for each number of tenants and kind of day."""
    return [counted(tenants=tenants, day=day, seed=seed, events=events) for tenants in (1, 100) for day in DAYS]
