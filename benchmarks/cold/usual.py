"""A function as most are, which does nothing yet: what a cold start is compared with. Leave it as it is, or figures of
before the edit cannot be compared with later ones."""

from __future__ import annotations

from typing import Any

import boto3
from aws_lambda_powertools import Logger, Metrics, Tracer  # noqa: F401 -- making a Tracer needs the X-Ray SDK
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from aws_lambda_powertools.utilities.typing import LambdaContext

logger, metrics = Logger(), Metrics()
s3, sqs, dynamodb = boto3.client("s3"), boto3.client("sqs"), boto3.client("dynamodb")
processor = BatchProcessor(event_type=EventType.SQS)
memory = DynamoDBPersistenceLayer(table_name="memory", boto3_client=dynamodb)


@idempotent_function(  # type: ignore[untyped-decorator]
    data_keyword_argument="record", persistence_store=memory, config=IdempotencyConfig()
)
def settle(record: Any) -> None:
    """Does nothing with a message."""


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """Does nothing with a batch."""
    return process_partial_response(event=event, record_handler=settle, processor=processor, context=context)
