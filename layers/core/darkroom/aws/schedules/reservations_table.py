"""The times that releases have reserved in each lane: one item per lane, changed by one conditional write, and one per
large batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, retryable
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.schedules.hold import ReleaseWindow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

_TRIES = 5
"""A lane may become free, or busy, between the two writes of one try; not five times in a row."""

_FORGET_AFTER_SECONDS = 30 * 24 * 3600
"""A failed release is retried for hours, and by an operator for as long as its dead letter lives: 14 days."""


class ReservationsTable:
    """Implements the `Reservations` port with a DynamoDB table."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name

    def reserve(self, lane: str, *, not_before: Milliseconds, milliseconds: int) -> Milliseconds:
        for _ in range(_TRIES):
            # Many releases may begin in the same second: while a lane is busy this is a counter, on which no write
            # loses a race.
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
        raise Retryable(f"the reservations of the lane {lane} changed under every attempt")

    def busy_until(self, lane: str) -> Milliseconds:
        with retryable("reading the reservations"):
            answer = self._client.get_item(TableName=self._table_name, Key={"lane": {"S": lane}}, ConsistentRead=True)
        return int(answer.get("Item", {}).get("busy_until", {}).get("N", "0"))

    def note_window(self, key: str, window: ReleaseWindow) -> None:
        item: dict[str, AttributeValueTypeDef] = {
            "lane": {"S": key},  # no lane has a name like a batch's
            "position": {"N": str(window.position)},
            "begins_at": {"N": str(window.begins_at)},
            "is_of_all_left": {"BOOL": window.is_of_all_left},
            "forget_at": {"N": str(window.begins_at // 1000 + _FORGET_AFTER_SECONDS)},
        }
        with retryable("noting a release's window"):
            self._client.put_item(TableName=self._table_name, Item=item)

    def window_of(self, key: str) -> ReleaseWindow | None:
        with retryable("reading a release's window"):
            answer = self._client.get_item(TableName=self._table_name, Key={"lane": {"S": key}}, ConsistentRead=True)
        item = answer.get("Item")
        if item is None:
            return None
        return ReleaseWindow(
            position=int(item["position"]["N"]),
            begins_at=int(item["begins_at"]["N"]),
            is_of_all_left=item["is_of_all_left"]["BOOL"],
        )

    def _update(self, lane: str, expression: str, condition: str, **values: int) -> Milliseconds | None:
        """When the lane is free after the update, or None if the condition did not hold."""
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
