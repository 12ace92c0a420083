"""Keeps a state machine DELETING until its executions have ended, and lets no stack be removed before.

Gap: MiniStack deletes a state machine at once, and its running executions with it.
AWS: DeleteStateMachine "sets the state machine's status to DELETING and begins the deletion process. A state machine is
deleted only when all its executions are completed." To start or change it is refused with StateMachineDeleting.
https://docs.aws.amazon.com/step-functions/latest/apireference/API_DeleteStateMachine.html
It "might get stuck in DELETING when an execution is in a Wait state", and CloudFormation waits for it.
https://repost.aws/knowledge-center/step-functions-stuck-deleting-status

What still differs from AWS: an execution goes on to its end instead of failing at its next transition, and a stack
fails to delete at once instead of hanging.
"""

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace, replace_resource_handler

_DELETING = "DELETING"


def apply(emulator: Emulator) -> None:
    """Delete a state machine with the last of its executions."""
    service = internals("services.stepfunctions")
    replace(service, "_delete_state_machine", _delete_later)
    replace(service, "_emit_execution_status_event", _end_deletion)
    replace(service, "_start_execution", _refuse_while_deleting)
    replace(service, "_update_state_machine", _refuse_while_deleting)
    replace_resource_handler("AWS::StepFunctions::StateMachine", "delete", _delete_of_stack)


def _runs(machine_arn: str) -> bool:
    executions = internals("services.stepfunctions")._executions
    return any(
        execution["stateMachineArn"] == machine_arn and execution["status"] == "RUNNING"
        for execution in executions.values()
    )


def _machine(arn: str | None) -> dict[str, Any] | None:
    machine: dict[str, Any] | None = internals("services.stepfunctions")._state_machines.get(arn)
    return machine


def _delete_later(delete: Any) -> Any:
    def delete_state_machine(data: dict[str, Any]) -> Any:
        arn = data.get("stateMachineArn", "")
        machine = _machine(arn)
        if machine is None or not _runs(arn):
            return delete(data)
        machine["status"] = _DELETING
        return internals("core.responses").json_response({})

    return delete_state_machine


def _end_deletion(tell: Any) -> Any:
    def tell_and_delete(execution: dict[str, Any]) -> None:
        tell(execution)
        arn = execution["stateMachineArn"]
        machine = _machine(arn)
        if machine is not None and machine.get("status") == _DELETING and not _runs(arn):
            internals("services.stepfunctions")._delete_state_machine({"stateMachineArn": arn})

    return tell_and_delete


def _refuse_while_deleting(act: Any) -> Any:
    def act_unless_deleting(data: dict[str, Any]) -> Any:
        arn = data.get("stateMachineArn", "").partition("#")[0]
        machine = _machine(internals("services.stepfunctions")._resolve_state_machine_arn(arn))
        if machine is not None and machine.get("status") == _DELETING:
            responses = internals("core.responses")
            return responses.error_response_json("StateMachineDeleting", f"State Machine is being deleted: {arn}", 400)
        return act(data)

    return act_unless_deleting


def _delete_of_stack(delete: Any) -> Any:
    def delete_state_machine(physical_id: str, properties: dict[str, Any]) -> None:
        if _machine(physical_id) is not None and _runs(physical_id):
            internals("services.stepfunctions")._delete_state_machine({"stateMachineArn": physical_id})
            raise RuntimeError(f"Resource {physical_id} did not stabilize: it is DELETING while its executions run")
        delete(physical_id, properties)

    return delete_state_machine
