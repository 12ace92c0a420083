"""The token buckets: one item per tenant with recent requests, changed by conditional writes, nearly always one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, retryable
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.tenants import Allowance
from darkroom.domain.tenants.token_bucket import Microseconds, Take, grant, interval_of, latest_tat

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_WRITES = 6
"""Between two writes a full bucket may be used, or a used one become full; not six times in a row."""

_REMEMBERED_TENANTS = 10_000

_FORGET_AFTER_SECONDS = 3600
"""A bucket whose instant has passed is full, which a missing one is too."""


class TokenBucketsTable:
    """Implements the `TokenBuckets` port with a DynamoDB table."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name
        self._stood: dict[str, Microseconds] = {}

    def take(self, name: str, allowance: Allowance, now: Microseconds, wanted: int = 1, needed: int = 1) -> Take:
        interval = interval_of(allowance)
        # Later than any instant that this write can leave behind.
        forget_at = (latest_tat(allowance, now) + interval) // 1_000_000 + _FORGET_AFTER_SECONDS
        # Predicts which of the two writes will succeed: without other knowledge, that of a tenant with few requests.
        stood, is_read = self._stood.get(name), False
        for _ in range(_WRITES):
            tokens = grant(stood, allowance, now, wanted, needed)
            if tokens == 0 and is_read:
                return self._remember(name, Take(tokens=0, tat=stood or now))
            tokens = max(tokens, needed)
            values = {":taken": tokens * interval, ":now": now, ":forget_at": forget_at}
            if stood is not None and stood > now:
                # Concurrent requests all add to it, and none loses a race.
                is_written, stood = self._update(
                    name,
                    "SET tat = tat + :taken, forget_at = :forget_at",
                    "tat > :now AND tat <= :latest",  # guard: allowances-conditional-take
                    values | {":latest": latest_tat(allowance, now, tokens, needed)},
                )
            else:
                is_written, stood = self._update(
                    name,
                    "SET tat = :now + :taken, forget_at = :forget_at",
                    "attribute_not_exists(tat) OR tat <= :now",  # guard: allowances-bucket-start-race
                    values,
                )
            if is_written:
                return self._remember(name, Take(tokens=tokens, tat=stood or now))
            is_read = True
        raise Retryable(f"the bucket {name} changed under every attempt")

    def forget(self, name: str) -> None:
        with retryable("removing a bucket"):
            self._client.delete_item(TableName=self._table_name, Key={"tenant_id": {"S": name}})
        self._stood.pop(name, None)

    def _remember(self, name: str, take: Take) -> Take:
        if len(self._stood) >= _REMEMBERED_TENANTS:
            self._stood.clear()  # what is forgotten costs one more write
        self._stood[name] = take.tat
        return take

    def _update(
        self, name: str, expression: str, condition: str, values: dict[str, int]
    ) -> tuple[bool, Microseconds | None]:
        """Returns whether the condition held, and the instant that is stored now, if any."""
        try:
            with retryable("taking a token"):
                answer = self._client.update_item(
                    TableName=self._table_name,
                    Key={"tenant_id": {"S": name}},
                    UpdateExpression=expression,
                    ConditionExpression=condition,
                    ExpressionAttributeValues={name: {"N": str(value)} for name, value in values.items()},
                    ReturnValues="UPDATED_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            stood = error.response.get("Item", {}).get("tat", {})  # type: ignore[attr-defined]
            return False, int(stood["N"]) if "N" in stood else None  # guard: isolated-token-bucket
        return True, int(answer["Attributes"]["tat"]["N"])
