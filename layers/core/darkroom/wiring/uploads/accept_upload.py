"""The wiring of `accept_upload`."""

from __future__ import annotations

from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.objects import OriginalsBucket
from darkroom.aws.images.queues import LaneQueues, SqsHoldQueue, SqsUploadQueue
from darkroom.aws.kernel import circuits, clients
from darkroom.aws.uploads.uploads import UploadsBucket
from darkroom.operations.kernel.check_message import CheckPorts
from darkroom.operations.uploads.accept_upload import AcceptUploadPorts
from darkroom.settings import AcceptUploadSettings
from darkroom.wiring.kernel.message_keys import checking_of, message_keys_of, signer_of
from darkroom.wiring.kernel.runtime import clock


def wire() -> tuple[AcceptUploadPorts, CheckPorts, SqsUploadQueue]:
    """The ports of `accept_upload`, from the function's environment, what checks its notifications, and their
    queue."""
    settings = AcceptUploadSettings.read()
    message_keys = message_keys_of(settings)
    signer = signer_of(message_keys)
    dynamodb, s3, sqs = clients.dynamodb_client(), clients.s3_client(), clients.sqs_client()
    ports = AcceptUploadPorts(
        images=ImagesTable(dynamodb, settings.images_table),
        uploads=UploadsBucket(s3, settings.uploads_bucket),
        originals=OriginalsBucket(s3, settings.originals_bucket),
        lanes=LaneQueues(sqs, settings.queue_urls, signer),
        hold_queue=SqsHoldQueue(sqs, settings.hold_queue_url, signer),
        clock=clock,
        require_healthy=circuits.require_all_healthy(
            circuits.of_dynamodb(dynamodb, settings.images_table),
            circuits.of_s3(s3, settings.uploads_bucket, "uploads"),
        ),
        input_formats=settings.input_formats,
    )
    return ports, checking_of(message_keys, settings), SqsUploadQueue(sqs, settings.upload_queue_url, signer)
