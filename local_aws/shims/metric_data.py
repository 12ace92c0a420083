"""How the shims put data into CloudWatch: with few data, however much happens."""

import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from local_aws.ministack_internals import internals

_MINUTE_SECONDS = 60
_putting = threading.RLock()


def observe(namespace: str, metric: str, dimensions: Mapping[str, str], value: float, unit: str = "Count") -> None:
    """Put a value observed once; equal values of a minute share a datum, like PutMetricData's Values and Counts."""
    with _putting:
        data, now = _data(namespace, metric, dimensions), time.time()
        for datum in _of_this_minute(data, now):
            if datum["Value"] == value:
                datum["Count"] += 1
                datum["Timestamp"] = now
                return
        data.append(_datum(now, value, unit, dimensions))


def measure(namespace: str, metric: str, dimensions: Mapping[str, str], level: float, unit: str = "Count") -> None:
    """Put a level: the minute's one datum is the latest value."""
    with _putting:
        data, now = _data(namespace, metric, dimensions), time.time()
        outdated = len(list(_of_this_minute(data, now)))
        # In one step: a concurrent reader sees one level or the other.
        data[len(data) - outdated :] = [_datum(now, level, unit, dimensions)]


def count(namespace: str, metric: str, dimensions: Mapping[str, str], number: int) -> None:
    """Add to a number: the minute's one datum is the sum so far."""
    with _putting:
        so_far = sum(datum["Value"] for datum in _of_this_minute(_data(namespace, metric, dimensions), time.time()))
        measure(namespace, metric, dimensions, so_far + number)


def _data(namespace: str, metric: str, dimensions: Mapping[str, str]) -> list[Any]:
    cloudwatch = internals("services.cloudwatch")
    data: list[Any] = cloudwatch._metric_bucket((namespace, metric, cloudwatch._dims_key(dimensions)))
    return data


def _of_this_minute(data: list[Any], now: float) -> Iterator[Any]:
    for datum in reversed(data):
        if datum["Timestamp"] // _MINUTE_SECONDS != now // _MINUTE_SECONDS:
            return
        yield datum


def _datum(now: float, value: float, unit: str, dimensions: Mapping[str, str]) -> dict[str, Any]:
    return {"Timestamp": now, "Value": float(value), "Count": 1.0, "Unit": unit, "Dimensions": dict(dimensions)}
