"""The wiring of `begin_upload`."""

from __future__ import annotations

from functools import partial

from darkroom.aws import circuits, clients
from darkroom.aws.endpoints_table import EndpointsTable
from darkroom.aws.images_table import ImagesTable
from darkroom.aws.objects import OutputsBucket
from darkroom.aws.uploads import UploadsBucket
from darkroom.operations.begin_upload import Ports
from darkroom.operations.find_recipient import has_recipient
from darkroom.settings import BeginUploadSettings
from darkroom.wiring.edge import Edge, edge_of, load_shedder_of, quota_keeper_of
from darkroom.wiring.runtime import clock, randomness


def wire() -> tuple[Ports, Edge]:
    """The ports of `begin_upload`, from the function's environment, and what its handler needs around it."""
    settings = BeginUploadSettings.read()
    dynamodb, s3 = clients.dynamodb_client(), clients.s3_client()
    ports = Ports(
        images=ImagesTable(dynamodb, settings.images_table),
        has_recipient=partial(has_recipient, EndpointsTable(dynamodb, settings.endpoints_table)),
        uploads=UploadsBucket(s3, settings.uploads_bucket),
        load_shedder=load_shedder_of(settings, dynamodb, clients.sqs_client()),
        quotas=quota_keeper_of(settings, dynamodb),
        clock=clock,
        randomness=randomness,
        max_bytes=settings.max_file_bytes,
    )
    return ports, edge_of(
        settings,
        dynamodb,
        OutputsBucket(s3, settings.outputs_bucket),
        circuits.of_dynamodb(dynamodb, settings.images_table),
    )
