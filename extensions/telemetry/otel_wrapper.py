"""The function's handler: each invocation is a span, and what it counts goes out as OTLP besides CloudWatch's lines;
both are sent before Lambda freezes the process."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from aws_lambda_powertools.metrics.base import MetricManager
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider
from opentelemetry.instrumentation.aws_lambda import AwsLambdaInstrumentor
from opentelemetry.metrics import get_meter

meter = get_meter("darkroom")
UNITS = {"Seconds": "s", "Milliseconds": "ms", "Bytes": "By", "Percent": "%"}


@cache
def recorder(name: str, unit: str) -> Callable[..., None]:
    """What takes the values of a metric: `ImageSeconds` is `darkroom.image_seconds`, as OpenTelemetry names things."""
    snake = f"darkroom.{re.sub('(?<=[a-z])(?=[A-Z])', '_', name).lower()}"
    return (
        meter.create_counter(snake).add
        if unit == "Count"
        else meter.create_histogram(snake, UNITS.get(unit, "1")).record
    )


def record(line: dict[str, Any]) -> None:
    """Records the metrics of a line in the embedded metric format. OTLP's instruments know no values below zero."""
    for directive in line["_aws"]["CloudWatchMetrics"]:
        attributes = {name: line[name] for name in directive["Dimensions"][0]}
        for metric in directive["Metrics"]:
            for value in filter(lambda each: each >= 0, line[metric["Name"]]):
                recorder(metric["Name"], metric["Unit"])(value, attributes)


def also_recorded(serialize: Callable[..., Any]) -> Callable[..., Any]:
    def serialized(*arguments: Any, **options: Any) -> Any:
        line = serialize(*arguments, **options)
        record(line)
        return line

    return serialized


for _emitter in (AmazonCloudWatchEMFProvider, MetricManager):
    _emitter.serialize_metric_set = also_recorded(_emitter.serialize_metric_set)
AwsLambdaInstrumentor().instrument()
_module, _, _name = os.environ["ORIG_HANDLER"].rpartition(".")
handler = getattr(import_module(_module), _name)
