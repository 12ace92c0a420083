"""The wiring of `manage_webhooks`."""

from __future__ import annotations

from darkroom.aws.kernel import circuits, clients
from darkroom.aws.kernel.secrets import StoredSecret
from darkroom.aws.webhooks.deliveries_table import DeliveriesTable
from darkroom.aws.webhooks.delivery_queue import SqsDeliveryQueue
from darkroom.aws.webhooks.endpoints_table import EndpointsTable
from darkroom.egress import read_url
from darkroom.operations.tenants.take_token import TakeTokenPorts
from darkroom.operations.webhooks.manage_webhooks import ManageWebhooksPorts
from darkroom.wiring.egress.egress_policy import policy_of
from darkroom.wiring.kernel.message_keys import message_keys_of, signer_of
from darkroom.wiring.kernel.rate_limit import rate_limit_of
from darkroom.wiring.kernel.runtime import clock, randomness
from darkroom.wiring.webhooks.settings import ManageWebhooksSettings


def wire() -> tuple[ManageWebhooksPorts, TakeTokenPorts]:
    """The ports of `manage_webhooks`, from the function's environment, and those of its rate limit."""
    settings = ManageWebhooksSettings.read()
    policy = policy_of(settings)
    dynamodb = clients.dynamodb_client()
    circuits.of_dynamodb(dynamodb, settings.endpoints_table, key="tenant_id")

    def check_url(url: str) -> None:
        read_url(url, policy)

    ports = ManageWebhooksPorts(
        endpoints=EndpointsTable(dynamodb, settings.endpoints_table),
        deliveries=DeliveriesTable(dynamodb, settings.deliveries_table),
        delivery_queue=SqsDeliveryQueue(
            clients.sqs_client(), settings.delivery_queue_url, signer_of(message_keys_of(settings))
        ),
        master_secret=StoredSecret(clients.secrets_manager_client, settings.webhooks_secret, clock=clock),
        check_url=check_url,
        source=settings.event_source,
        clock=clock,
        randomness=randomness,
    )
    return ports, rate_limit_of(dynamodb, settings.token_buckets_table)
