"""The wiring of `release_images`."""

from __future__ import annotations

from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.queues import LaneQueues, SqsHoldQueue
from darkroom.aws.kernel import clients
from darkroom.aws.schedules.holds import HoldsBucket
from darkroom.aws.schedules.reservations_table import ReservationsTable
from darkroom.operations.schedules.release_images import ReleaseImagesPorts
from darkroom.settings import ReleaseImagesSettings
from darkroom.wiring.kernel.message_keys import message_keys_of, signer_of
from darkroom.wiring.kernel.runtime import clock


def wire() -> ReleaseImagesPorts:
    """The ports of `release_images`, from the function's environment."""
    settings = ReleaseImagesSettings.read()
    signer = signer_of(message_keys_of(settings))
    dynamodb, sqs = clients.dynamodb_client(), clients.sqs_client()
    return ReleaseImagesPorts(
        images=ImagesTable(dynamodb, settings.images_table),
        lanes=LaneQueues(sqs, settings.queue_urls, signer),
        hold_queue=SqsHoldQueue(sqs, settings.hold_queue_url, signer),
        holds=HoldsBucket(clients.s3_client(), settings.holds_bucket),
        reservations=ReservationsTable(dynamodb, settings.reservations_table),
        clock=clock,
        service=settings.service,
    )
