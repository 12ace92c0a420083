"""What each method of a store calls at AWS: how long that takes, the processor's part in it, and what is billed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import batched

from benchmarks.sweeper.processor_time import MEASURED
from tests.support.virtual.cloud import Call, Plan, always

VARIANTS = 4
"""The outputs of a developed image; its original has one version."""


def _dynamodb(name: str, *, reads: float = 0, writes: float = 0, items: int = 1, more: float = 0) -> Call:
    billed = {"DynamoDB read units": reads, "DynamoDB write units": writes}
    return Call(service="DynamoDB", processor=MEASURED[name] + more, items=items, billed=billed)


def _sqs(name: str) -> Call:
    return Call(service="SQS", processor=MEASURED[name], billed={"SQS requests": 1})


def _s3(name: str, *, unit: str = "S3 deletes", items: int = 1) -> Call:
    more = (items - 1) * MEASURED["an object that is deleted"]
    return Call(service="S3", processor=MEASURED[name] + more, items=items, billed={unit: 1})


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
