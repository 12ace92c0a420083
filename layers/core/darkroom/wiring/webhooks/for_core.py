"""What webhooks add to functions of the core, which load it by its name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from darkroom.aws.webhooks.deliveries_table import DeliveriesTable
from darkroom.aws.webhooks.endpoints_table import EndpointsTable
from darkroom.operations.webhooks.blank_deliveries import blank_deliveries
from darkroom.operations.webhooks.find_recipient import has_recipient
from darkroom.wiring.kernel.runtime import clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from darkroom.ports.images import HasRecipient


def has_recipient_of(endpoints_table: str, dynamodb: DynamoDBClient) -> HasRecipient:
    """Whether a webhook of that id can be told."""
    return partial(has_recipient, EndpointsTable(dynamodb, endpoints_table))


def blank_deliveries_of(deliveries_table: str, dynamodb: DynamoDBClient, image_id: str) -> bool:
    """Blanks what the deliveries of an image say of it; returns whether these are all."""
    return blank_deliveries(DeliveriesTable(dynamodb, deliveries_table), image_id, now=clock())
