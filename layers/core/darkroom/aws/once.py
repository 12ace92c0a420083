"""Work done once, remembered by Powertools idempotency in a DynamoDB table."""

from __future__ import annotations

from collections.abc import Callable
from time import time_ns
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyInconsistentStateError,
    IdempotencyItemAlreadyExistsError,
    IdempotencyPersistenceLayerError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord

from darkroom.domain.errors import Retryable

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext
    from mypy_boto3_dynamodb import DynamoDBClient

REMEMBERED_SECONDS = 15 * 24 * 3600
"""A result outlives every message that may ask for it again: 4 days in a lane and 14 as a dead letter overlap to 14."""


class _ReadBack(DynamoDBPersistenceLayer):
    """Tells a record of one's own, put by an attempt whose answer was lost, from another worker's.

    Otherwise the SDK's repetition of the put finds the work "already in progress", by nobody, until the function's
    deadline: one lost answer would cost the image all the attempts that it makes until then.
    """

    held_until: int | None = None
    """When whoever else holds the record will have run out of time, in milliseconds since 1970."""

    def _put_record(self, data_record: DataRecord) -> None:
        try:
            super()._put_record(data_record)
        except IdempotencyItemAlreadyExistsError as error:
            found = error.old_data_record
            # The deadline, to the millisecond, of the worker that put it. Whoever works on the same key before or after
            # us has another one: he may claim the image only when our lease, which outlasts our deadline, has lapsed.
            ours = data_record.in_progress_expiry_timestamp
            if found is None or found.status != data_record.status or found.in_progress_expiry_timestamp != ours:
                self.held_until = None if found is None else found.in_progress_expiry_timestamp
                raise


class PowertoolsOnce:
    """Keeps the `Once` port for one invocation of a function.

    The invocation's context bounds the lease on unfinished work: a worker that dies leaves it until its own deadline
    (https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/#lambda-timeouts).
    """

    def __init__(self, client: DynamoDBClient, table_name: str, context: LambdaContext) -> None:
        self._layer = _ReadBack(table_name=table_name, boto3_client=client)
        self._config = IdempotencyConfig(
            expires_after_seconds=REMEMBERED_SECONDS, raise_on_no_idempotency_key=True, hash_function="sha256"
        )
        self._config.register_lambda_context(context)

    def __call__(self, key: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        @idempotent_function(
            data_keyword_argument="key",
            persistence_store=self._layer,
            config=self._config,
            key_prefix="transcode_image",
        )
        def remembered(*, key: str) -> dict[str, Any]:
            try:
                made = work()
            except Exception as error:
                ended.append(error)
                raise
            ended.append(made)
            return made

        ended: list[dict[str, Any] | Exception] = []
        try:
            result: dict[str, Any] = remembered(key=key)
        except (
            IdempotencyAlreadyInProgressError,
            IdempotencyInconsistentStateError,
            IdempotencyPersistenceLayerError,
        ) as error:
            # What came of the work is what counts, also where it could not be written down: memory saves work, and an
            # attempt is not lost for it.
            match ended:
                case [Exception() as failure]:
                    raise failure from error
                case [dict() as made]:
                    return made
            cause = error.__cause__
            raise Retryable(
                f"work on {key} cannot be remembered now: {type(error).__name__}",
                retry_after_seconds=cause.retry_after_seconds
                if isinstance(cause, Retryable)
                else _seconds_until(self._layer.held_until),
            ) from error
        return result


def _seconds_until(instant: int | None) -> int:
    """Whole seconds until an instant has passed; 0 where it has, or is not known."""
    return 0 if instant is None else max(0, (instant - time_ns() // 1_000_000) // 1000 + 1)
