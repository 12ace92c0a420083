"""What the edge was told to forget in each month: an item of the table of token buckets, which the edge's own stack
writes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from darkroom.aws.kernel.errors import retryable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from darkroom.domain.kernel.instants import Milliseconds


class EdgeBudgetTable:
    """Implements the `EdgeBudget` port with a DynamoDB table."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name

    def is_spent(self, now: Milliseconds) -> bool:
        month = datetime.fromtimestamp(now / 1000, UTC).strftime("%Y-%m")
        with retryable("reading the edge's budget"):
            answer = self._client.get_item(
                TableName=self._table_name, Key={"tenant_id": {"S": f"edge#invalidations#{month}"}}
            )
        return "skipped" in answer.get("Item", {})
