"""The wiring of every look at a batch."""

from __future__ import annotations

from darkroom.aws.bulk.batches_table import BatchesTable
from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.queues import LaneQueues
from darkroom.aws.kernel import clients
from darkroom.operations.bulk.settle_batch import SettleBatchPorts
from darkroom.wiring.bulk.settings import CountBatchesSettings
from darkroom.wiring.kernel.message_keys import message_keys_of, signer_of
from darkroom.wiring.kernel.runtime import clock


def ports_of(settings: CountBatchesSettings) -> SettleBatchPorts:
    """The ports of a look at a batch."""
    dynamodb, sqs = clients.dynamodb_client(), clients.sqs_client()
    return SettleBatchPorts(
        batches=BatchesTable(dynamodb, settings.batches_table),
        images=ImagesTable(dynamodb, settings.images_table),
        lanes=LaneQueues(sqs, settings.queue_urls, signer_of(message_keys_of(settings))),
        clock=clock,
    )
