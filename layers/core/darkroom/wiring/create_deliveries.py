"""The wiring of `create_deliveries`."""

from __future__ import annotations

from darkroom.aws import clients
from darkroom.aws.deliveries_table import DeliveriesTable
from darkroom.aws.delivery_queue import SqsDeliveryQueue
from darkroom.aws.endpoints_table import EndpointsTable
from darkroom.operations.create_deliveries import Ports
from darkroom.settings import CreateDeliveriesSettings
from darkroom.wiring.runtime import clock


def wire() -> Ports:
    """The ports of `create_deliveries`, from the function's environment."""
    settings = CreateDeliveriesSettings.read()
    dynamodb = clients.dynamodb_client()
    return Ports(
        endpoints=EndpointsTable(dynamodb, settings.endpoints_table),
        deliveries=DeliveriesTable(dynamodb, settings.deliveries_table),
        delivery_queue=SqsDeliveryQueue(clients.sqs_client(), settings.delivery_queue_url),
        clock=clock,
    )
