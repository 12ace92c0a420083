"""Remembers finished work, with Powertools idempotency in a DynamoDB table, and writes only what may be asked for."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from darkroom.aws.images.idempotency import (
    STATUS_CONSTANTS,
    BasePersistenceLayer,
    DataRecord,
    IdempotencyConfig,
    IdempotencyItemAlreadyExistsError,
    idempotent_function,
)
from darkroom.aws.images.memory_table import PREFIX, record_id
from darkroom.aws.kernel.errors import retryable
from darkroom.ports.images import IdempotencyUnavailable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

REMEMBERED_SECONDS = 15 * 24 * 3600
"""A result outlives every message that may ask for it again: 4 days in a lane and 14 as a dead letter overlap to 14."""


class _Claimed(BasePersistenceLayer):
    """The records of work whose image is claimed. The claim in the image's row says that the work is in progress, and
    the row's end, which is written next, says that it is done: so neither takes a record, nor a call to AWS."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def save_inprogress(self, data: Any, remaining_time_in_millis: int | None = None) -> None:
        super().save_inprogress(data, remaining_time_in_millis or 0)  # the claim has the lease: none is missing here

    def _put_record(self, data_record: DataRecord) -> None:
        """Nothing: it is the first attempt, so that there is no record to be found."""

    def _get_record(self, idempotency_key: str) -> DataRecord:
        raise NotImplementedError  # Powertools asks for a record only if it was not given the one that exists

    def _update_record(self, data_record: DataRecord) -> None:
        """Nothing: `PowertoolsOnce.keep` writes the record if the row's end could not be written."""

    def _delete_record(self, data_record: DataRecord) -> None:
        """Nothing, as none was put."""


class _ClaimedAgain(_Claimed):
    """The same after an earlier attempt, which may have kept its result."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        super().__init__()
        self._client = client
        self._table_name = table_name

    def _put_record(self, data_record: DataRecord) -> None:
        answer = self._client.get_item(
            TableName=self._table_name, Key={"id": {"S": data_record.idempotency_key}}, ConsistentRead=True
        )
        # An earlier version also put records of work in progress: the worker of such a record has lost the claim.
        # guard: memory-begun-work-ignored
        if (item := answer.get("Item")) is None or item["status"]["S"] == STATUS_CONSTANTS["INPROGRESS"]:
            return
        kept = DataRecord(
            idempotency_key=data_record.idempotency_key,
            status=item["status"]["S"],
            expiry_timestamp=int(item["expiration"]["N"]),
            response_data=item["data"]["S"],
        )
        # guard: memory-expired-ignored
        if not kept.is_expired:  # DynamoDB removes what is expired within days
            raise IdempotencyItemAlreadyExistsError(old_data_record=kept)


class PowertoolsOnce:
    """Implements the `Once` port."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name
        self._first, self._later = _Claimed(), _ClaimedAgain(client, table_name)
        self._config = IdempotencyConfig(raise_on_no_idempotency_key=True, hash_function="sha256")

    def __call__(self, key: str, work: Callable[[], dict[str, Any]], *, is_first: bool) -> dict[str, Any]:
        is_begun = False

        @idempotent_function(
            data_keyword_argument="key",
            persistence_store=self._first if is_first else self._later,  # guard: memory-first-attempt-no-call
            config=self._config,
            key_prefix=PREFIX,
        )
        def remembered(*, key: str) -> dict[str, Any]:
            nonlocal is_begun
            is_begun = True
            return work()

        try:
            result: dict[str, Any] = remembered(key=key)
            return result
        # guard: memory-any-failure-unavailable
        except Exception as trouble:  # whatever it is: unreachable, denied, or a record that cannot be read
            if is_begun:  # guard: memory-work-error-passed-on
                raise
            raise IdempotencyUnavailable(f"work on {key} is not remembered: {type(trouble).__name__}") from trouble

    def keep(self, key: str, result: dict[str, Any]) -> None:
        with retryable("keeping finished work"):
            self._client.put_item(
                TableName=self._table_name,
                Item={
                    "id": {"S": record_id(key)},
                    "status": {"S": STATUS_CONSTANTS["COMPLETED"]},
                    "data": {"S": json.dumps(result)},
                    "expiration": {"N": str(int(time.time()) + REMEMBERED_SECONDS)},
                },
            )
