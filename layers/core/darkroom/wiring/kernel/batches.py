"""Which batches images may join, and whether it is their turn there: none where no bulk work is deployed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from darkroom.ports.images import HasTurn, JoinBatch, has_turn_at_once, join_none
from darkroom.wiring.kernel.parts import BulkForCore, load_part

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def join_batch_of(batches_table: str, dynamodb: DynamoDBClient) -> JoinBatch:
    """Has images join batches, of the table that a stack without bulk does not name."""
    if not batches_table:  # guard: bulk-off-no-batch
        return join_none
    bulk: BulkForCore = load_part("wiring.bulk.for_core")
    return bulk.join_batch_of(batches_table, dynamodb)


def has_turn_of(batches_table: str, dynamodb: DynamoDBClient) -> HasTurn:
    """Whether it is an image's turn, by the same table. Loaded for the first image that awaits one."""
    if not batches_table:  # guard: bulk-off-every-turn
        return has_turn_at_once
    bulk: BulkForCore = load_part("wiring.bulk.for_core")
    return bulk.has_turn_of(batches_table, dynamodb)
