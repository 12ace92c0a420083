"""Connects each function's ports to their adapters: the one place where operations meet AWS."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from darkroom.aws import circuits, clients
from darkroom.aws.dead_letters import DeadLetterArchive, DeadLetterQueues
from darkroom.aws.holds import HoldExecutions, HoldsBucket
from darkroom.aws.images_table import ImagesTable
from darkroom.aws.objects import OriginalsBucket, OutputsBucket
from darkroom.aws.queues import LaneDepths, LaneQueues, SqsHoldQueue, SqsUploadQueue, change_visibility
from darkroom.aws.reservations_table import ReservationsTable
from darkroom.aws.tenants_table import TenantsTable
from darkroom.aws.throughput_table import ThroughputTable
from darkroom.aws.token_buckets_table import TokenBucketsTable
from darkroom.aws.uploads import UploadsBucket
from darkroom.domain.instants import Milliseconds
from darkroom.ports import Outputs
from darkroom.settings import (
    AcceptUploadSettings,
    ArchiveDeadLettersSettings,
    AuthorizeRequestSettings,
    BeginUploadSettings,
    DeleteImageSettings,
    HoldImagesSettings,
    LoadSheddingSettings,
    ReadImageSettings,
    ReleaseImagesSettings,
    RescheduleImageSettings,
    SubmitImageSettings,
    SweepDueImagesSettings,
    TranscodeImageSettings,
)

# Each function below imports its own operation, so that no other function has to load it.
if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext
    from mypy_boto3_sqs import SQSClient

    import darkroom.operations.accept_upload
    import darkroom.operations.archive_dead_letters
    import darkroom.operations.authorize_request
    import darkroom.operations.begin_upload
    import darkroom.operations.delete_image
    import darkroom.operations.hold_images
    import darkroom.operations.read_image
    import darkroom.operations.release_images
    import darkroom.operations.report_throughput
    import darkroom.operations.reschedule_image
    import darkroom.operations.submit_image
    import darkroom.operations.sweep_due_images
    import darkroom.operations.transcode_image
    from darkroom.operations.load_shedder import LoadShedder
    from darkroom.operations.take_token import Ports as RateLimitPorts


def clock() -> Milliseconds:
    """The current instant by this machine's clock."""
    return time.time_ns() // 1_000_000


randomness = secrets.token_bytes

within = clients.within


@dataclass(frozen=True, kw_only=True)
class Edge:
    """What an API handler needs around its operation: what its rate limit needs, and where variants are.

    `require_healthy` raises Retryable while a store that the operation needs is known not to answer: nothing is begun
    then.
    """

    rate_limit: RateLimitPorts
    outputs: Outputs
    require_healthy: Callable[[], None]


def _edge(settings: LoadSheddingSettings, outputs: Outputs, *needed: circuits.Circuit) -> Edge:
    from darkroom.operations.take_token import Ports as RateLimitPorts

    # With its own client: a tenant that is throttled at its own bucket must not open everybody's circuit.
    token_buckets = TokenBucketsTable(clients.impatient_dynamodb_client(), settings.token_buckets_table)
    rate_limit = RateLimitPorts(token_buckets=token_buckets, clock=clock)
    return Edge(rate_limit=rate_limit, outputs=outputs, require_healthy=circuits.require_all_healthy(*needed))


def _load_shedder(settings: LoadSheddingSettings) -> LoadShedder:
    from darkroom.operations.load_shedder import LoadShedder

    return LoadShedder(
        depths=LaneDepths(clients.impatient_sqs_client(), settings.queue_urls),
        throughput=ThroughputTable(clients.impatient_dynamodb_client(), settings.throughput_table),
        clock=clock,
        service=settings.service,
    )


def authorize_request() -> darkroom.operations.authorize_request.Ports:
    """The ports of `authorize_request`, from the function's environment."""
    from darkroom.operations.authorize_request import Ports

    settings = AuthorizeRequestSettings.read()
    dynamodb = clients.dynamodb_client()
    circuits.of_dynamodb(dynamodb, settings.tenants_table, key="id")
    return Ports(tenants=TenantsTable(dynamodb, settings.tenants_table))


def submit_image() -> tuple[darkroom.operations.submit_image.Ports, Edge]:
    """The ports of `submit_image`, from the function's environment, and what its handler needs around it."""
    from darkroom.operations.submit_image import Ports

    settings = SubmitImageSettings.read()
    dynamodb, s3, sqs = clients.dynamodb_client(), clients.s3_client(), clients.sqs_client()
    ports = Ports(
        images=ImagesTable(dynamodb, settings.images_table),
        originals=OriginalsBucket(s3, settings.originals_bucket),
        lanes=LaneQueues(sqs, settings.queue_urls),
        hold_queue=SqsHoldQueue(sqs, settings.hold_queue_url),
        load_shedder=_load_shedder(settings),
        clock=clock,
        randomness=randomness,
        input_formats=settings.input_formats,
    )
    return ports, _edge(
        settings,
        OutputsBucket(s3, settings.outputs_bucket),
        circuits.of_dynamodb(dynamodb, settings.images_table),
        circuits.of_s3(s3, settings.outputs_bucket),
    )


def begin_upload() -> tuple[darkroom.operations.begin_upload.Ports, Edge]:
    """The ports of `begin_upload`, from the function's environment, and what its handler needs around it."""
    from darkroom.operations.begin_upload import Ports

    settings = BeginUploadSettings.read()
    dynamodb, s3 = clients.dynamodb_client(), clients.s3_client()
    ports = Ports(
        images=ImagesTable(dynamodb, settings.images_table),
        uploads=UploadsBucket(s3, settings.uploads_bucket),
        load_shedder=_load_shedder(settings),
        clock=clock,
        randomness=randomness,
        max_bytes=settings.max_file_bytes,
    )
    return ports, _edge(
        settings, OutputsBucket(s3, settings.outputs_bucket), circuits.of_dynamodb(dynamodb, settings.images_table)
    )


def accept_upload() -> tuple[darkroom.operations.accept_upload.Ports, SqsUploadQueue]:
    """The ports of `accept_upload`, from the function's environment, and the queue of its notifications."""
    from darkroom.operations.accept_upload import Ports

    settings = AcceptUploadSettings.read()
    dynamodb, s3, sqs = clients.dynamodb_client(), clients.s3_client(), clients.sqs_client()
    ports = Ports(
        images=ImagesTable(dynamodb, settings.images_table),
        uploads=UploadsBucket(s3, settings.uploads_bucket),
        originals=OriginalsBucket(s3, settings.originals_bucket),
        lanes=LaneQueues(sqs, settings.queue_urls),
        hold_queue=SqsHoldQueue(sqs, settings.hold_queue_url),
        clock=clock,
        require_healthy=circuits.require_all_healthy(
            circuits.of_dynamodb(dynamodb, settings.images_table),
            circuits.of_s3(s3, settings.uploads_bucket, "uploads"),
        ),
        input_formats=settings.input_formats,
    )
    return ports, SqsUploadQueue(sqs, settings.upload_queue_url)


@dataclass(frozen=True, kw_only=True)
class LaneWorker:
    """What the lanes' worker does besides developing: it makes messages come back to their lanes, counts its time, and
    calls `register` for each invocation, which tells the memory of finished work until when its work may be leased."""

    sqs: SQSClient
    queue_urls: Mapping[str, str]
    throughput: darkroom.operations.report_throughput.Ports
    register: Callable[[LambdaContext], None]

    def change_visibility(self, lane: str, receipt_handle: str, seconds: int) -> None:
        """Makes the message come back to its lane after `seconds`. Raises Retryable if it comes back by itself."""
        change_visibility(self.sqs, self.queue_urls[lane], receipt_handle, seconds)


def transcode_image() -> tuple[darkroom.operations.transcode_image.Ports, LaneWorker]:
    """The ports of `transcode_image`, from the function's environment, and what its handler needs around it."""
    from darkroom.aws.once import PowertoolsOnce
    from darkroom.operations.report_throughput import Ports as ThroughputPorts
    from darkroom.operations.transcode_image import Ports

    settings = TranscodeImageSettings.read()
    dynamodb, s3 = clients.dynamodb_client(), clients.s3_client()
    once = PowertoolsOnce(dynamodb, settings.idempotency_table)
    ports = Ports(
        images=ImagesTable(dynamodb, settings.images_table),
        originals=OriginalsBucket(s3, settings.originals_bucket),
        outputs=OutputsBucket(s3, settings.outputs_bucket),
        once=once,
        clock=clock,
        jitter=random.random,
        require_healthy=circuits.require_all_healthy(
            circuits.of_dynamodb(dynamodb, settings.images_table), circuits.of_s3(s3, settings.outputs_bucket)
        ),
        limits=settings.limits,
        service=settings.service,
        visibility_seconds=settings.visibility_seconds,
    )
    throughput = ThroughputTable(clients.impatient_dynamodb_client(), settings.throughput_table)
    return ports, LaneWorker(
        sqs=clients.sqs_client(),
        queue_urls=settings.queue_urls,
        throughput=ThroughputPorts(throughput=throughput, clock=clock),
        register=once.register,
    )


def read_image() -> darkroom.operations.read_image.Ports:
    """The ports of `read_image` and `list_images`, from the function's environment."""
    from darkroom.operations.read_image import Ports

    settings = ReadImageSettings.read()
    dynamodb, s3 = clients.dynamodb_client(), clients.impatient_s3_client()
    circuits.of_dynamodb(dynamodb, settings.images_table)
    circuits.of_s3(s3, settings.outputs_bucket)
    return Ports(
        images=ImagesTable(dynamodb, settings.images_table),
        outputs=OutputsBucket(s3, settings.outputs_bucket),
        clock=clock,
    )


def delete_image() -> darkroom.operations.delete_image.Ports:
    """The ports of `delete_image`, from the function's environment."""
    from darkroom.operations.delete_image import Ports

    settings = DeleteImageSettings.read()
    dynamodb = clients.dynamodb_client()
    circuits.of_dynamodb(dynamodb, settings.images_table)
    return Ports(images=ImagesTable(dynamodb, settings.images_table), clock=clock)


def reschedule_image() -> tuple[darkroom.operations.reschedule_image.Ports, Edge]:
    """The ports of `reschedule_image`, from the function's environment, and what its handler needs around it."""
    from darkroom.operations.reschedule_image import Ports

    settings = RescheduleImageSettings.read()
    dynamodb, sqs = clients.dynamodb_client(), clients.sqs_client()
    ports = Ports(
        images=ImagesTable(dynamodb, settings.images_table),
        lanes=LaneQueues(sqs, settings.queue_urls),
        hold_queue=SqsHoldQueue(sqs, settings.hold_queue_url),
        load_shedder=_load_shedder(settings),
        clock=clock,
    )
    outputs = OutputsBucket(clients.s3_client(), settings.outputs_bucket)
    return ports, _edge(settings, outputs, circuits.of_dynamodb(dynamodb, settings.images_table))


def hold_images() -> darkroom.operations.hold_images.Ports:
    """The ports of `hold_images`, from the function's environment."""
    from darkroom.operations.hold_images import Ports

    settings = HoldImagesSettings.read()
    return Ports(
        lanes=LaneQueues(clients.sqs_client(), settings.queue_urls),
        holds=HoldsBucket(clients.s3_client(), settings.holds_bucket),
        wake_ups=HoldExecutions(clients.step_functions_client(), settings.hold_state_machine),
        clock=clock,
        known_lanes=settings.queue_urls,
    )


def release_images() -> darkroom.operations.release_images.Ports:
    """The ports of `release_images`, from the function's environment."""
    from darkroom.operations.release_images import Ports

    settings = ReleaseImagesSettings.read()
    dynamodb, sqs = clients.dynamodb_client(), clients.sqs_client()
    return Ports(
        images=ImagesTable(dynamodb, settings.images_table),
        lanes=LaneQueues(sqs, settings.queue_urls),
        hold_queue=SqsHoldQueue(sqs, settings.hold_queue_url),
        holds=HoldsBucket(clients.s3_client(), settings.holds_bucket),
        reservations=ReservationsTable(dynamodb, settings.reservations_table),
        clock=clock,
        service=settings.service,
    )


def sweep_due_images() -> darkroom.operations.sweep_due_images.Ports:
    """The ports of `sweep_due_images`, from the function's environment."""
    from darkroom.operations.sweep_due_images import Ports

    settings = SweepDueImagesSettings.read()
    dynamodb, s3, sqs = clients.dynamodb_client(), clients.s3_client(), clients.sqs_client()
    return Ports(
        images=ImagesTable(dynamodb, settings.images_table),
        uploads=UploadsBucket(s3, settings.uploads_bucket),
        originals=OriginalsBucket(s3, settings.originals_bucket),
        outputs=OutputsBucket(s3, settings.outputs_bucket),
        lanes=LaneQueues(sqs, settings.queue_urls),
        hold_queue=SqsHoldQueue(sqs, settings.hold_queue_url),
        upload_queue=SqsUploadQueue(sqs, settings.upload_queue_url),
        reservations=ReservationsTable(dynamodb, settings.reservations_table),
        dead_letters=DeadLetterQueues(sqs, clients.sqs_client_without_retries(), settings.dead_letter_queues),
        clock=clock,
        service=settings.service,
    )


def archive_dead_letters() -> darkroom.operations.archive_dead_letters.Ports:
    """The ports of `archive_dead_letters`, from the function's environment."""
    from darkroom.operations.archive_dead_letters import Ports

    settings = ArchiveDeadLettersSettings.read()
    return Ports(
        images=ImagesTable(clients.dynamodb_client(), settings.images_table),
        dead_letters=DeadLetterQueues(
            clients.sqs_client(), clients.sqs_client_without_retries(), settings.dead_letter_queues
        ),
        archive=DeadLetterArchive(clients.s3_client(), settings.archive_bucket),
        clock=clock,
    )
