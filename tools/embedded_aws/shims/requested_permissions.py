"""Asks for the permissions that AWS asks for, where SQS is sent a batch and where a log group is written to.

Gap: MiniStack asks for `sqs:SendMessageBatch`, which no policy can name; and for log groups by an ARN without the `:*`
that policies name them by.
AWS: SendMessageBatch, DeleteMessageBatch and ChangeMessageVisibilityBatch need the permission of the action that they
repeat. A log group is named with `:*` at its end, for every action but those of tags.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-api-permissions-reference.html
https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_LogGroup.html (arn)
"""

from typing import Any

from embedded_aws.emulator import Emulator
from embedded_aws.ministack_internals import internals, replace

_BATCH = "Batch"


def apply(emulator: Emulator) -> None:
    """Name the permission of a batch by its single action, and log groups as policies do."""
    actions = internals("core.iam_actions")
    replace(actions, "extract_iam_action", _by_single_action)
    replace(actions, "extract_resource_arn", _by_whole_group)


def _by_single_action(extract: Any) -> Any:
    def extract_iam_action(service: str, *arguments: Any) -> str | None:
        action: str | None = extract(service, *arguments)
        return action.removesuffix(_BATCH) if action is not None and service == "sqs" else action

    return extract_iam_action


def _by_whole_group(extract: Any) -> Any:
    def extract_resource_arn(service: str, method: str, path: str, headers: Any, *arguments: Any) -> str:
        arn: str = extract(service, method, path, headers, *arguments)
        of_tags = "Tag" in headers.get("x-amz-target", "")
        return f"{arn}:*" if service == "logs" and ":log-group:" in arn and not of_tags else arn

    return extract_resource_arn
