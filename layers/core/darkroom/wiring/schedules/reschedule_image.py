"""The wiring of `reschedule_image` and `change_visibility`."""

from __future__ import annotations

from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.objects import OutputsBucket
from darkroom.aws.images.queues import LaneQueues, SqsHoldQueue
from darkroom.aws.kernel import circuits, clients
from darkroom.operations.images.change_visibility import ChangeVisibilityPorts
from darkroom.operations.schedules.reschedule_image import RescheduleImagePorts
from darkroom.settings import RescheduleImageSettings
from darkroom.wiring.kernel.api_dependencies import Edge, edge_of, load_shedder_of
from darkroom.wiring.kernel.message_keys import message_keys_of, signer_of
from darkroom.wiring.kernel.runtime import clock


def wire() -> tuple[RescheduleImagePorts, ChangeVisibilityPorts, Edge]:
    """The ports of both, from the function's environment, and what its handler needs around them."""
    settings = RescheduleImageSettings.read()
    signer = signer_of(message_keys_of(settings))
    dynamodb, sqs = clients.dynamodb_client(), clients.sqs_client()
    ports = RescheduleImagePorts(
        images=ImagesTable(dynamodb, settings.images_table),
        lanes=LaneQueues(sqs, settings.queue_urls, signer),
        hold_queue=SqsHoldQueue(sqs, settings.hold_queue_url, signer),
        load_shedder=load_shedder_of(settings, dynamodb, sqs),
        clock=clock,
    )
    outputs = OutputsBucket(clients.s3_client(), settings.outputs_bucket)
    visibility_ports = ChangeVisibilityPorts(
        images=ports.images,
        lanes=ports.lanes,
        load_shedder=ports.load_shedder,
        clock=clock,
        delivers=bool(settings.edge_url),
    )
    edge = edge_of(settings, dynamodb, outputs, circuits.of_dynamodb(dynamodb, settings.images_table))
    return ports, visibility_ports, edge
