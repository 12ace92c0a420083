"""The emulator does what Step Functions does: each of its shims next to the gap that it closes in stock MiniStack."""

import json
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from local_aws import clock
from local_aws.tests.emulator_server import (
    ACCOUNT_ID,
    ENVIRONMENTS,
    ROLE,
    EmulatorServer,
    create_function,
    emulator_server,
    reasons_for_failed_stack,
    stack,
    wait_until,
)
from local_aws.tests.metrics import statistic

pytest_plugins = ("local_aws.tests.emulator_fixtures",)


EMULATOR_PYTHON = ENVIRONMENTS / "emulator" / "bin" / "python"


def machine(server: EmulatorServer, seconds: int) -> str:
    return created(server, {"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": seconds, "End": True}}})


def created(server: EmulatorServer, definition: dict[str, Any]) -> str:
    arn: str = server.client("stepfunctions").create_state_machine(
        name=f"machine-{uuid4()}",
        definition=json.dumps(definition),
        roleArn=ROLE,
    )["stateMachineArn"]
    return arn


def start(server: EmulatorServer, arn: str, payload: str) -> tuple[str, str]:
    answer = server.client("stepfunctions").start_execution(stateMachineArn=arn, name="one", input=payload)
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


# state_machine_deletion


def is_deleting(server: EmulatorServer, arn: str) -> bool:
    status: str = server.client("stepfunctions").describe_state_machine(stateMachineArn=arn)["status"]
    return status == "DELETING"


def test_gap_stock_deletes_a_machine_whose_executions_run(stock: EmulatorServer) -> None:
    arn = machine(stock, 300)
    start(stock, arn, "{}")
    stock.client("stepfunctions").delete_state_machine(stateMachineArn=arn)
    with pytest.raises(ClientError, match="StateMachineDoesNotExist"):
        is_deleting(stock, arn)


def test_a_machine_is_deleting_until_its_last_execution_has_ended(emulator: EmulatorServer) -> None:
    client, arn = emulator.client("stepfunctions"), machine(emulator, 300)
    execution, _ = start(emulator, arn, "{}")
    other = client.start_execution(stateMachineArn=arn, name="two")["executionArn"]
    client.delete_state_machine(stateMachineArn=arn)
    client.stop_execution(executionArn=execution)
    assert is_deleting(emulator, arn)
    with pytest.raises(ClientError, match="StateMachineDeleting"):
        client.start_execution(stateMachineArn=arn, name="three")
    client.stop_execution(executionArn=other)
    with pytest.raises(ClientError, match="StateMachineDoesNotExist"):
        is_deleting(emulator, arn)


def test_a_stack_is_removed_once_its_machine_has_no_execution(emulator: EmulatorServer) -> None:
    definition = {"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 300, "End": True}}}
    properties = {"RoleArn": ROLE, "Definition": definition}
    template = {"Resources": {"Machine": {"Type": "AWS::StepFunctions::StateMachine", "Properties": properties}}}
    cloudformation, name = emulator.client("cloudformation"), f"machine-{uuid4()}"
    cloudformation.create_stack(StackName=name, TemplateBody=json.dumps(template))
    cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
    (resource,) = cloudformation.describe_stack_resources(StackName=name)["StackResources"]
    execution, _ = start(emulator, resource["PhysicalResourceId"], "{}")

    def stack_status() -> str:
        (described,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
        return str(described["StackStatus"])

    cloudformation.delete_stack(StackName=name)
    wait_until(lambda: stack_status() == "DELETE_FAILED", "the removal has failed")
    assert is_deleting(emulator, resource["PhysicalResourceId"])
    emulator.client("stepfunctions").stop_execution(executionArn=execution)
    cloudformation.delete_stack(StackName=name)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig={"Delay": 1})


# wait_states


def waiting_until(server: EmulatorServer, moment: float) -> str:
    """Start an execution that waits until then."""
    timestamp = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    definition = {"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Timestamp": timestamp, "End": True}}}
    return start(server, created(server, definition), "{}")[0]


def has_ended(server: EmulatorServer, execution: str) -> bool:
    return status(server, execution) != "RUNNING"


def status(server: EmulatorServer, execution: str) -> str:
    described: str = server.client("stepfunctions").describe_execution(executionArn=execution)["status"]
    return described


@pytest.fixture
def file(tmp_path: Path) -> Path:
    clock.set_ahead(tmp_path / "clock", 0)
    return tmp_path / "clock"


def test_gap_stock_sleeps_on_where_the_clock_has_moved(file: Path, tmp_path: Path) -> None:
    with emulator_server(tmp_path / "data", "--stock", **clock.variables(EMULATOR_PYTHON, file)) as stock:
        execution = waiting_until(stock, time.time() + 3600)
        time.sleep(1)
        clock.set_ahead(file, 7200)
        time.sleep(clock.SETTLE_SECONDS + 1)
        assert status(stock, execution) == "RUNNING"


def test_a_wait_is_over_when_the_clock_says_so_and_not_before(file: Path, tmp_path: Path) -> None:
    with emulator_server(tmp_path / "data", **clock.variables(EMULATOR_PYTHON, file)) as emulator:
        execution = waiting_until(emulator, time.time() + 3600)
        time.sleep(1)
        clock.set_ahead(file, 3000)
        time.sleep(clock.SETTLE_SECONDS + 1)
        assert status(emulator, execution) == "RUNNING"
        clock.set_ahead(file, 3601)
        wait_until(lambda: status(emulator, execution) == "SUCCEEDED", "the wait is over")


# function_isolation


def test_a_retry_knows_an_error_by_the_name_of_its_exception(emulator: EmulatorServer) -> None:
    create_function(
        emulator,
        "unreadable",
        "class Unreadable(Exception): ...\ndef handler(event, context):\n    raise Unreadable('why')",
    )
    task = {
        "Type": "Task",
        "Resource": f"arn:aws:lambda:us-east-1:{ACCOUNT_ID}:function:unreadable",
        "Catch": [{"ErrorEquals": ["Unreadable"], "Next": "Known"}],
        "End": True,
    }
    arn = created(emulator, {"StartAt": "Task", "States": {"Task": task, "Known": {"Type": "Succeed"}}})
    execution, _ = start(emulator, arn, "{}")
    wait_until(lambda: status(emulator, execution) != "RUNNING", "the execution has ended")
    output = json.loads(emulator.client("stepfunctions").describe_execution(executionArn=execution)["output"])
    assert (output["Error"], json.loads(output["Cause"])["errorMessage"]) == ("Unreadable", "why")


# state_machine_yaml

DEFINITION = "Comment: in YAML\nStartAt: Done\nStates:\n  Done: {Type: Pass, Result: '${Word}', End: true}\n"


def of_a_stack(server: EmulatorServer, definition: str) -> dict[str, Any]:
    """The resources that a stack needs for a machine whose definition is a file."""
    server.client("s3").create_bucket(Bucket="definitions")
    server.client("s3").put_object(Bucket="definitions", Key="machine", Body=definition.encode())
    properties = {
        "RoleArn": ROLE,
        "DefinitionS3Location": {"Bucket": "definitions", "Key": "machine"},
        "DefinitionSubstitutions": {"Word": "said"},
    }
    return {"Machine": {"Type": "AWS::StepFunctions::StateMachine", "Properties": properties}}


def ended(server: EmulatorServer) -> dict[str, Any]:
    """How an execution of the stack's machine has ended."""
    machines = server.client("stepfunctions").list_state_machines()["stateMachines"]
    (arn,) = [machine["stateMachineArn"] for machine in machines if machine["name"].startswith(("stack-", "Machine"))]
    execution, _ = start(server, arn, "{}")
    wait_until(lambda: status(server, execution) != "RUNNING", "the execution has ended")
    described: dict[str, Any] = server.client("stepfunctions").describe_execution(executionArn=execution)
    return described


def test_gap_stock_fails_every_execution_of_a_definition_in_yaml(stock: EmulatorServer) -> None:
    with stack(stock, of_a_stack(stock, DEFINITION)):
        assert ended(stock)["error"] == "InvalidDefinition"


def test_a_definition_may_be_yaml(emulator: EmulatorServer) -> None:
    with stack(emulator, of_a_stack(emulator, DEFINITION)):
        assert json.loads(ended(emulator)["output"]) == "said"


def test_what_is_neither_json_nor_yaml_is_refused(emulator: EmulatorServer) -> None:
    assert "neither JSON nor YAML" in reasons_for_failed_stack(emulator, of_a_stack(emulator, "{ unclosed"))


# execution_metrics


def counted(server: EmulatorServer, arn: str) -> dict[str, float]:
    names = ("Started", "Succeeded", "Failed", "Aborted")
    return {name: sum(statistic(server, "AWS/States", f"Executions{name}", {"StateMachineArn": arn})) for name in names}


def one_of_each(server: EmulatorServer) -> str:
    """A machine with executions that succeeded, failed and were stopped, one each."""
    arn = created(
        server,
        {
            "StartAt": "Which",
            "States": {
                "Which": {
                    "Type": "Choice",
                    "Choices": [
                        {"Variable": "$.end", "StringEquals": "fail", "Next": "Fail"},
                        {"Variable": "$.end", "StringEquals": "stop", "Next": "Wait"},
                    ],
                    "Default": "Done",
                },
                "Fail": {"Type": "Fail"},
                "Wait": {"Type": "Wait", "Seconds": 300, "End": True},
                "Done": {"Type": "Succeed"},
            },
        },
    )
    client = server.client("stepfunctions")
    for end in ("succeed", "fail", "stop"):
        execution = client.start_execution(stateMachineArn=arn, input=json.dumps({"end": end}))["executionArn"]
        if end == "stop":
            client.stop_execution(executionArn=execution)
        wait_until(partial(has_ended, server, execution), "it has ended")
    return arn


def test_gap_stock_does_not_count_executions(stock: EmulatorServer) -> None:
    one_of_each(stock)
    assert stock.client("cloudwatch").list_metrics(Namespace="AWS/States")["Metrics"] == []


def test_executions_count_as_they_begin_and_as_they_end(emulator: EmulatorServer) -> None:
    assert counted(emulator, one_of_each(emulator)) == {"Started": 3, "Succeeded": 1, "Failed": 1, "Aborted": 1}
