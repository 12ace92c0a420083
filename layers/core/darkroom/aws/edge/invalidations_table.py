"""The budget of invalidations: an item per month in the core's table of token buckets, whose names begin with `edge#`
for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, retryable
from darkroom.domain.kernel.errors import Retryable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from darkroom.domain.edge.forgetting import Bill

_WRITES = 6
"""Two consumers pay at once at most: neither is in the other's way so often."""


class InvalidationsTable:
    """Implements the `Invalidations` port with a DynamoDB table."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name

    def pay(self, bill: Bill, limit: int) -> int:
        paid = min(bill.wanted, limit)
        for _ in range(_WRITES):
            if paid <= 0:
                return 0
            found = self._update(
                bill,
                "SET forget_at = :forget_at, payer = :payer, payment = :paid ADD used :paid",
                # guard: edge-budget-never-exceeded
                "(attribute_not_exists(used) OR used <= :room) AND (attribute_not_exists(payer) OR payer <> :payer)",
                {
                    ":forget_at": {"N": str(bill.forget_at)},
                    ":payer": {"S": bill.reference},
                    ":paid": {"N": str(paid)},
                    ":room": {"N": str(limit - paid)},
                },
            )
            if found is None:
                return paid
            if found.get("payer", {}).get("S") == bill.reference:  # guard: edge-repetition-paid-once
                return int(found["payment"]["N"])
            paid = min(bill.wanted, limit - int(found["used"]["N"]))
        raise Retryable("the budget of invalidations changed under every attempt")

    def pay_back(self, bill: Bill) -> None:
        self._update(
            bill,
            "SET used = used - payment REMOVE payer, payment",
            "payer = :payer",  # guard: edge-pays-back-once
            {":payer": {"S": bill.reference}},
        )

    def skip(self, bill: Bill, count: int) -> None:
        self._update(
            bill,
            "SET forget_at = :forget_at ADD skipped :count",
            None,
            {":forget_at": {"N": str(bill.forget_at)}, ":count": {"N": str(count)}},
        )

    def _update(
        self, bill: Bill, expression: str, condition: str | None, values: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Changes the month's item; returns what it is instead if the condition fails."""
        conditions: dict[str, Any] = {} if condition is None else {"ConditionExpression": condition}
        try:
            with retryable("paying for invalidations"):
                self._client.update_item(
                    TableName=self._table_name,
                    Key={"tenant_id": {"S": f"edge#invalidations#{bill.month}"}},
                    UpdateExpression=expression,
                    ExpressionAttributeValues=values,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **conditions,
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            found: Any = error.response.get("Item", {})
            return dict(found)
        return None
