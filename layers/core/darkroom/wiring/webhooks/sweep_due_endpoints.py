"""The wiring of `sweep_due_endpoints`."""

from __future__ import annotations

from darkroom.aws.kernel import clients
from darkroom.aws.tenants.suspensions import Suspensions
from darkroom.aws.tenants.tenants_table import TenantsTable
from darkroom.aws.webhooks.deliveries_table import DeliveriesTable
from darkroom.aws.webhooks.delivery_queue import SqsDeliveryQueue
from darkroom.aws.webhooks.endpoints_table import EndpointsTable
from darkroom.operations.webhooks.sweep_due_endpoints import SweepDueEndpointsPorts
from darkroom.settings import SweepDueImagesSettings
from darkroom.wiring.kernel.message_keys import message_keys_of, signer_of
from darkroom.wiring.kernel.runtime import at_once, clock


def wire() -> SweepDueEndpointsPorts:
    """The ports of `sweep_due_endpoints`, from the environment of the function that sweeps images, too."""
    settings = SweepDueImagesSettings.read()
    dynamodb = clients.dynamodb_client()
    return SweepDueEndpointsPorts(
        endpoints=EndpointsTable(dynamodb, settings.endpoints_table),
        deliveries=DeliveriesTable(dynamodb, settings.deliveries_table),
        delivery_queue=SqsDeliveryQueue(
            clients.sqs_client(), settings.delivery_queue_url, signer_of(message_keys_of(settings))
        ),
        is_suspended=Suspensions(TenantsTable(dynamodb, settings.tenants_table), clock),
        clock=clock,
        at_once=at_once,
    )
