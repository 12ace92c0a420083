"""The settings of the functions of webhooks."""

from __future__ import annotations

from collections.abc import Mapping

from darkroom.settings import ConsumerSettings, DeadLetterSettings, MessageKeySettings, ReachSettings, pairs, setting


class DeliverySettings(MessageKeySettings):
    """Where endpoints and their deliveries are, for those who send to the queue of deliveries."""

    endpoints_table: str
    deliveries_table: str
    delivery_queue_url: str


class SweepDueEndpointsSettings(DeliverySettings):
    """What `sweep_due_endpoints` needs; `event_dead_letter_queues` are those of events and of what is made of them."""

    tenants_table: str
    events_topic: str
    event_dead_letter_queues: Mapping[str, str] = setting(pairs)


class CreateDeliveriesSettings(DeliverySettings, ConsumerSettings):
    """The settings of `create_deliveries`."""

    images_table: str


class DeliverEventSettings(DeliverySettings, ReachSettings, DeadLetterSettings):
    """The settings of `deliver_event`."""

    tenants_table: str
    webhooks_secret: str


class ManageWebhooksSettings(DeliverySettings, ReachSettings):
    """What `manage_webhooks` needs; `webhooks_secret` is the ARN of the secret from which those of webhooks come, and
    `event_source` names this stack."""

    webhooks_secret: str
    event_source: str
    token_buckets_table: str
