"""Refuses a state machine with a transition to a state that does not exist.

Gap: MiniStack creates it, and an execution fails when it gets there.
AWS: CreateStateMachine and UpdateStateMachine answer InvalidDefinition and name each such transition.
https://docs.aws.amazon.com/step-functions/latest/apireference/API_CreateStateMachine.html (Errors)
https://states-language.net/spec.html#transition
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from local_aws.cloudformation_refusals import refusal
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace, replace_resource_handler


def apply(emulator: Emulator) -> None:
    """Check each definition that a request or a stack gives a state machine."""
    # MiniStack runs this check for requests and for stack updates; its result becomes an InvalidDefinition.
    replace(internals("services.stepfunctions"), "_validate_definition_jsonata", _check_definition)
    replace_resource_handler("AWS::StepFunctions::StateMachine", "create", _check_resource)


def _check_definition(validate: Any) -> Any:
    return lambda definition: validate(definition) or _reason_to_refuse(definition)


def _check_resource(create: Any) -> Any:
    def create_state_machine(logical_id: str, properties: dict[str, Any], stack_name: str) -> Any:
        definition = internals("services.cloudformation.provisioners")._sfn_definition(properties)
        if message := _reason_to_refuse(definition):
            raise refusal("Sfn", message)
        return create(logical_id, properties, stack_name)

    return create_state_machine


def _reason_to_refuse(definition: Any) -> str | None:
    try:
        machine = json.loads(definition or "")
    except (TypeError, ValueError):
        return None  # MiniStack's own checks handle anything that is not JSON.
    findings = [
        f"MISSING_TRANSITION_TARGET: Missing 'Next' target: {target} at {location}"
        for target, location in dangling_transitions(machine, "")
    ]
    return f"Invalid State Machine Definition: '{', '.join(findings)}'" if findings else None


def dangling_transitions(machine: Mapping[str, Any], location: str) -> Iterator[tuple[str, str]]:
    """Find transitions to missing states, in the machine and in the machines nested in its states."""
    states: Mapping[str, Any] = machine.get("States") or {}
    targets = [(machine.get("StartAt"), f"{location}/StartAt")]
    for name, state in states.items():
        here = f"{location}/States/{name}"
        targets += [(state.get(field), f"{here}/{field}") for field in ("Next", "Default")]
        for field in ("Choices", "Catch"):
            targets += [
                (rule.get("Next"), f"{here}/{field}[{index}]/Next") for index, rule in enumerate(state.get(field) or [])
            ]
        for index, branch in enumerate(state.get("Branches") or []):
            yield from dangling_transitions(branch, f"{here}/Branches[{index}]")
        for field in ("ItemProcessor", "Iterator"):
            if field in state:
                yield from dangling_transitions(state[field], f"{here}/{field}")
    for target, where in targets:
        if target is not None and target not in states:
            yield target, where
