"""Checks the permissions that AWS checks for batches of messages, removals of versions, reads of streams and writes to
log groups.

Gap: MiniStack checks `sqs:SendMessageBatch` and `sns:PublishBatch`, which no policy can name; it checks reads of a
DynamoDB stream for every stream; it checks log groups by an ARN without the `:*` with which policies name them; and of
the first object of a DeleteObjects it checks `s3:DeleteObject`, also where a version of it is named.
AWS: SendMessageBatch, DeleteMessageBatch, ChangeMessageVisibilityBatch and PublishBatch need the permission of the
single action. A version is removed by `s3:DeleteObjectVersion`. A stream is read by the permission for its own ARN. A
log group's ARN ends with `:*`, for every action except those on tags.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-api-permissions-reference.html
https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsns.html
https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html
https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html (Permissions)
https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_LogGroup.html (arn)
"""

import json
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_BATCH = "Batch"
_BATCHING = ("sqs", "sns")


def apply(emulator: Emulator) -> None:
    """Use the single action's permission for a batch, and name streams and log groups as policies do."""
    actions = internals("core.iam_actions")
    replace(actions, "extract_iam_action", _by_single_action)
    replace(actions, "extract_iam_action", _by_version)
    replace(actions, "extract_resource_arn", _by_whole_group)
    replace(actions, "extract_resource_arn", _by_stream)


def _by_single_action(extract: Any) -> Any:
    def extract_iam_action(service: str, *arguments: Any) -> str | None:
        action: str | None = extract(service, *arguments)
        return action.removesuffix(_BATCH) if action is not None and service in _BATCHING else action

    return extract_iam_action


def _by_version(extract: Any) -> Any:
    def extract_iam_action(service: str, *arguments: Any) -> str | None:
        action: str | None = extract(service, *arguments)
        method, path, _, body, query = arguments
        if service != "s3" or method != "POST" or "delete" not in query:
            return action
        targets = internals("core.iam_actions")._s3_batch_delete_targets(path.strip("/").partition("/")[0], body)
        return "s3:DeleteObjectVersion" if targets and targets[0][1] else action

    return extract_iam_action


def _by_whole_group(extract: Any) -> Any:
    def extract_resource_arn(service: str, method: str, path: str, headers: Any, *arguments: Any) -> str:
        arn: str = extract(service, method, path, headers, *arguments)
        of_tags = "Tag" in headers.get("x-amz-target", "")
        return f"{arn}:*" if service == "logs" and ":log-group:" in arn and not of_tags else arn

    return extract_resource_arn


def _by_stream(extract: Any) -> Any:
    def extract_resource_arn(service: str, method: str, path: str, headers: Any, body: bytes, *arguments: Any) -> str:
        arn: str = extract(service, method, path, headers, body, *arguments)
        return (_stream_arn(body) or arn) if service == "dynamodbstreams" else arn

    return extract_resource_arn


def _stream_arn(body: bytes) -> str | None:
    try:
        request = json.loads(body or b"{}")
        # An iterator names the stream that it was made for.
        iterator = internals("services.dynamodb_streams")._decode_iterator(request.get("ShardIterator") or "") or {}
        stream_arn: str | None = request.get("StreamArn") or iterator.get("arn")
    except (ValueError, AttributeError):  # it is no JSON, or no object
        return None
    return stream_arn
