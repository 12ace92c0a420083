"""The wiring of `begin_upload`."""

from __future__ import annotations

from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.objects import OutputsBucket
from darkroom.aws.images.queues import SqsUploadQueue
from darkroom.aws.kernel import circuits, clients
from darkroom.aws.uploads.uploads import UploadsBucket
from darkroom.operations.uploads.begin_upload import BeginUploadPorts
from darkroom.operations.uploads.confirm_upload import ConfirmUploadPorts
from darkroom.operations.uploads.create_upload_token import CreateUploadTokenPorts
from darkroom.settings import BeginUploadSettings
from darkroom.wiring.kernel.api_dependencies import (
    Edge,
    edge_of,
    load_shedder_of,
    quota_keeper_of,
    upload_token_uses_of,
)
from darkroom.wiring.kernel.batches import join_batch_of
from darkroom.wiring.kernel.message_keys import message_keys_of, signer_of
from darkroom.wiring.kernel.recipients import has_recipient_of
from darkroom.wiring.kernel.runtime import clock, randomness


def wire() -> tuple[BeginUploadPorts, CreateUploadTokenPorts, Edge]:
    """The ports of `begin_upload` and of `create_upload_token`, from the function's environment, and what its handler
    needs around them."""
    settings = BeginUploadSettings.read()
    dynamodb, s3 = clients.dynamodb_client(), clients.s3_client()
    ports = BeginUploadPorts(
        images=ImagesTable(dynamodb, settings.images_table),
        has_recipient=has_recipient_of(settings.endpoints_table, dynamodb),
        join_batch=join_batch_of(settings.batches_table, dynamodb),
        uploads=UploadsBucket(s3, settings.uploads_bucket),
        load_shedder=load_shedder_of(settings, dynamodb, clients.sqs_client()),
        quotas=quota_keeper_of(settings, dynamodb),
        upload_token_uses=upload_token_uses_of(settings, dynamodb),
        clock=clock,
        randomness=randomness,
        max_bytes=settings.max_file_bytes,
        delivers=bool(settings.edge_url),
    )
    tokens_ports = CreateUploadTokenPorts(
        images=ports.images,
        has_recipient=ports.has_recipient,
        message_keys=message_keys_of(settings),
        clock=clock,
        randomness=randomness,
        max_bytes=settings.max_file_bytes,
        delivers=ports.delivers,
    )
    edge = edge_of(
        settings,
        dynamodb,
        OutputsBucket(s3, settings.outputs_bucket),
        circuits.of_dynamodb(dynamodb, settings.images_table),
    )
    return ports, tokens_ports, edge


def wire_confirmation() -> ConfirmUploadPorts:
    """The ports of `confirm_upload`, from the function's environment."""
    settings = BeginUploadSettings.read()
    signer = signer_of(message_keys_of(settings))
    return ConfirmUploadPorts(
        images=ImagesTable(clients.dynamodb_client(), settings.images_table),
        uploads=UploadsBucket(clients.s3_client(), settings.uploads_bucket),
        upload_queue=SqsUploadQueue(clients.sqs_client(), settings.upload_queue_url, signer),
    )
