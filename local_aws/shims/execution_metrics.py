"""Emits metrics of how the executions of state machines begin and end.

Gap: MiniStack emits no metrics of Step Functions.
AWS: counts executions that started, succeeded, failed, were aborted or timed out, in the namespace AWS/States with the
dimension StateMachineArn.
https://docs.aws.amazon.com/step-functions/latest/dg/procedure-cw-metrics.html

What still differs from AWS: there are no metrics of activities, of integrations, or of durations.
"""

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace
from local_aws.shims import metric_data

NAMESPACE = "AWS/States"

_METRICS = {
    "RUNNING": "ExecutionsStarted",
    "SUCCEEDED": "ExecutionsSucceeded",
    "FAILED": "ExecutionsFailed",
    "ABORTED": "ExecutionsAborted",
    "TIMED_OUT": "ExecutionsTimedOut",
}


def apply(emulator: Emulator) -> None:
    """Emit a metric whenever an execution's status changes."""
    replace(internals("services.stepfunctions"), "_emit_execution_status_event", _count)


def _count(tell: Any) -> Any:
    def tell_and_count(execution: dict[str, Any]) -> None:
        metric_data.observe(
            NAMESPACE, _METRICS[execution["status"]], {"StateMachineArn": execution["stateMachineArn"]}, 1
        )
        tell(execution)

    return tell_and_count
