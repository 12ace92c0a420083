"""Answers a StartExecution that is repeated while its execution runs with the first answer.

Gap: MiniStack answers ExecutionAlreadyExists to every existing name.
AWS: "StartExecution is idempotent for STANDARD workflows": with the same name and input as a running execution "the
call succeeds and returns the same response as the original request"; otherwise it answers ExecutionAlreadyExists.
https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html

What still differs from AWS: on AWS a name is free again 90 days after its execution has ended; here never.
"""

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace


def apply(emulator: Emulator) -> None:
    """Before an execution starts, look for a running one with the same name and input."""
    replace(internals("services.stepfunctions"), "_start_execution", _idempotent)


def _idempotent(start: Any) -> Any:
    def start_execution(data: dict[str, Any]) -> Any:
        service, responses = internals("services.stepfunctions"), internals("core.responses")
        machine_arn = service._resolve_state_machine_arn(data.get("stateMachineArn", "").partition("#")[0])
        machine = service._state_machines.get(machine_arn)
        if machine is not None and machine.get("type", "STANDARD") == "STANDARD":
            prefix = machine_arn.replace(":stateMachine:", ":execution:")
            running = service._executions.get(f"{prefix}:{data.get('name')}")
            if running is not None and running["status"] == "RUNNING" and running["input"] == data.get("input", "{}"):
                return responses.json_response(
                    {"executionArn": running["executionArn"], "startDate": running["startDate"]}
                )
        return start(data)

    return start_execution
