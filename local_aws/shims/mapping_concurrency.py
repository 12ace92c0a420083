"""Lets a stack parameter set the concurrency of an event source mapping.

Gap: MiniStack keeps the value of a template's `Ref` to a parameter, which is text, and fails to compare it with a
number whenever it polls: no message of the queue is ever passed on.
AWS: a parameter's value is a string where it is used, even if its type is Number, and CloudFormation converts it to the
property's type; `MaximumConcurrency` is an integer.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-lambda-eventsourcemapping-scalingconfig.html
"""

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import replace_resource_handler

_MAPPING = "AWS::Lambda::EventSourceMapping"


def apply(emulator: Emulator) -> None:
    """Convert it to a number whenever a stack creates or updates a mapping."""
    replace_resource_handler(_MAPPING, "create", _creating)
    replace_resource_handler(_MAPPING, "update", _updating)


def _creating(create: Any) -> Any:
    def create_mapping(logical_id: str, properties: dict[str, Any], stack_name: str) -> Any:
        return create(logical_id, _with_a_number(properties), stack_name)

    return create_mapping


def _updating(update: Any) -> Any:
    def update_mapping(physical_id: str, old: dict[str, Any], new: dict[str, Any], stack_name: str) -> Any:
        return update(physical_id, old, _with_a_number(new), stack_name)

    return update_mapping


def _with_a_number(properties: dict[str, Any]) -> dict[str, Any]:
    scaling = properties.get("ScalingConfig")
    if not scaling or "MaximumConcurrency" not in scaling:
        return properties
    return {**properties, "ScalingConfig": {**scaling, "MaximumConcurrency": int(scaling["MaximumConcurrency"])}}
