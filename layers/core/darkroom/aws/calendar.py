"""When each lane is reserved for releases: one item a lane, changed by one conditional write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from darkroom.aws.errors import code_of, retryable
from darkroom.domain.errors import Retryable
from darkroom.domain.instants import Milliseconds

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_TRIES = 5
"""A lane may become free, or busy, between the two writes of one try; five times in a row it does not."""


class ReleaseCalendar:
    """Keeps the `Calendar` port with a DynamoDB table."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name

    def reserve(self, lane: str, *, not_before: Milliseconds, milliseconds: int) -> Milliseconds:
        for _ in range(_TRIES):
            # Many releases may begin in the same second: behind others it is a counter, which nobody loses a race for.
            ends_at = self._update(
                lane, "ADD busy_until :length", "busy_until > :not_before", not_before=not_before, length=milliseconds
            )
            if ends_at is None:
                ends_at = self._update(
                    lane,
                    "SET busy_until = :end",
                    "attribute_not_exists(busy_until) OR busy_until <= :not_before",
                    not_before=not_before,
                    end=not_before + milliseconds,
                )
            if ends_at is not None:
                return ends_at - milliseconds
        raise Retryable(f"the calendar of the lane {lane} changed under every attempt")

    def busy_until(self, lane: str) -> Milliseconds:
        with retryable("reading the calendar"):
            answer = self._client.get_item(TableName=self._table_name, Key={"lane": {"S": lane}}, ConsistentRead=True)
        return int(answer.get("Item", {}).get("busy_until", {}).get("N", "0"))

    def _update(self, lane: str, expression: str, condition: str, **values: int) -> Milliseconds | None:
        """When the lane is free after the update, or None where the condition did not hold."""
        try:
            with retryable("reserving a lane"):
                answer = self._client.update_item(
                    TableName=self._table_name,
                    Key={"lane": {"S": lane}},
                    UpdateExpression=expression,
                    ConditionExpression=condition,
                    ExpressionAttributeValues={f":{name}": {"N": str(value)} for name, value in values.items()},
                    ReturnValues="UPDATED_NEW",
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            return None
        return int(answer["Attributes"]["busy_until"]["N"])
