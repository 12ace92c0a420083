"""Fails the whole batch if a function's report of failed items is invalid.

Gap: MiniStack skips what it does not understand in such a report and deletes the messages as if they had been
processed.
AWS: an invalid response is a complete failure, and so is an item identifier that is empty, null, misspelt or not of the
batch; an empty report is a complete success.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html (Success and failure conditions)
"""

from collections.abc import Collection
from contextvars import ContextVar
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

# The item identifiers of the batch of this thread's invocation; None if the mapping does not report failed items.
_batch: ContextVar[frozenset[str] | None] = ContextVar("batch_of_messages", default=None)


def apply(emulator: Emulator) -> None:
    """Check the function's response to each batch of a mapping with ReportBatchItemFailures."""
    lambda_service = internals("services.lambda_svc")
    replace(lambda_service, "_run_sqs_batch", _remember_batch)
    replace(lambda_service, "_execute_function", _check_report)


def _remember_batch(run: Any) -> Any:
    def run_batch(mapping: dict[str, Any], function: Any, event: Any, *arguments: Any) -> Any:
        reports = "ReportBatchItemFailures" in (mapping.get("FunctionResponseTypes") or [])
        token = _batch.set(frozenset(record["messageId"] for record in event["Records"]) if reports else None)
        try:
            return run(mapping, function, event, *arguments)
        finally:
            _batch.reset(token)

    return run_batch


def _check_report(execute: Any) -> Any:
    def execute_function(function: Any, event: Any) -> Any:
        result = execute(function, event)
        batch, response = _batch.get(), result.get("body")
        if batch is None or result.get("error"):
            return result
        if not is_understood(response, batch):
            message = f"The function's report of batch item failures is invalid: {response!r:.300}"
            return {**result, "error": True, "body": {"errorType": "InvalidBatchResponse", "errorMessage": message}}
        # MiniStack fails on a null list, which AWS treats as empty.
        return result if response and response.get("batchItemFailures") else {**result, "body": {}}

    return execute_function


def is_understood(response: Any, batch: Collection[str]) -> bool:
    """Return whether a response names no failed items, or only messages of the batch."""
    if response is None:
        return True
    if not isinstance(response, dict):
        return False
    failures = response.get("batchItemFailures") or []
    return isinstance(failures, list) and all(
        isinstance(failure, dict) and failure.get("itemIdentifier") in batch for failure in failures
    )
