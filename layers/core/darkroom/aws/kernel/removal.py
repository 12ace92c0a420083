"""Removes objects by the thousand, of which each is confirmed or fails by itself, and items of tables in batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import batched
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import pages_of, retryable
from darkroom.domain.kernel.errors import Retryable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

MOST_OBJECTS = 1000  # guard: removal-objects-per-call
"""How many objects one call removes (https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html)."""

_BATCH_WRITES = 25  # guard: removal-items-per-batch
"""How many items one call writes
(https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html)."""

_TRIES = 4
"""How often items that a batch left out are written again."""

_OF_THE_SERVICE = {"InternalError": 500, "ServiceUnavailable": 503, "SlowDown": 503}
"""S3's error codes for one object in a batch answer that is 200 as a whole, and the statuses that they have
elsewhere."""

type Target = tuple[str, str]
"""An object's key, and its version; "" for an object in a bucket without versions."""


def remove_objects(
    client: S3Client, bucket_name: str, targets: Sequence[Target], doing: str
) -> Mapping[Target, Exception]:
    """Removes the objects; returns, by target, those that may still be there: each with Retryable, or with the error
    that refused it. A missing object is not an error."""
    failures: dict[Target, Exception] = {}
    for some in batched(dict.fromkeys(targets), MOST_OBJECTS, strict=False):
        try:
            failures |= _remove(client, bucket_name, some, doing)
        except Exception as error:
            failures |= dict.fromkeys(some, error)
    return failures


def _remove(client: S3Client, bucket_name: str, targets: Sequence[Target], doing: str) -> dict[Target, Exception]:
    objects: Any = [{"Key": key} | ({"VersionId": version} if version else {}) for key, version in targets]
    with retryable(doing):
        answer: Any = client.delete_objects(Bucket=bucket_name, Delete={"Objects": objects})
    gone = {(deleted["Key"], deleted.get("VersionId", "")) for deleted in answer.get("Deleted", ())}
    refused = {(error["Key"], error.get("VersionId", "")): error for error in answer.get("Errors", ())}
    unsaid = {"Code": "ServiceUnavailable", "Message": "the answer does not say what became of it"}
    # What is not confirmed may still be there.
    # guard: removal-unconfirmed-kept
    return {target: failure_of(refused.get(target, unsaid), doing) for target in targets if target not in gone}


def failure_of(error: Any, doing: str) -> Exception:
    """What S3 says of one object in a batch's answer, as the exception that the call for it alone would have raised."""
    status = _OF_THE_SERVICE.get(error.get("Code", ""), 200)
    refusal: Any = {"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}}
    try:
        with retryable(doing):
            raise ClientError(refusal, "DeleteObjects")
    except (ClientError, Retryable) as failure:
        return failure


def remove_items(client: DynamoDBClient, table_name: str, keys: Iterable[Any], doing: str) -> int:
    """Removes the items with these keys, of which none may come twice (a batch that names one twice is refused);
    returns how many. A missing item is not an error. Raises Retryable."""
    removed = 0
    for some in batched(keys, _BATCH_WRITES, strict=False):
        left: Any = [{"DeleteRequest": {"Key": key}} for key in some]
        for _ in range(_TRIES):
            with retryable(doing):
                answer = client.batch_write_item(RequestItems={table_name: left})
            # A batch may be written only in part, with a 200.
            left = answer.get("UnprocessedItems", {}).get(table_name)
            if not left:  # guard: removal-unprocessed-retried
                break
        else:
            raise Retryable(f"{doing}: some was left out each time")
        removed += len(some)
    return removed


def remove_partition(
    client: DynamoDBClient, table_name: str, partition: tuple[str, str], sort_key: str, doing: str
) -> int:
    """Removes all items of a partition, which is named by its key and value; returns how many. Raises Retryable."""
    name, value = partition
    pages: Any = client.get_paginator("query").paginate(
        TableName=table_name,
        KeyConditionExpression="#partition = :partition",
        ExpressionAttributeValues={":partition": {"S": value}},
        ProjectionExpression="#partition, #sort",
        ExpressionAttributeNames={"#partition": name, "#sort": sort_key},
        ConsistentRead=True,
    )
    keys = (item for page in pages_of(pages, doing) for item in page["Items"])
    return remove_items(client, table_name, keys, doing)
