"""Evaluates Fn::Join in a template's conditions.

Gap: MiniStack takes it for a text that equals nothing, so that a list without members counts as one with some.
AWS: the usual way to ask whether a list parameter is empty is to compare its joined members with an empty text.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-join.html
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-conditions.html
"""

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_READERS = ("engine", "changesets", "handlers", "stacks")
"""The modules that have the function by its name."""


def apply(emulator: Emulator) -> None:
    """Join before MiniStack compares."""
    for name in _READERS:
        replace(internals(f"services.cloudformation.{name}"), "_evaluate_conditions", _with_joined_texts)


def _with_joined_texts(evaluate: Any) -> Any:
    def evaluate_conditions(template: dict[str, Any], parameters: dict[str, Any]) -> Any:
        conditions = _joined(template.get("Conditions", {}), parameters)
        return evaluate({**template, "Conditions": conditions}, parameters)

    return evaluate_conditions


def _joined(value: Any, parameters: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_joined(each, parameters) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"Fn::Join"}:
        delimiter, members = value["Fn::Join"]
        # MiniStack keeps a list parameter as one text.
        texts = _text(members, parameters).split(",") if isinstance(members, dict) else members
        return delimiter.join(_text(each, parameters) for each in texts)
    return {name: _joined(each, parameters) for name, each in value.items()}


def _text(value: Any, parameters: dict[str, Any]) -> str:
    return str(parameters[value["Ref"]]["Value"] if isinstance(value, dict) else value)
