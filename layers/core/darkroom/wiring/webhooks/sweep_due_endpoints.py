"""The wiring of `sweep_due_endpoints`."""

from __future__ import annotations

from darkroom.aws.dead_letters.dead_letters import DeadLetterQueues
from darkroom.aws.events.followers import FollowersQueues
from darkroom.aws.kernel import clients
from darkroom.aws.tenants.suspensions import Suspensions
from darkroom.aws.tenants.tenants_table import TenantsTable
from darkroom.aws.webhooks.deliveries_table import DeliveriesTable
from darkroom.aws.webhooks.delivery_queue import SqsDeliveryQueue
from darkroom.aws.webhooks.endpoints_table import EndpointsTable
from darkroom.operations.webhooks.sweep_due_endpoints import SweepDueEndpointsPorts
from darkroom.ports.dead_letters import DeadLetters
from darkroom.ports.events import Followers
from darkroom.wiring.kernel.message_keys import message_keys_of, signer_of
from darkroom.wiring.kernel.runtime import at_once, clock
from darkroom.wiring.webhooks.settings import SweepDueEndpointsSettings


def wire() -> tuple[SweepDueEndpointsPorts, DeadLetters, Followers]:
    """The ports of `sweep_due_endpoints`, from the function's environment, the dead letters of events, and those who
    follow the events."""
    settings = SweepDueEndpointsSettings.read()
    dynamodb, sqs = clients.dynamodb_client(), clients.sqs_client()
    ports = SweepDueEndpointsPorts(
        endpoints=EndpointsTable(dynamodb, settings.endpoints_table),
        deliveries=DeliveriesTable(dynamodb, settings.deliveries_table),
        delivery_queue=SqsDeliveryQueue(sqs, settings.delivery_queue_url, signer_of(message_keys_of(settings))),
        is_suspended=Suspensions(TenantsTable(dynamodb, settings.tenants_table), clock),
        clock=clock,
        at_once=at_once,
    )
    event_dead_letters = DeadLetterQueues(sqs, clients.sqs_client_without_retries(), settings.event_dead_letter_queues)
    return ports, event_dead_letters, FollowersQueues(clients.sns_client(), sqs, settings.events_topic)
