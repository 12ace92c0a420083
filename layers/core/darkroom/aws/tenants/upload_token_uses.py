"""How often each upload token was used: one item per token, in the table of token buckets, until after it expires."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, retryable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from darkroom.domain.tenants.upload_tokens import UploadToken

_FORGET_AFTER_SECONDS = 24 * 3600
"""How long after its token an item is kept: longer than any clock is wrong."""


class UploadTokenUsesTable:
    """Implements the `UploadTokenUses` port with a DynamoDB table.

    The ids of its images are in the item, and not only their number, so that whoever writes again, the SDK after a lost
    answer or a client its request, counts once; and one write needs no transaction, of which many at once on one item
    would cancel each other.
    """

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name

    def use(self, token: UploadToken, image_id: str) -> bool:
        try:
            with retryable("counting the use of an upload token"):
                self._client.update_item(
                    TableName=self._table_name,
                    Key={"tenant_id": {"S": f"upload_token#{token.token_id}"}},  # no bucket's: it ends with no policy
                    UpdateExpression="ADD image_ids :ids SET forget_at = :forget_at",
                    ConditionExpression="attribute_not_exists(image_ids) "
                    "OR size(image_ids) < :count "  # guard: upload-token-count
                    "OR contains(image_ids, :id)",  # guard: upload-token-counts-image-once
                    ExpressionAttributeValues={
                        ":ids": {"SS": [image_id]},
                        ":id": {"S": image_id},
                        ":count": {"N": str(token.count)},
                        ":forget_at": {"N": str(token.expires_at // 1000 + _FORGET_AFTER_SECONDS)},
                    },
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            return False
        return True
