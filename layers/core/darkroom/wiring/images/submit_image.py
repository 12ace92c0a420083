"""The wiring of `submit_image`."""

from __future__ import annotations

from typing import Any

from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.objects import OriginalsBucket, OutputsBucket
from darkroom.aws.images.queues import LaneQueues, SqsEditQueue, SqsFetchQueue, SqsHoldQueue
from darkroom.aws.kernel import circuits, clients
from darkroom.operations.images.add_variants import AddVariantsPorts
from darkroom.operations.images.edit_image import EditImagePorts
from darkroom.operations.images.submit_image import SubmitImagePorts
from darkroom.settings import SubmitImageSettings
from darkroom.wiring.kernel.api_dependencies import (
    Edge,
    edge_of,
    load_shedder_of,
    quota_keeper_of,
    upload_token_uses_of,
)
from darkroom.wiring.kernel.batches import join_batch_of
from darkroom.wiring.kernel.message_keys import message_keys_of, signer_of
from darkroom.wiring.kernel.parts import ImportsForCore, load_part
from darkroom.wiring.kernel.recipients import has_recipient_of
from darkroom.wiring.kernel.runtime import clock, randomness


def wire() -> tuple[SubmitImagePorts, EditImagePorts, Any, Edge]:
    """The ports of `submit_image`, of what changes an image that is there, and of imports, or None in a stack that does
    not fetch, from the function's environment, and what its handler needs around them."""
    settings = SubmitImageSettings.read()
    signer = signer_of(message_keys_of(settings))
    dynamodb, s3, sqs = clients.dynamodb_client(), clients.s3_client(), clients.sqs_client()
    ports = SubmitImagePorts(
        images=ImagesTable(dynamodb, settings.images_table),
        has_recipient=has_recipient_of(settings.endpoints_table, dynamodb),
        join_batch=join_batch_of(settings.batches_table, dynamodb),
        originals=OriginalsBucket(s3, settings.originals_bucket),
        lanes=LaneQueues(sqs, settings.queue_urls, signer),
        hold_queue=SqsHoldQueue(sqs, settings.hold_queue_url, signer),
        load_shedder=load_shedder_of(settings, dynamodb, sqs),
        quotas=quota_keeper_of(settings, dynamodb),
        upload_token_uses=upload_token_uses_of(settings, dynamodb),
        clock=clock,
        randomness=randomness,
        input_formats=settings.input_formats,
        delivers=bool(settings.edge_url),
    )
    change_ports = EditImagePorts(
        **{name: getattr(ports, name) for name in AddVariantsPorts.__dataclass_fields__},
        edit_queue=SqsEditQueue(sqs, settings.edits_queue_url, signer) if settings.edits_queue_url else None,
    )
    edge = edge_of(
        settings,
        dynamodb,
        OutputsBucket(s3, settings.outputs_bucket),
        circuits.of_dynamodb(dynamodb, settings.images_table),
        circuits.of_s3(s3, settings.outputs_bucket),
    )
    if not settings.fetch_queue_url:
        return ports, change_ports, None, edge
    imports: ImportsForCore = load_part("wiring.imports.for_core")
    fetch_queue = SqsFetchQueue(sqs, settings.fetch_queue_url, signer)
    return ports, change_ports, imports.begin_fetch_ports(settings, ports, fetch_queue), edge
