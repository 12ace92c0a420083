"""The wiring of `deliver_event`."""

from __future__ import annotations

import random

from darkroom.aws.kernel import clients
from darkroom.aws.kernel.secrets import StoredSecret
from darkroom.aws.tenants.suspensions import Suspensions
from darkroom.aws.tenants.tenants_table import TenantsTable
from darkroom.aws.webhooks.deliveries_table import DeliveriesTable
from darkroom.aws.webhooks.delivery_queue import SqsDeliveryQueue
from darkroom.aws.webhooks.endpoints_table import EndpointsTable
from darkroom.egress.receiver import HttpReceiver
from darkroom.operations.kernel.check_message import CheckPorts
from darkroom.operations.webhooks.deliver_event import DeliverEventPorts
from darkroom.wiring.egress.egress_policy import policy_of
from darkroom.wiring.kernel.message_keys import checking_of, message_keys_of, signer_of
from darkroom.wiring.kernel.runtime import clock
from darkroom.wiring.webhooks.settings import DeliverEventSettings


def wire() -> tuple[DeliverEventPorts, CheckPorts]:
    """The ports of `deliver_event`, from the function's environment, and what checks its messages."""
    settings = DeliverEventSettings.read()
    message_keys = message_keys_of(settings)
    dynamodb = clients.dynamodb_client()
    ports = DeliverEventPorts(
        endpoints=EndpointsTable(dynamodb, settings.endpoints_table),
        deliveries=DeliveriesTable(dynamodb, settings.deliveries_table),
        delivery_queue=SqsDeliveryQueue(clients.sqs_client(), settings.delivery_queue_url, signer_of(message_keys)),
        receiver=HttpReceiver(policy_of(settings), clock=clock),
        master_secret=StoredSecret(clients.secrets_manager_client, settings.webhooks_secret, clock=clock),
        is_suspended=Suspensions(TenantsTable(dynamodb, settings.tenants_table), clock),
        clock=clock,
        jitter=random.random,
    )
    return ports, checking_of(message_keys, settings)
