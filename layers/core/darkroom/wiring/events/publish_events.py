"""The wiring of `publish_events`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from darkroom.aws.bulk.batches_table import BATCHES
from darkroom.aws.bulk.schedules_table import SCHEDULES
from darkroom.aws.events.events_topic import SnsTopic, SqsUnpublished
from darkroom.aws.events.row_changes import Readers, changes_in
from darkroom.aws.images.images_table import from_item
from darkroom.aws.kernel import clients
from darkroom.aws.webhooks.endpoints_table import ENDPOINTS
from darkroom.domain.images.pictures import EdgeUrls
from darkroom.operations.events.publish_events import PublishEventsPorts
from darkroom.ports.events import RowChange
from darkroom.wiring.events.settings import PublishEventsSettings
from darkroom.wiring.kernel.message_keys import message_keys_of, signer_of


def read_changes(event: Mapping[str, Any]) -> list[RowChange]:
    """The writes of images, endpoints, batches and schedules in a stream's event, as `changes_in` reads them."""
    readers: Readers = {
        "image_id": from_item,
        "endpoint_id": ENDPOINTS.row_of,
        "batch_id": BATCHES.row_of,
        "schedule_id": SCHEDULES.row_of,
    }
    return changes_in(event, readers)


def wire() -> tuple[PublishEventsPorts, Callable[[Mapping[str, Any]], list[RowChange]]]:
    """The ports of `publish_events`, from the function's environment, and what reads the stream's writes."""
    settings = PublishEventsSettings.read()
    signer = signer_of(message_keys_of(settings))

    def topic_of(arn: str) -> SnsTopic:
        return SnsTopic(clients.sns_client(), arn, signer, source=settings.event_source)

    ports = PublishEventsPorts(
        topic=topic_of(settings.events_topic),
        notices=topic_of(settings.notices_topic) if settings.notices_topic else None,
        unpublished=SqsUnpublished(clients.sqs_client(), settings.unpublished_events_url),
        edge=EdgeUrls(base=settings.edge_url),
    )
    return ports, read_changes
