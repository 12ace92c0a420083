"""Emits the metrics of every invocation of a function, whoever requested it.

Gap: MiniStack emits them only for direct invocations, not for those by queues, schedules and APIs, and counts a
throttled request twice, as an invocation and as a throttle.
AWS: every invocation counts, a throttled request only as a throttle. The namespace is AWS/Lambda, the dimension
FunctionName.
https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html

What still differs from AWS: there are no metrics by version or alias or over all functions. Duration is that of the
whole invocation, including a cold start, in whole milliseconds.
"""

import time
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace
from local_aws.shims import metric_data

NAMESPACE = "AWS/Lambda"


def apply(emulator: Emulator) -> None:
    """Emit in the one place that every invocation passes, and nowhere else."""
    lambda_service = internals("services.lambda_svc")
    replace(lambda_service, "_emit_lambda_metrics", lambda _: lambda *arguments, **options: None)
    replace(lambda_service, "_acquire_execution_slot", _emit_throttle)
    replace(lambda_service, "_execute_function_dispatch", _emit_invocation)


def _emit_throttle(acquire: Any) -> Any:
    def acquire_slot(function: Any, config: dict[str, Any]) -> Any:
        slot, limit = acquire(function, config)
        if slot is None:
            _emit(config["FunctionName"], "Throttles", 1)
        return slot, limit

    return acquire_slot


def _emit_invocation(execute: Any) -> Any:
    def execute_function(function: Any, config: dict[str, Any], *arguments: Any) -> Any:
        started = time.monotonic()
        result = execute(function, config, *arguments)
        name = config["FunctionName"]
        _emit(name, "Invocations", 1)
        _emit(name, "Errors", bool(result.get("error")))
        _emit(name, "Throttles", 0)
        _emit(name, "Duration", round((time.monotonic() - started) * 1000), "Milliseconds")
        return result

    return execute_function


def _emit(function_name: str, metric: str, value: float, unit: str = "Count") -> None:
    metric_data.observe(NAMESPACE, metric, {"FunctionName": function_name}, value, unit)
