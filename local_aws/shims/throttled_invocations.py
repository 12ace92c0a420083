"""Handles a throttled invocation as the service that requested it does.

Gap: MiniStack counts a throttled event as a failed attempt, so it is lost after three seconds, and an event of a rule
at once; it leaves a throttled batch of messages in flight until their visibility timeout; to a state machine the error
is Lambda.Unknown.
AWS: a throttled asynchronous invocation goes back to Lambda's queue and is retried "for up to 6 hours by default",
after 1 second at first and 5 minutes at most, without counting as an attempt; EventBridge invokes functions
asynchronously. A throttled batch is retried "unless the message's remaining visibility timeout is less than the
destination function's configured timeout"; then it returns to its queue. In a state machine the error is
Lambda.TooManyRequestsException.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-targets.html
https://docs.aws.amazon.com/step-functions/latest/dg/bp-lambda-serviceexception.html

What still differs from AWS: a topic's message to a function is not retried. While a mapping's batch is retried, its
other batches do not slow down. A retry runs the code of the first try.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from local_aws.concurrency import pauses
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_THROTTLED = "TooManyRequestsException"
_LONGEST_EVENT_AGE_SECONDS = 6 * 3600

lambda_service = internals("services.lambda_svc")


@dataclass(frozen=True, kw_only=True)
class Patience:
    """Until when an invocation is retried, by the stack's clock, and after which pauses."""

    until: float
    first_pause_seconds: float
    longest_pause_seconds: float


# The policy of the service that invokes a function in this context; None if the caller handles the throttle itself.
_patience: ContextVar[Patience | None] = ContextVar("patience_with_throttles", default=None)


def apply(emulator: Emulator) -> None:
    """Retry where AWS does, and name the error where it does not."""
    replace(lambda_service, "_execute_function", _execute_patiently)
    replace(lambda_service, "invoke_async_with_retry", _queue_event)
    replace(lambda_service, "_run_sqs_batch", _keep_batch)
    replace(internals("services.eventbridge"), "_dispatch_to_lambda", lambda _: _invoke_for_rule)
    replace(internals("services.stepfunctions"), "_call_lambda", _name_throttle)


def _execute_patiently(execute: Any) -> Any:
    def execute_function(function: Any, event: Any) -> Any:
        patience = _patience.get()
        if patience is None:
            return execute(function, event)
        # MiniStack's own code in here, perhaps this very function in another scope, must not retry again.
        with _with_patience(None):
            result = execute(function, event)
            for pause_seconds in pauses(patience.first_pause_seconds, patience.longest_pause_seconds):
                left_seconds = patience.until - time.time()
                if not result.get("throttle") or left_seconds <= 0:
                    break
                time.sleep(min(pause_seconds, left_seconds))
                result = execute(function, event)
        return result

    return execute_function


@contextmanager
def _with_patience(patience: Patience | None) -> Iterator[None]:
    token = _patience.set(patience)
    try:
        yield
    finally:
        _patience.reset(token)


def _queue_event(invoke: Any) -> Any:
    def invoke_asynchronously(function: Any, event: Any) -> Any:
        latest = (function.get("event_invoke_configs") or {}).get("$LATEST")
        configured = function.get("event_invoke_config") or latest or {}
        age_seconds = int(configured.get("MaximumEventAgeInSeconds", _LONGEST_EVENT_AGE_SECONDS))
        patience = Patience(until=time.time() + age_seconds, first_pause_seconds=1, longest_pause_seconds=300)
        with _with_patience(patience):  # the thread that this starts inherits it
            return invoke(function, event)

    return invoke_asynchronously


def _keep_batch(run: Any) -> Any:
    def run_batch(mapping: Any, function: Any, event: Any, batch: list[dict[str, Any]], *arguments: Any) -> Any:
        timeout_seconds = (function.get("config") or function)["Timeout"]
        returns_at = min(message["visible_at"] for message in batch)
        patience = Patience(until=returns_at - timeout_seconds, first_pause_seconds=0.1, longest_pause_seconds=2)
        with _with_patience(patience):
            return run(mapping, function, event, batch, *arguments)

    return run_batch


def _invoke_for_rule(arn: str, payload: str) -> None:
    function, config, _ = lambda_service._get_func_record_for_ref(arn)
    if function and config:
        try:
            event = json.loads(payload)
        except (ValueError, TypeError):
            event = {"body": payload}  # as MiniStack does
        lambda_service.invoke_async_with_retry(lambda_service._execution_record_for_config(function, config), event)


def _name_throttle(call: Any) -> Any:
    def call_function(*arguments: Any) -> Any:
        execution_error = internals("services.stepfunctions")._ExecutionError
        try:
            return call(*arguments)
        except execution_error as error:
            if error.error != "Lambda.Unknown" or f'"__type": "{_THROTTLED}"' not in error.cause:
                raise
            cause = f"Rate Exceeded. (Service: AWSLambda; Status Code: 429; Error Code: {_THROTTLED}; "
            raise execution_error(f"Lambda.{_THROTTLED}", f"{cause}Request ID: {uuid4()})") from error

    return call_function
