"""The wiring of `manage_batches`."""

from __future__ import annotations

from darkroom.aws.bulk.batches_table import BatchesTable
from darkroom.aws.kernel import circuits, clients
from darkroom.operations.bulk.manage_batches import ManageBatchesPorts
from darkroom.operations.tenants.take_token import TakeTokenPorts
from darkroom.wiring.bulk.settings import ManageBatchesSettings
from darkroom.wiring.kernel.rate_limit import rate_limit_of
from darkroom.wiring.kernel.recipients import has_recipient_of
from darkroom.wiring.kernel.runtime import clock, randomness


def wire() -> tuple[ManageBatchesPorts, TakeTokenPorts]:
    """The ports of `manage_batches`, from the function's environment, and those of its rate limit."""
    settings = ManageBatchesSettings.read()
    dynamodb = clients.dynamodb_client()
    circuits.of_dynamodb(dynamodb, settings.batches_table, key="place")
    ports = ManageBatchesPorts(
        batches=BatchesTable(dynamodb, settings.batches_table),
        has_recipient=has_recipient_of(settings.endpoints_table, dynamodb),
        clock=clock,
        randomness=randomness,
    )
    return ports, rate_limit_of(dynamodb, settings.token_buckets_table)
