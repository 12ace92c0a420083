"""The wiring of `fetch_original`."""

from __future__ import annotations

import random

from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.objects import OriginalsBucket
from darkroom.aws.images.queues import LaneQueues, SqsHoldQueue
from darkroom.aws.imports.bucket_images import BucketImages
from darkroom.aws.kernel import circuits, clients
from darkroom.aws.tenants.tenants_table import TenantsTable
from darkroom.domain.images.media_types import MEDIA_TYPES
from darkroom.egress.images import HttpImages
from darkroom.operations.imports.fetch_original import FetchOriginalPorts
from darkroom.operations.kernel.check_message import CheckPorts
from darkroom.wiring.egress.egress_policy import policy_of
from darkroom.wiring.imports.settings import FetchOriginalSettings
from darkroom.wiring.kernel.message_keys import checking_of, message_keys_of, signer_of
from darkroom.wiring.kernel.runtime import clock


def wire() -> tuple[FetchOriginalPorts, CheckPorts]:
    """The ports of `fetch_original`, from the function's environment, and what checks its messages."""
    settings = FetchOriginalSettings.read()
    message_keys = message_keys_of(settings)
    signer = signer_of(message_keys)
    dynamodb, s3, sqs = clients.dynamodb_client(), clients.s3_client(), clients.sqs_client()
    accepted = [MEDIA_TYPES[input_format] for input_format in settings.input_formats]
    ports = FetchOriginalPorts(
        images=ImagesTable(dynamodb, settings.images_table),
        remote_images=HttpImages(policy_of(settings), accepted=accepted, clock=clock),
        bucket_images=BucketImages(s3),
        tenants=TenantsTable(dynamodb, settings.tenants_table),
        originals=OriginalsBucket(s3, settings.originals_bucket),
        lanes=LaneQueues(sqs, settings.queue_urls, signer),
        hold_queue=SqsHoldQueue(sqs, settings.hold_queue_url, signer),
        clock=clock,
        jitter=random.random,
        require_healthy=circuits.require_all_healthy(
            circuits.of_dynamodb(dynamodb, settings.images_table),
            circuits.of_s3(s3, settings.originals_bucket, "originals"),
        ),
        input_formats=settings.input_formats,
        max_bytes=settings.max_file_bytes,
    )
    return ports, checking_of(message_keys, settings)
