"""Extracts the metrics that functions write to their logs in the embedded metric format.

Gap: MiniStack stores such lines and emits no metric.
AWS: CloudWatch Logs extracts them from log events: each metric once per dimension set of the directive, with its unit,
a list as that many values, at the document's timestamp.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html

What still differs from AWS: every log event is scanned, whether a function wrote it or PutLogEvents with or without the
header `x-amzn-logs-format`. A document that violates the format is skipped without the metrics of the namespace
AWS/Logs that count such documents, and the directive's StorageResolution is ignored.
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

MAXIMUM_DIMENSIONS = 30
MAXIMUM_METRICS = 100
MAXIMUM_VALUES = 100


@dataclass(frozen=True, kw_only=True)
class EmbeddedMetric:
    """The values of one metric with one set of dimensions."""

    namespace: str
    name: str
    unit: str
    dimensions: Mapping[str, str]
    values: tuple[float, ...]
    timestamp_ms: int


class BreaksTheFormat(Exception):
    """A document that should contain metrics does not follow the specification."""


def apply(emulator: Emulator) -> None:
    """Scan every log event that is stored."""
    replace(internals("services.cloudwatch_logs"), "_append_log_events", _extract)


def _extract(append: Any) -> Any:
    def append_and_extract(stream: Any, events: Any) -> None:
        append(stream, events)
        cloudwatch = internals("services.cloudwatch")
        for event in events:
            for metric in embedded_metrics(event["message"], now_ms=int(time.time() * 1000)):
                cloudwatch._store_datum(
                    metric.namespace,
                    metric.name,
                    dict(metric.dimensions),
                    metric.timestamp_ms / 1000,
                    metric.unit,
                    None,
                    list(metric.values),
                    None,
                    None,
                )

    return append_and_extract


def embedded_metrics(message: str, *, now_ms: int) -> list[EmbeddedMetric]:
    """Return the metrics of a log event; none if it has none or violates the format."""
    # Lambda may prefix the document with a time and a request id.
    _, brace, rest = message.partition("{")
    if '"CloudWatchMetrics"' not in rest:
        return []
    try:
        document = json.loads(brace + rest)
        return list(_metrics(document, now_ms))
    except (ValueError, KeyError, TypeError, AttributeError, BreaksTheFormat):
        return []


def _metrics(document: Mapping[str, Any], now_ms: int) -> Iterator[EmbeddedMetric]:
    metadata = document["_aws"]
    for directive in metadata["CloudWatchMetrics"]:
        if len(directive["Metrics"]) > MAXIMUM_METRICS:
            raise BreaksTheFormat
        for definition in directive["Metrics"]:
            for dimension_set in directive["Dimensions"]:
                yield EmbeddedMetric(
                    namespace=directive["Namespace"],
                    name=definition["Name"],
                    unit=definition.get("Unit", "None"),
                    dimensions=_dimensions(document, dimension_set),
                    values=_values(document[definition["Name"]]),
                    timestamp_ms=metadata.get("Timestamp", now_ms),
                )


def _dimensions(document: Mapping[str, Any], names: list[str]) -> Mapping[str, str]:
    dimensions = {name: document[name] for name in names}
    if len(dimensions) > MAXIMUM_DIMENSIONS or not all(isinstance(value, str) for value in dimensions.values()):
        raise BreaksTheFormat
    return dimensions


def _values(target: Any) -> tuple[float, ...]:
    values = target if isinstance(target, list) else [target]
    if len(values) > MAXIMUM_VALUES or not all(type(value) in (int, float) for value in values):
        raise BreaksTheFormat
    return tuple(float(value) for value in values)
