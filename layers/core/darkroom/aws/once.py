"""Remembers finished work, with Powertools idempotency in a DynamoDB table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)

from darkroom.aws.memory_table import PREFIX
from darkroom.ports import MemoryUnavailable

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext
    from mypy_boto3_dynamodb import DynamoDBClient

REMEMBERED_SECONDS = 15 * 24 * 3600
"""A result outlives every message that may ask for it again: 4 days in a lane and 14 as a dead letter overlap to 14."""


class PowertoolsOnce:
    """Implements the `Once` port."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._layer = DynamoDBPersistenceLayer(table_name=table_name, boto3_client=client)
        self._config = IdempotencyConfig(
            expires_after_seconds=REMEMBERED_SECONDS, raise_on_no_idempotency_key=True, hash_function="sha256"
        )

    def register(self, context: LambdaContext) -> None:
        """Bounds the lease on unfinished work by the invocation with that context: a worker that dies keeps it only
        until its own deadline
        (https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/#lambda-timeouts)."""
        self._config.register_lambda_context(context)

    def __call__(self, key: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        @idempotent_function(
            data_keyword_argument="key",
            persistence_store=self._layer,
            config=self._config,
            key_prefix=PREFIX,
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
            return result
        except Exception as error:  # whatever it is: in use, unreachable, denied, or a record that cannot be read
            trouble = error
        # The result of the work is what counts, even if it could not be recorded.
        match ended:
            case [Exception() as failure]:
                raise failure
            case [dict() as made]:
                return made
        raise MemoryUnavailable(f"work on {key} is not remembered: {type(trouble).__name__}") from trouble
