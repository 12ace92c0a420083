"""Who makes which variant, and how many an image has had made: items in the table of token buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, retryable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from darkroom.domain.kernel.instants import Milliseconds

_FORGET_AFTER_SECONDS = 24 * 3600
"""How long after its end a lease is kept: longer than any clock is wrong."""


class VariantLeasesTable:
    """Implements the `VariantLeases` port with a DynamoDB table. No bucket has a name like its items: a tenant's id has
    no `#`, and no policy's begins with `variant`."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name

    def take(self, key: str, owner: str, *, now: Milliseconds, until: Milliseconds) -> bool:
        try:
            with retryable("taking the lease of a variant"):
                self._client.update_item(
                    TableName=self._table_name,
                    Key={"tenant_id": {"S": f"variant_lease#{key}"}},
                    UpdateExpression="SET lease_owner = :owner, lease_until = :until, forget_at = :forget_at",
                    ConditionExpression="attribute_not_exists(lease_until) "
                    "OR lease_until <= :now "  # guard: on-request-lease-lapses
                    "OR lease_owner = :owner",  # guard: on-request-lease-lost-answer
                    ExpressionAttributeValues={
                        ":owner": {"S": owner},
                        ":now": {"N": str(now)},
                        ":until": {"N": str(until)},
                        ":forget_at": {"N": str(until // 1000 + _FORGET_AFTER_SECONDS)},
                    },
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            return False
        return True

    def release(self, key: str, owner: str) -> None:
        try:
            with retryable("giving back the lease of a variant"):
                self._client.delete_item(
                    TableName=self._table_name,
                    Key={"tenant_id": {"S": f"variant_lease#{key}"}},
                    ConditionExpression="lease_owner = :owner",  # guard: on-request-lease-of-another
                    ExpressionAttributeValues={":owner": {"S": owner}},
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise

    def count(self, image_id: str, key: str, *, most: int, forget_at: Milliseconds) -> bool:
        name = key.rpartition("/")[2]
        try:
            with retryable("counting the variants of an image"):
                self._client.update_item(
                    TableName=self._table_name,
                    Key={"tenant_id": {"S": f"variants_of#{image_id}"}},
                    UpdateExpression="ADD variant_names :names SET forget_at = :forget_at",
                    ConditionExpression="attribute_not_exists(variant_names) "
                    "OR size(variant_names) < :most "  # guard: on-request-count
                    "OR contains(variant_names, :name)",  # guard: on-request-counted-once
                    ExpressionAttributeValues={
                        ":names": {"SS": [name]},
                        ":name": {"S": name},
                        ":most": {"N": str(most)},
                        ":forget_at": {"N": str(forget_at // 1000)},
                    },
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            return False
        return True
