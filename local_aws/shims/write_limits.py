"""Throttles the writes of a table beyond its limit of on-demand throughput.

Gap: MiniStack stores and describes MaxWriteRequestUnits, and takes any number of writes.
AWS: "throughput requests that exceed the maximum amount specified will be throttled"; a write takes a unit for each KB
of its item, a transactional one two. -1 removes the limit.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode-max-throughput.html
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_OnDemandThroughput.html
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ThrottlingReason.html

What still differs from AWS: each item counts as one unit whatever its size; a second's units are there at its
beginning, whereas AWS only aims at the limit; a batch of writes is throttled as a whole; indexes and reads have no
limits.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_MESSAGE = (
    "Throughput exceeds the maximum OnDemandThroughput configured on table or index. "
    "Consider increasing the maximum throughput."
)
_lock = threading.Lock()
# By the table's ARN: the second, by the monotonic clock, and the units that were used in it.
_used: dict[str, tuple[int, int]] = {}

dynamodb = internals("services.dynamodb")


def apply(emulator: Emulator) -> None:
    """Count before each operation that writes."""
    for operation in ("_put_item", "_update_item", "_delete_item", "_batch_write_item", "_transact_write_items"):
        replace(dynamodb, operation, _limited)


def _limited(write: Any) -> Any:
    def write_within_limits(data: Mapping[str, Any]) -> Any:
        for name, units in _units(data):
            table = dynamodb._tables.get(name)
            limit = ((table or {}).get("OnDemandThroughput") or {}).get("MaxWriteRequestUnits", -1)
            if table and limit >= 0 and not _take(table["TableArn"], units, limit):
                return internals("core.responses").error_response_json("ThrottlingException", _MESSAGE, 400)
        return write(data)

    return write_within_limits


def _units(data: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The tables that a request writes to, and how many units of each it takes."""
    if "TableName" in data:
        yield data["TableName"], 1
    for name, requests in (data.get("RequestItems") or {}).items():
        yield name, len(requests)
    for item in data.get("TransactItems") or ():
        for kind in ("Put", "Update", "Delete"):
            if kind in item:
                yield item[kind]["TableName"], 2


def _take(table: str, units: int, limit: int) -> bool:
    with _lock:
        second = int(time.monotonic())
        used = _used[table][1] if _used.get(table, (None, 0))[0] == second else 0
        if used and used + units > limit:  # a request that alone takes more than a second's is not refused for ever
            return False
        _used[table] = second, used + units
        return True
