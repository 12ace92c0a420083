"""Fails the whole batch where a function's report of failed items cannot be understood.

Gap: MiniStack skips what it does not understand in such a report and deletes the messages as if they had been
processed.
AWS: an invalid response, and an item identifier that is empty, null, misspelt or of no message of the batch, are a
complete failure; an empty report is a complete success.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html (Success and failure conditions)
"""

from collections.abc import Collection
from contextvars import ContextVar
from typing import Any

from embedded_aws.emulator import Emulator
from embedded_aws.ministack_internals import internals, replace

# The identifiers of the batch that this thread's invocation is about; None where nobody reports failed items.
_batch: ContextVar[frozenset[str] | None] = ContextVar("batch_of_messages", default=None)


def apply(emulator: Emulator) -> None:
    """Check the function's answer to each batch of a mapping with ReportBatchItemFailures."""
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
        # MiniStack trips over a null list, which AWS takes for an empty one.
        return result if response and response.get("batchItemFailures") else {**result, "body": {}}

    return execute_function


def is_understood(response: Any, batch: Collection[str]) -> bool:
    """Return whether a response names no failed items, or messages of the batch only."""
    if response is None:
        return True
    if not isinstance(response, dict):
        return False
    failures = response.get("batchItemFailures") or []
    return isinstance(failures, list) and all(
        isinstance(failure, dict) and failure.get("itemIdentifier") in batch for failure in failures
    )
