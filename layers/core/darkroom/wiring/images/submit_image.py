"""The wiring of `submit_image`."""

from __future__ import annotations

from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.objects import OriginalsBucket, OutputsBucket
from darkroom.aws.images.queues import LaneQueues, SqsFetchQueue, SqsHoldQueue
from darkroom.aws.kernel import circuits, clients
from darkroom.domain.imports.fetch import MAX_SOURCE_URL_LENGTH
from darkroom.operations.images.submit_image import SubmitImagePorts
from darkroom.operations.imports.begin_fetch import BeginFetchPorts
from darkroom.settings import SubmitImageSettings
from darkroom.wiring.kernel.api_dependencies import Edge, edge_of, load_shedder_of, quota_keeper_of
from darkroom.wiring.kernel.message_keys import message_keys_of, signer_of
from darkroom.wiring.kernel.recipients import has_recipient_of
from darkroom.wiring.kernel.runtime import clock, randomness


def wire() -> tuple[SubmitImagePorts, BeginFetchPorts | None, Edge]:
    """The ports of `submit_image` and, in a stack that fetches, of `begin_fetch`, from the function's environment, and
    what its handler needs around them."""
    settings = SubmitImageSettings.read()
    signer = signer_of(message_keys_of(settings))
    dynamodb, s3, sqs = clients.dynamodb_client(), clients.s3_client(), clients.sqs_client()
    ports = SubmitImagePorts(
        images=ImagesTable(dynamodb, settings.images_table),
        has_recipient=has_recipient_of(settings.endpoints_table, dynamodb),
        originals=OriginalsBucket(s3, settings.originals_bucket),
        lanes=LaneQueues(sqs, settings.queue_urls, signer),
        hold_queue=SqsHoldQueue(sqs, settings.hold_queue_url, signer),
        load_shedder=load_shedder_of(settings, dynamodb, sqs),
        quotas=quota_keeper_of(settings, dynamodb),
        clock=clock,
        randomness=randomness,
        input_formats=settings.input_formats,
    )

    edge = edge_of(
        settings,
        dynamodb,
        OutputsBucket(s3, settings.outputs_bucket),
        circuits.of_dynamodb(dynamodb, settings.images_table),
        circuits.of_s3(s3, settings.outputs_bucket),
    )
    if not settings.fetch_queue_url:
        return ports, None, edge

    def check_url(url: str) -> None:
        # Few requests have a URL, and all others would pay for how one is read.
        from darkroom.egress import read_url  # noqa: PLC0415
        from darkroom.wiring.kernel.egress_policy import policy_of  # noqa: PLC0415

        read_url(url, policy_of(settings), max_length=MAX_SOURCE_URL_LENGTH)  # guard: egress-given-source-url-length

    fetch_ports = BeginFetchPorts(
        images=ports.images,
        has_recipient=ports.has_recipient,
        lanes=ports.lanes,
        fetch_queue=SqsFetchQueue(sqs, settings.fetch_queue_url, signer),
        load_shedder=ports.load_shedder,
        quotas=ports.quotas,
        check_url=check_url,
        clock=clock,
        randomness=randomness,
        max_bytes=settings.max_file_bytes,
    )
    return ports, fetch_ports, edge
