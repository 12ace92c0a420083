"""The rows that a query works on: log events with their fields, and later what it makes of them."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from local_aws.logs_insights.values import Timestamp, Value


class Row:
    """Values by the names of fields; the fields in an event's JSON are discovered when one is first asked for."""

    def __init__(self, values: Mapping[str, Value], discover: Callable[[], Mapping[str, Value]] | None = None) -> None:
        self._values, self._discover = dict(values), discover

    def get(self, name: str) -> Value:
        """The value of a field; None if it has none."""
        if name not in self._values and self._discover:
            self._values, self._discover = {**self._discover(), **self._values}, None
        return self._values.get(name)

    def set(self, name: str, value: Value) -> None:
        """Give a field a value."""
        self._values[name] = value


def event_row(*, timestamp_ms: int, ingested_ms: int, message: str, log: str, stream: str, pointer: str) -> Row:
    """The row of a log event.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/CWL_AnalyzeLogData-discoverable-fields.html
    """
    own: dict[str, Value] = {
        "@timestamp": Timestamp(timestamp_ms),
        "@ingestionTime": Timestamp(ingested_ms),
        "@message": message,
        "@log": log,
        "@logStream": stream,
        "@ptr": pointer,
    }
    return Row(own, lambda: dict(_discovered(message)))


def _discovered(message: str) -> Iterator[tuple[str, Value]]:
    """The fields of the first JSON object in an event, nested ones by dots."""
    start = message.find("{")
    if start < 0:
        return
    try:
        document, _ = json.JSONDecoder().raw_decode(message, start)
    except ValueError:
        return
    yield from _flattened("", document)


def _flattened(name: str, node: Any) -> Iterator[tuple[str, Value]]:
    if isinstance(node, dict | list):
        members = node.items() if isinstance(node, dict) else enumerate(node)
        for member, each in members:
            yield from _flattened(f"{name}.{member}" if name else str(member), each)
    elif isinstance(node, bool):
        yield name, int(node)
    elif node is not None:
        yield name, node
