"""Checks the permissions that AWS checks for batches of SQS messages and for writes to log groups.

Gap: MiniStack checks `sqs:SendMessageBatch`, which no policy can name; and it checks log groups by an ARN without the
`:*` with which policies name them.
AWS: SendMessageBatch, DeleteMessageBatch and ChangeMessageVisibilityBatch need the permission of the single action. A
log group's ARN ends with `:*`, for every action except those on tags.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-api-permissions-reference.html
https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_LogGroup.html (arn)
"""

from typing import Any

from embedded_aws.emulator import Emulator
from embedded_aws.ministack_internals import internals, replace

_BATCH = "Batch"


def apply(emulator: Emulator) -> None:
    """Use the single action's permission for a batch, and name log groups as policies do."""
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
