"""What Step Functions does, the emulator does: each shim of it beside the gap that it closes in stock MiniStack."""

import json
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from tests.local.emulator_server import EmulatorServer

pytest_plugins = ("tests.local.emulator_fixtures",)


def machine(server: EmulatorServer, seconds: int) -> str:
    definition = {"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": seconds, "End": True}}}
    arn: str = server.client("stepfunctions").create_state_machine(
        name=f"machine-{uuid4()}",
        definition=json.dumps(definition),
        roleArn="arn:aws:iam::000000000000:role/machine",
    )["stateMachineArn"]
    return arn


def start(server: EmulatorServer, arn: str, told: str) -> tuple[str, str]:
    answer = server.client("stepfunctions").start_execution(stateMachineArn=arn, name="one", input=told)
    return answer["executionArn"], str(answer["startDate"])


# execution_names


def test_gap_stock_refuses_a_repeated_start(stock: EmulatorServer) -> None:
    arn = machine(stock, 300)
    start(stock, arn, "{}")
    with pytest.raises(ClientError, match="ExecutionAlreadyExists"):
        start(stock, arn, "{}")


def test_a_start_that_is_repeated_while_the_execution_runs_is_answered_as_before(emulator: EmulatorServer) -> None:
    arn = machine(emulator, 300)
    assert start(emulator, arn, '{"a": 1}') == start(emulator, arn, '{"a": 1}')
    assert len(emulator.client("stepfunctions").list_executions(stateMachineArn=arn)["executions"]) == 1
    with pytest.raises(ClientError, match="ExecutionAlreadyExists"):
        start(emulator, arn, '{"a": 2}')


def test_the_name_of_an_execution_that_has_ended_is_used_up(emulator: EmulatorServer) -> None:
    arn = machine(emulator, 300)
    execution, _ = start(emulator, arn, "{}")
    emulator.client("stepfunctions").stop_execution(executionArn=execution)
    with pytest.raises(ClientError, match="ExecutionAlreadyExists"):
        start(emulator, arn, "{}")
