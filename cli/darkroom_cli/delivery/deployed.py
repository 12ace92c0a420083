"""A stack and the one that delivers its images, as CloudFormation knows them now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError, WaiterError

from darkroom.aws.kernel.errors import code_of
from darkroom_cli.delivery.parameters import delivery_stack_of
from darkroom_cli.stack.operators import Stack
from darkroom_client.client import ApiError

_KEYS = "SigningKeys"
_WAIT = {"Delay": 5, "MaxAttempts": 720}
"""An hour: CloudFront takes minutes."""


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """A stack's name, status, parameters and outputs."""

    name: str
    status: str
    parameters: Mapping[str, str]
    outputs: Mapping[str, str]

    @property
    def trusted(self) -> tuple[str, ...]:
        """The ids of the public keys whose signatures a delivery stack's distribution accepts."""
        return tuple(filter(None, map(str.strip, self.parameters.get(_KEYS, "").split(","))))


def deployed(stack: Stack, name: str) -> Deployed | None:
    """The stack of that name in the same account and region, or None."""
    try:
        (found,) = stack.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if code_of(error) != "ValidationError":  # how CloudFormation says that there is none
            raise
        return None
    return Deployed(
        name=name,
        status=found["StackStatus"],
        parameters={each["ParameterKey"]: each["ParameterValue"] for each in found.get("Parameters", ())},
        outputs={each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", ())},
    )


def delivery_with(stack: Stack, output: str) -> Deployed:
    """The stack that delivers this one's images, which has that output. Raises ApiError if there is none."""
    found = deployed(stack, delivery_stack_of(stack.name))
    if found is None or not found.outputs.get(output):
        raise ApiError(
            f"There is no stack {delivery_stack_of(stack.name)} yet: docs/delivery.md says how to deploy it."
        )
    return found


def delivery_of(stack: Stack) -> Deployed:
    """The stack that delivers this one's images. Raises ApiError if there is none, or while it is being changed: which
    keys it trusts is not certain then."""
    found = delivery_with(stack, "SigningSecretArn")
    if found.status.endswith("_IN_PROGRESS"):  # guard: delivery-no-deployment
        raise ApiError(f"{found.name} is being changed ({found.status}). Wait until that has ended.")
    return found


def trust(stack: Stack, delivery: Deployed, keys: Collection[str]) -> None:
    """Has the distribution accept the signatures of these keys and no others: its stack is updated, with the template
    and the other parameters that it has. Returns when that is done."""
    if set(keys) == set(delivery.trusted):
        return
    cloudformation: Any = stack.client("cloudformation")
    others = [{"ParameterKey": name, "UsePreviousValue": True} for name in delivery.parameters if name != _KEYS]
    cloudformation.update_stack(
        StackName=delivery.name,
        UsePreviousTemplate=True,
        Parameters=[{"ParameterKey": _KEYS, "ParameterValue": ",".join(keys)}, *others],
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
    )
    try:
        cloudformation.get_waiter("stack_update_complete").wait(StackName=delivery.name, WaiterConfig=_WAIT)
    except WaiterError as error:
        raise ApiError(f"{delivery.name} was not updated: its events in CloudFormation say why. {error}") from error
