"""Emits the metrics of HTTP APIs: how many requests, how many client and server errors, and how long they took.

Gap: MiniStack emits no metrics of API Gateway.
AWS: every request is a datum of each metric (0 or 1 for errors), with the dimension ApiId and with ApiId and Stage.
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-metrics.html

What still differs from AWS: IntegrationLatency, DataProcessed and the metrics of single routes are not emitted.
Requests that the local front end itself refuses, because there is no such API or the body is invalid, do not count.
"""

import time
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace
from local_aws.shims import metric_data

NAMESPACE = "AWS/ApiGateway"


def apply(emulator: Emulator) -> None:
    """Watch every answer of an API."""
    replace(internals("services.apigateway"), "_handle_execute_in_scope", _emit)


def _emit(execute: Any) -> Any:
    async def execute_and_emit(api_id: str, stage: str, *arguments: Any, **options: Any) -> Any:
        started = time.monotonic()
        answer = await execute(api_id, stage, *arguments, **options)
        if api_id in internals("services.apigateway")._apis:
            milliseconds = round((time.monotonic() - started) * 1000)
            for dimensions in ({"ApiId": api_id}, {"ApiId": api_id, "Stage": stage}):
                metric_data.observe(NAMESPACE, "Count", dimensions, 1)
                metric_data.observe(NAMESPACE, "4xx", dimensions, answer[0] // 100 == 4)
                metric_data.observe(NAMESPACE, "5xx", dimensions, answer[0] // 100 == 5)
                metric_data.observe(NAMESPACE, "Latency", dimensions, milliseconds, "Milliseconds")
        return answer

    return execute_and_emit
