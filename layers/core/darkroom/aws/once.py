"""Work done once, remembered by Powertools idempotency in a DynamoDB table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyInconsistentStateError,
    IdempotencyPersistenceLayerError,
)

from darkroom.domain.errors import Retryable

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext
    from mypy_boto3_dynamodb import DynamoDBClient

REMEMBERED_SECONDS = 15 * 24 * 3600
"""A result outlives every message that may ask for it again: 4 days in a lane and 14 as a dead letter overlap to 14."""


class PowertoolsOnce:
    """Keeps the `Once` port for one invocation of a function.

    The invocation's context bounds the lease on unfinished work: a worker that dies leaves it until its own deadline
    (https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/#lambda-timeouts).
    """

    def __init__(self, client: DynamoDBClient, table_name: str, context: LambdaContext) -> None:
        self._layer = DynamoDBPersistenceLayer(table_name=table_name, boto3_client=client)
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
            return work()

        try:
            result: dict[str, Any] = remembered(key=key)
        except (
            IdempotencyAlreadyInProgressError,
            IdempotencyInconsistentStateError,
            IdempotencyPersistenceLayerError,
        ) as error:
            raise Retryable(f"work on {key} cannot be remembered now: {type(error).__name__}") from error
        return result
