"""The state machines' definitions, checked by AWS Labs' checker and for what that leaves unchecked."""

import copy
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from darkroom.domain.schedules.release_event import ReleaseEvent
from repository.expand_template import expanded_template, raw_template
from repository.report import ROOT

pytestmark = pytest.mark.promise("state-machine")

FILES = sorted(ROOT.glob("statemachines/*.asl.yaml"))
MACHINES = {
    resource["Properties"]["DefinitionUri"]: resource["Properties"]
    for resource in raw_template()["Resources"].values()
    if resource["Type"] == "AWS::Serverless::StateMachine"
}


def definition(path: Path) -> dict[str, Any]:
    """The definition as deployed, with placeholders for what the template substitutes."""
    text = re.sub(
        r"\$\{(\w+)\}", lambda match: "aws" if match[1] == "Partition" else f"arn:aws:{match[1]}", path.read_text()
    )
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def problems(machine: dict[str, Any], folder: Path) -> str:
    file = folder / "machine.json"
    file.write_text(json.dumps(machine))
    run = subprocess.run([sys.executable, "-m", "statelint", file], capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


def reached(machine: dict[str, Any]) -> set[str]:
    """The reachable states."""
    seen: set[str] = set()
    ahead = [machine["StartAt"]]
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            state = machine["States"][name]
            ways = [state.get("Next"), state.get("Default")]
            ways += [branch["Next"] for branch in (*state.get("Catch", ()), *state.get("Choices", ()))]
            ahead += [way for way in ways if way is not None]
    return seen


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_definition_is_one_that_step_functions_takes(path: Path, tmp_path: Path) -> None:
    machine = definition(path)
    assert problems(machine, tmp_path) == ""
    assert reached(machine) == machine["States"].keys(), "states that no way leads to"
    assert len(json.dumps(machine)) < 1_048_576


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_checker_sees_what_dangles(path: Path, tmp_path: Path) -> None:
    machine = definition(path)
    first = machine["States"][machine["StartAt"]]
    dangling = copy.deepcopy(machine) | {
        "States": machine["States"] | {machine["StartAt"]: first | {"Next": "Nowhere"}}
    }
    assert "Nowhere" in problems(dangling, tmp_path)
    unreachable = copy.deepcopy(machine)
    unreachable["States"]["Island"] = {"Type": "Succeed"}
    assert reached(unreachable) != unreachable["States"].keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_template_substitutes_what_the_definition_asks_for(path: Path) -> None:
    wanted = set(re.findall(r"\$\{(\w+)\}", path.read_text()))
    assert MACHINES[f"statemachines/{path.name}"]["DefinitionSubstitutions"].keys() == wanted


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_whatever_fails_is_retried_and_then_reported(path: Path) -> None:
    for name, state in definition(path)["States"].items():
        if state["Type"] == "Task":
            assert state["Retry"][-1]["ErrorEquals"] == ["States.ALL"], name
            assert name == "TellOperators" or state["Catch"][0]["ErrorEquals"] == ["States.ALL"], name


HELD_SINCE_LAST_YEAR = {
    "HoldBatchStateMachine": ("AWS::StepFunctions::StateMachine", "StateMachineName"),
    "HoldBatchStateMachineRole": ("AWS::IAM::Role", "RoleName"),
    "ReleaseImagesFunction": ("AWS::Lambda::Function", "FunctionName"),
    "HoldDeadLetters": ("AWS::SQS::Queue", "QueueName"),
    "HoldsBucket": ("AWS::S3::Bucket", "BucketName"),
}
"""What executions of up to a year ago name, with its type, and the property that would give it another name. "Running
executions will continue to use the previous definition and roleArn"
(https://docs.aws.amazon.com/step-functions/latest/apireference/API_UpdateStateMachine.html), and a resource with
another logical id, type or name is another one: what is here may be added to, and never changed."""


@pytest.mark.parametrize("name", HELD_SINCE_LAST_YEAR)
def test_what_a_batch_that_is_held_for_a_year_names_is_still_that_resource(name: str) -> None:
    kind, named_by = HELD_SINCE_LAST_YEAR[name]
    resource = expanded_template()["Resources"][name]
    assert resource["Type"] == kind
    assert named_by not in resource["Properties"] and "Condition" not in resource


def test_a_batch_that_is_held_for_a_year_has_a_machine_of_that_type_and_its_own_role() -> None:
    machine = expanded_template()["Resources"]["HoldBatchStateMachine"]["Properties"]
    assert machine["StateMachineType"] == "STANDARD", "another type replaces the machine, and stops its executions"
    assert machine["RoleArn"] == {"Fn::GetAtt": ["HoldBatchStateMachineRole", "Arn"]}
    named = MACHINES["statemachines/hold_batch.asl.yaml"]["DefinitionSubstitutions"]
    assert named["ReleaseImagesFunctionArn"] == {"Fn::GetAtt": ["ReleaseImagesFunction", "Arn"]}, "without a version"
    assert named["HoldDeadLettersUrl"] == {"Ref": "HoldDeadLetters"}


def test_a_batch_that_is_held_for_a_year_hands_over_an_input_that_is_still_taken() -> None:
    execution_input = {"key": "holds/2027.json.gz", "position": 0, "begins_at": None, "wake_at": "2027-02-20T06:35:00Z"}
    assert ReleaseEvent.model_validate(execution_input).key == execution_input["key"]
    assert ReleaseEvent.model_validate({**execution_input, "position": 7, "begins_at": 1, "done": False}).position == 7
    paths = set(re.findall(r"\$\.(\w+)", (ROOT / "statemachines" / "hold_batch.asl.yaml").read_text()))
    assert paths - {"error", "Execution"} <= {*execution_input, "done"}, "an execution has no more than it was given"
