"""The wiring of `create_deliveries`."""

from __future__ import annotations

from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.kernel import clients
from darkroom.aws.webhooks.deliveries_table import DeliveriesTable
from darkroom.aws.webhooks.delivery_queue import SqsDeliveryQueue
from darkroom.aws.webhooks.endpoints_table import EndpointsTable
from darkroom.operations.kernel.check_message import CheckPorts
from darkroom.operations.webhooks.create_deliveries import CreateDeliveriesPorts
from darkroom.wiring.kernel.message_keys import checking_of, message_keys_of, signer_of
from darkroom.wiring.kernel.runtime import clock
from darkroom.wiring.webhooks.settings import CreateDeliveriesSettings


def wire() -> tuple[CreateDeliveriesPorts, CheckPorts]:
    """The ports of `create_deliveries`, from the function's environment, and what checks its messages."""
    settings = CreateDeliveriesSettings.read()
    message_keys = message_keys_of(settings)
    dynamodb = clients.dynamodb_client()
    ports = CreateDeliveriesPorts(
        images=ImagesTable(dynamodb, settings.images_table),
        endpoints=EndpointsTable(dynamodb, settings.endpoints_table),
        deliveries=DeliveriesTable(dynamodb, settings.deliveries_table),
        delivery_queue=SqsDeliveryQueue(clients.sqs_client(), settings.delivery_queue_url, signer_of(message_keys)),
        clock=clock,
    )
    return ports, checking_of(message_keys, settings)
