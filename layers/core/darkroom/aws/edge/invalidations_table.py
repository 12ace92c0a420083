"""The budget of invalidations: an item per month in the core's table of token buckets, whose names begin with `edge#`
for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, retryable
from darkroom.domain.edge.forgetting import Payment
from darkroom.domain.kernel.errors import Retryable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from darkroom.domain.edge.forgetting import Bill

_WRITES = 6
"""Two consumers pay at once at most: neither is in the other's way so often."""

_MAY_PAY = (
    "(attribute_not_exists(used) OR used <= :room)"  # guard: edge-budget-never-exceeded
    " AND (attribute_not_exists(payer) OR payer <> :payer)"  # guard: edge-repetition-not-charged
    " AND attribute_not_exists(image_ids)"  # guard: edge-open-payment-kept
)


class InvalidationsTable:
    """Implements the `Invalidations` port with a DynamoDB table. The month's item has its last payment, and until it is
    settled also the images."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name

    def pay(self, bill: Bill, limit: int) -> Payment:
        paid = bill.image_ids[: max(0, limit)]
        for _ in range(_WRITES):
            if not paid:
                break
            found = self._update(
                bill.month,
                "SET forget_at = :forget_at, payer = :payer, payment = :paid, image_ids = :image_ids ADD used :paid",
                _MAY_PAY,
                {
                    ":forget_at": {"N": str(bill.forget_at)},
                    ":payer": {"S": bill.reference},
                    ":image_ids": {"L": [{"S": image_id} for image_id in paid]},
                    ":paid": {"N": str(len(paid))},
                    ":room": {"N": str(limit - len(paid))},
                },
            )
            if found is None:
                return Payment(month=bill.month, image_ids=paid, reference=bill.reference)
            if "image_ids" in found:
                image_ids = tuple(image_id["S"] for image_id in found["image_ids"]["L"])
                return Payment(month=bill.month, image_ids=image_ids, reference=found["payer"]["S"])
            if found.get("payer", {}).get("S") == bill.reference:  # guard: edge-repetition-paid-once
                image_ids = bill.image_ids[: int(found["payment"]["N"])]
                return Payment(month=bill.month, image_ids=image_ids, reference=bill.reference)
            paid = bill.image_ids[: max(0, limit - int(found["used"]["N"]))]
        if paid:
            raise Retryable("the budget of invalidations changed under every attempt")
        return Payment(month=bill.month, image_ids=(), reference=bill.reference)

    def settle(self, payment: Payment) -> None:
        self._update(
            payment.month,
            "REMOVE image_ids",
            "payer = :payer",  # guard: edge-settles-its-own
            {":payer": {"S": payment.reference}},
        )

    def skip(self, bill: Bill, count: int) -> None:
        self._update(
            bill.month,
            "SET forget_at = :forget_at ADD skipped :count",
            None,
            {":forget_at": {"N": str(bill.forget_at)}, ":count": {"N": str(count)}},
        )

    def _update(
        self, month: str, expression: str, condition: str | None, values: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Changes the month's item; returns what it is instead if the condition fails."""
        conditions: dict[str, Any] = {} if condition is None else {"ConditionExpression": condition}
        try:
            with retryable("paying for invalidations"):
                self._client.update_item(
                    TableName=self._table_name,
                    Key={"tenant_id": {"S": f"edge#invalidations#{month}"}},
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
