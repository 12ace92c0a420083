"""Deploys the build to the emulator with SAM CLI, and summarises in a few lines why a deployment failed."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from local_aws.build import local_options, prepare_sam, sam_command, sam_environment
from local_aws.failures import ApiSilent, CommandFailed, DeploymentFailed
from local_aws.logs import folder_name
from local_aws.paths import State
from local_aws.processes import Interrupts, run
from local_aws.project import Probe, given

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import StackEventTypeDef

# CloudFormation neither updates nor replaces a stack whose creation or deletion failed: it has to be deleted first.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
_STUCK = frozenset({"CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_FAILED"})
# These only say that another resource failed first.
_CONSEQUENCES = ("Resource creation cancelled", "Resource update cancelled")
_PROBE_ATTEMPTS = 3
_PROBE_TIMEOUT_SECONDS = 30  # API Gateway's own limit for a function
# Stopping waits for the call in progress, so no call may take long.
_PATIENT = Config(read_timeout=_PROBE_TIMEOUT_SECONDS, retries={"total_max_attempts": 1})
_CLIENT = Config(connect_timeout=2, read_timeout=4, retries={"total_max_attempts": 1})


def deploy(
    state: State,
    template: Path,
    *,
    parameters: Mapping[str, str],
    interrupts: Interrupts,
    show: Callable[[str], None],
    stack_name: str | None = None,
) -> dict[str, str]:
    """Run `sam deploy` with a built template and return the stack's outputs; raises CommandFailed. The stack is the
    project's, unless `stack_name` says another."""
    cloudformation, name = boto3.client("cloudformation", config=_CLIENT), stack_name or given().stack_name
    _delete_if_stuck(cloudformation, name, interrupts)
    earlier = {event["EventId"] for event in _events(cloudformation, name)}
    prepare_sam(state)
    try:
        run(
            "sam deploy",
            [
                *(*sam_command(), "deploy", "--template-file", template, "--stack-name", name),
                "--use-json",  # of what it sends, which it reads again four times before it does: see `build`
                *local_options(**parameters),
            ],
            environment=sam_environment(state),
            folder=state.sam,
            log=state.logs / "deploy.log",
            interrupts=interrupts,
            show=show,
        )
    except CommandFailed as failure:
        reasons = _reasons([event for event in _events(cloudformation, name) if event["EventId"] not in earlier])
        raise (DeploymentFailed(failure, reasons) if reasons else failure) from None
    (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def await_answer(api_url: str, interrupts: Interrupts, probe: Probe) -> None:
    """Send the request until a function answers it as it should; raises ApiSilent."""
    expected = (probe.status, probe.content_type)
    request = urllib.request.Request(api_url + probe.path, headers=dict(probe.headers))  # noqa: S310 -- always http
    # Directly to the loopback address, ignoring any proxy of the machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _AnyStatus())
    said = "no answer"
    for _ in range(_PROBE_ATTEMPTS):
        try:
            with interrupts.raised_at_once(), opener.open(request, timeout=_PROBE_TIMEOUT_SECONDS) as answer:
                if (answer.status, answer.headers.get_content_type()) == expected:
                    return
                said = f"{answer.status} {answer.read(500).decode(errors='replace')}"
        except OSError as error:
            said = str(error)
        interrupts.pause(0.5)
    raise ApiSilent(
        f"GET {api_url}{probe.path} should be a {expected[0]} {expected[1]} made by one of {', '.join(probe.behind)}, "
        f"and was: {said}",
        exceptions=[lines for function in probe.behind if (lines := _exception_of(function))],
    )


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Returns every answer, whatever its status."""

    def http_response(self, request: urllib.request.Request, response: Any) -> Any:
        return response


def _exception_of(function: str) -> list[str]:
    """The exception with which a function fails at its sample event, as Lambda reports it; empty if it does not fail.
    https://docs.aws.amazon.com/lambda/latest/dg/python-exceptions.html
    """
    try:
        resource = boto3.client("cloudformation", config=_CLIENT).describe_stack_resource(
            StackName=given().stack_name, LogicalResourceId=function
        )
        answer = boto3.client("lambda", config=_PATIENT).invoke(
            FunctionName=resource["StackResourceDetail"]["PhysicalResourceId"],
            Payload=(given().root / "events" / f"{folder_name(function)}.json").read_bytes(),
        )
        report = json.loads(answer["Payload"].read())
    except (BotoCoreError, ClientError, OSError, ValueError):
        return []  # then the emulator's log has to do
    if "FunctionError" not in answer:
        return []
    stack = [line for frame in report.get("stackTrace", ()) for line in str(frame).rstrip().splitlines()]
    return [f"{function}: {report.get('errorType')}: {report.get('errorMessage')}", *stack]


def _delete_if_stuck(cloudformation: CloudFormationClient, name: str, interrupts: Interrupts) -> None:
    if _status(cloudformation, name) in _STUCK:
        cloudformation.delete_stack(StackName=name)
        while _status(cloudformation, name) not in (None, "DELETE_FAILED"):
            interrupts.pause(0.2)


def _status(cloudformation: CloudFormationClient, name: str) -> str | None:
    try:
        (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError":  # how CloudFormation says that it does not exist
            return None
        raise
    return None if stack["StackStatus"] == "DELETE_COMPLETE" else stack["StackStatus"]


def _events(cloudformation: CloudFormationClient, name: str) -> list[StackEventTypeDef]:
    try:
        pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=name)
        return [event for page in pages for event in page["StackEvents"]]
    except ClientError:
        return []


def _reasons(events: Sequence[StackEventTypeDef]) -> list[str]:
    """The events with the first failure first; CloudFormation lists the newest first."""
    return [
        f"{event['LogicalResourceId']} ({event['ResourceType']}): {event['ResourceStatusReason']}"
        for event in reversed(events)
        if event["ResourceStatus"].endswith("_FAILED")
        and event.get("ResourceStatusReason")
        and not event["ResourceStatusReason"].startswith(_CONSEQUENCES)
    ]
