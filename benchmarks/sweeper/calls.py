"""What each method of a store calls at AWS: how long that takes, the processor's part in it, and what is billed."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import batched
from typing import Any

from benchmarks.sweeper.processor_time import MEASURED
from tests.support.virtual.latencies import Latency
from tests.support.virtual.processor import Processor
from tests.support.virtual.virtual_time import VirtualTime

VARIANTS = 4
"""The outputs of a developed image; its original has one version."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call: `processor` are milliseconds of a whole one, `items` how many rows or objects the call has."""

    service: str
    processor: float
    items: int = 1
    billed: Mapping[str, float] = field(default_factory=dict)


type Plan = Callable[..., Sequence[Call]]
"""The calls of a method, one after another, by its arguments."""


@dataclass(eq=False)
class Cloud:
    """Lets the time of each call pass, and counts the calls by the method that made them and by the units of the price
    list."""

    time: VirtualTime
    processor: Processor
    latencies: Mapping[str, Latency]
    chance: random.Random
    calls: Counter[str] = field(default_factory=Counter)
    billed: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def call(self, name: str, plan: Sequence[Call]) -> None:
        """The calls of one method, which has its effect at their end."""
        for request in plan:
            self.calls[name] += 1
            for unit, count in request.billed.items():
                self.billed[unit] += count
            latency = self.latencies[request.service].draw(self.chance, request.items)
            self.time.pause(self.processor.take(request.processor) + latency)


def _dynamodb(name: str, *, reads: float = 0, writes: float = 0, items: int = 1, more: float = 0) -> Call:
    billed = {"DynamoDB read units": reads, "DynamoDB write units": writes}
    return Call(service="DynamoDB", processor=MEASURED[name] + more, items=items, billed=billed)


def _sqs(name: str) -> Call:
    return Call(service="SQS", processor=MEASURED[name], billed={"SQS requests": 1})


def _s3(name: str, *, unit: str = "S3 deletes", items: int = 1) -> Call:
    more = (items - 1) * MEASURED["an object that is deleted"]
    return Call(service="S3", processor=MEASURED[name] + more, items=items, billed={unit: 1})


def always(*calls: Call) -> Plan:
    """These, whatever the arguments."""
    return lambda *arguments, **options: calls


QUERY = always(_dynamodb("Query", reads=0.5))
# The row, and an entry of the due index that goes and one that comes.
_CHANGE = _dynamodb("images.change", writes=3)
_SEND, _LOOK = always(_sqs("SendMessage")), always(_sqs("GetQueueAttributes"))
_LIST = always(_s3("ListObjects", unit="S3 puts"))  # billed like a put
_OF_ROW = 1.0
"""Read units of a row that is read consistently: rows have less than 4 KB."""

MOST_OBJECTS, BATCH_WRITES = 1000, 25
"""How many objects one call removes, and how many items one call writes."""


def _of_rows(image_ids: Sequence[str]) -> Sequence[Call]:
    more = (len(image_ids) - 1) * MEASURED["a row that is read"]
    return [_dynamodb("images.get", reads=_OF_ROW * len(image_ids), items=len(image_ids), more=more)]


def _removals(objects: Sequence[object]) -> Sequence[Call]:
    return [_s3("DeleteObjects", items=len(some)) for some in batched(objects, MOST_OBJECTS, strict=False)]


def _forgetting(keys: Sequence[str]) -> Sequence[Call]:
    return [
        _dynamodb(
            "BatchWriteItem", writes=len(some), items=len(some), more=len(some) * MEASURED["an item that is deleted"]
        )
        for some in batched(keys, BATCH_WRITES, strict=False)
    ]


def _messages(lane: str, messages: Sequence[object]) -> Sequence[Call]:
    more = (len(messages) - 1) * MEASURED["a message that is sent"]
    return [
        Call(
            service="SQS",
            processor=MEASURED["SendMessage"] + more,
            items=len(messages),
            billed={"SQS requests": 1},
        )
    ]


def listed(entries: int) -> Sequence[Call]:
    """A look at an index that lists so many entries of 100 bytes."""
    reads = 0.5 * max(1, -(-entries * 100 // 4096))
    return [_dynamodb("Query", reads=reads, items=max(1, entries), more=entries * MEASURED["an entry that is listed"])]


def learning(images: int) -> Sequence[Call]:
    """The tenants of so many rows, read without the rest."""
    if not images:
        return ()
    more = images * MEASURED["an entry that is listed"]
    return [_dynamodb("Query", reads=_OF_ROW / 2 * images, items=images, more=more)]


PLANS: Mapping[str, Mapping[str, Plan]] = {
    "images": {
        "get": always(_dynamodb("images.get", reads=_OF_ROW)),
        "get_all": _of_rows,
        "change": always(_CHANGE),
        "postpone": always(_dynamodb("images.postpone", writes=3)),
        "oldest_waiting": always(_dynamodb("Query", reads=0.5)),
    },
    "outputs": {"keys_of": _LIST, "remove": _removals},
    "originals": {"versions_of": _LIST, "remove": _removals},
    "uploads": {"remove": _removals, "size_bytes": always(_s3("HeadObject", unit="S3 gets"))},
    "once": {"forget": _forgetting},
    "deliveries": {"of_image": QUERY, "due": QUERY},
    "endpoints": {"due": QUERY},
    "outcome_counts": {"since": QUERY, "add": always(_dynamodb("images.postpone", writes=1))},
    "reservations": {"busy_until": always(_dynamodb("images.get", reads=1))},
    "lanes": {"send": _SEND, "send_all": _messages, "backlog": _LOOK},
    "hold_queue": {"put": _SEND},
    "upload_queue": {"put": _SEND},
    "fetch_queue": {"put": _SEND, "depth": _LOOK},
    "dead_letters": {"depth": _LOOK},
}
"""By the store's name in the tests' world. What is not here is called at AWS by no sweep that is played."""


class Remote:
    """A store whose every method is called through AWS; attributes that are no methods are the store's own."""

    def __init__(self, cloud: Cloud, name: str, store: Any, plans: Mapping[str, Plan]) -> None:
        self._cloud, self._name, self._store, self._plans = cloud, name, store, plans

    def __getattr__(self, method: str) -> Any:
        own = getattr(self._store, method)
        if not callable(own):
            return own
        plan, name = self._plans[method], f"{self._name}.{method}"

        def through_aws(*arguments: Any, **options: Any) -> Any:
            self._cloud.call(name, plan(*arguments, **options))
            return own(*arguments, **options)

        # Found at once the next time.
        setattr(self, method, through_aws)
        return through_aws
