"""Refuses an event source mapping whose queue or batch cannot work.

Gap: MiniStack accepts a queue whose messages become visible again while the function still runs, and batches of any
size.
AWS: answers InvalidParameterValueException if the queue's visibility timeout is below the function's timeout, if a
batch of more than 10 has no batching window, or if a FIFO queue has a batch of more than 10 or a window.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html (BatchSize)
"""

from collections.abc import Mapping
from typing import Any

from embedded_aws.cloudformation_refusals import refusal
from embedded_aws.emulator import Emulator
from embedded_aws.ministack_internals import internals, replace, replace_resource_handler

_RESOURCE_TYPE = "AWS::Lambda::EventSourceMapping"
_BATCH_WITHOUT_WINDOW = 10


def apply(emulator: Emulator) -> None:
    """Check each mapping that a request or a stack creates or updates."""
    lambda_service = internals("services.lambda_svc")
    replace(lambda_service, "_create_esm", _check_request)
    replace(lambda_service, "_update_esm", _check_update_request)
    replace_resource_handler(_RESOURCE_TYPE, "create", _check_resource_at(1))
    replace_resource_handler(_RESOURCE_TYPE, "update", _check_resource_at(2))


def _check_request(create: Any) -> Any:
    def create_mapping(request: dict[str, Any]) -> Any:
        return _error_response(request) or create(request)

    return create_mapping


def _check_update_request(update: Any) -> Any:
    def update_mapping(mapping_id: str, request: dict[str, Any]) -> Any:
        current = internals("services.lambda_svc")._esms.get(mapping_id) or {}
        return _error_response({**current, **request}) or update(mapping_id, request)

    return update_mapping


def _error_response(mapping: Mapping[str, Any]) -> Any:
    message = _reason_to_refuse(mapping)
    return message and internals("core.responses").error_response_json("InvalidParameterValueException", message, 400)


def _check_resource_at(position: int) -> Any:
    def build(original: Any) -> Any:
        def call(*arguments: Any) -> Any:
            if message := _reason_to_refuse(arguments[position]):
                raise refusal("Lambda", f"Invalid request provided: {message}")
            return original(*arguments)

        return call

    return build


def _reason_to_refuse(mapping: Mapping[str, Any]) -> str | None:
    queue = internals("services.sqs")._queue_by_arn(mapping.get("EventSourceArn", ""))
    if queue is None:
        return None  # Another kind of source, or a missing one, which MiniStack itself reports.
    batch_size = int(mapping.get("BatchSize") or _BATCH_WITHOUT_WINDOW)
    window_seconds = int(mapping.get("MaximumBatchingWindowInSeconds") or 0)
    if queue["is_fifo"] and window_seconds:
        return "Batching window is not supported for FIFO queues"
    if queue["is_fifo"] and batch_size > _BATCH_WITHOUT_WINDOW:
        # AWS documents the limit, but not the wording.
        return f"Batch size must be between 1 and {_BATCH_WITHOUT_WINDOW} for FIFO queues"
    if batch_size > _BATCH_WITHOUT_WINDOW and not window_seconds:
        return (
            "Maximum batch window in seconds must be greater than 0 "
            f"if maximum batch size is greater than {_BATCH_WITHOUT_WINDOW}"
        )
    visibility_seconds = int(queue["attributes"]["VisibilityTimeout"])
    timeout_seconds = _function_timeout_seconds(mapping.get("FunctionName", ""))
    if visibility_seconds < timeout_seconds:
        return (
            f"Queue visibility timeout: {visibility_seconds} seconds is less than "
            f"Function timeout: {timeout_seconds} seconds"
        )
    return None


def _function_timeout_seconds(function_reference: str) -> int:
    lambda_service = internals("services.lambda_svc")
    name, qualifier = lambda_service._resolve_name_and_qualifier(function_reference)
    _, configuration = lambda_service._get_func_record_for_qualifier(name, qualifier)
    return int((configuration or {}).get("Timeout", 0))
