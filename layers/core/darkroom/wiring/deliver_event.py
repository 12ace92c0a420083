"""The wiring of `deliver_event`."""

from __future__ import annotations

import random

from darkroom.aws import clients
from darkroom.aws.deliveries_table import DeliveriesTable
from darkroom.aws.delivery_queue import SqsDeliveryQueue
from darkroom.aws.endpoints_table import EndpointsTable
from darkroom.aws.secrets import StoredSecret
from darkroom.aws.suspensions import Suspensions
from darkroom.aws.tenants_table import TenantsTable
from darkroom.egress.receiver import HttpReceiver
from darkroom.operations.check_message import CheckPorts
from darkroom.operations.deliver_event import Ports
from darkroom.settings import DeliverEventSettings
from darkroom.wiring.message_keys import checking_of, message_keys_of, signer_of
from darkroom.wiring.reach import policy_of
from darkroom.wiring.runtime import clock


def wire() -> tuple[Ports, CheckPorts]:
    """The ports of `deliver_event`, from the function's environment, and what checks its messages."""
    settings = DeliverEventSettings.read()
    message_keys = message_keys_of(settings)
    dynamodb = clients.dynamodb_client()
    ports = Ports(
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
