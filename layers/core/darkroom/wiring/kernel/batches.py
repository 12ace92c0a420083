"""Which batches images may join, and whether it is their turn there: none where no bulk work is deployed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from darkroom.ports.images import HasTurn, JoinBatch, has_turn_at_once, join_none
from darkroom.wiring.kernel.parts import BulkForCore, load_part

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from darkroom.domain.images.image import Image


def join_batch_of(batches_table: str, dynamodb: DynamoDBClient) -> JoinBatch:
    """Has images join batches, of the table that a stack without bulk does not name. Loaded for the first that does:
    most uploads name no batch, and a cold start need not wait for it."""
    if not batches_table:  # guard: bulk-off-no-batch
        return join_none

    def join_batch(tenant_id: str, batch_id: str, image_id: str, run: int | None) -> bool:
        return _bulk().join_batch_of(batches_table, dynamodb)(tenant_id, batch_id, image_id, run)

    return join_batch


def has_turn_of(batches_table: str, dynamodb: DynamoDBClient) -> HasTurn:
    """Whether it is an image's turn, by the same table; loaded for the first that awaits one."""
    if not batches_table:  # guard: bulk-off-every-turn
        return has_turn_at_once

    def has_turn(image: Image) -> bool:
        return _bulk().has_turn_of(batches_table, dynamodb)(image)

    return has_turn


def _bulk() -> BulkForCore:
    bulk: BulkForCore = load_part("wiring.bulk.for_core")
    return bulk
