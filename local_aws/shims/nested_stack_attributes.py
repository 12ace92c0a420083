"""Keeps the attributes of what stays unchanged when a stack in a stack is updated.

Gap: MiniStack forgets them in a nested stack (not in others), so that Fn::GetAtt of one fails the update.
AWS: what an update does not change stays as it is, in nested stacks as well.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-update-behaviors.html
"""

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace


def apply(emulator: Emulator) -> None:
    """Give the update of a nested stack's resource the attributes that the resource has."""
    replace(internals("services.cloudformation.provisioners"), "_update_resource", _with_attributes)


def _with_attributes(update: Any) -> Any:
    def update_resource(*arguments: Any) -> Any:
        stack_name, logical_id = arguments[4:]
        # The nested stack's record still has the former resource: the result of this update takes its place.
        former = internals("services.cloudformation")._stacks[stack_name]["_resources"][logical_id]
        return update(*arguments, former["Attributes"])

    return update_resource
