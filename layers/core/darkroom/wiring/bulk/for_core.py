"""What batches add to functions of the core, which load it by its name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from darkroom.aws.bulk.batches_table import BatchesTable
from darkroom.operations.bulk.join_batch import JoinBatchPorts, has_turn, join_batch
from darkroom.wiring.kernel.runtime import clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from darkroom.ports.images import HasTurn, JoinBatch


def join_batch_of(batches_table: str, dynamodb: DynamoDBClient) -> JoinBatch:
    """Has images join batches."""
    return partial(join_batch, _ports(batches_table, dynamodb))


def has_turn_of(batches_table: str, dynamodb: DynamoDBClient) -> HasTurn:
    """Whether it is an image's turn in its batch."""
    return partial(has_turn, _ports(batches_table, dynamodb))


def _ports(batches_table: str, dynamodb: DynamoDBClient) -> JoinBatchPorts:
    return JoinBatchPorts(batches=BatchesTable(dynamodb, batches_table), clock=clock)
