"""Which adapter stands behind which port in each function: the one place where operations meet AWS."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from darkroom.aws import circuits, clients
from darkroom.aws.calendar import ReleaseCalendar
from darkroom.aws.dead_letters import DeadLetterArchive, DeadLetterQueues
from darkroom.aws.holds import HoldExecutions, HoldsBucket
from darkroom.aws.images_table import ImagesTable
from darkroom.aws.objects import OriginalsBucket, OutputsBucket
from darkroom.aws.queues import LaneDepths, LaneQueues, SqsHoldQueue, SqsUploadQueue, hide_for
from darkroom.aws.tenants_table import TenantsTable
from darkroom.aws.timesheets_table import TimesheetsTable
from darkroom.aws.token_buckets_table import TokenBucketsTable
from darkroom.aws.uploads import UploadsBucket
from darkroom.domain.instants import Milliseconds
from darkroom.domain.lanes import Lane
from darkroom.domain.limits import InputFormat, Limits
from darkroom.operations.admit_image import AdmissionControl
from darkroom.operations.admit_upload import Desk
from darkroom.operations.release_images import ReleaseStores
from darkroom.operations.sweep_due_images import Stores
from darkroom.ports import (
    Alarms,
    Archive,
    DeadLetters,
    HoldQueue,
    Holds,
    Images,
    Lanes,
    Once,
    Originals,
    Outputs,
    Tenants,
    Timesheets,
    TokenBuckets,
    Uploads,
)
from darkroom.settings import (
    AdmissionSettings,
    AdmitUploadSettings,
    ArchiveDeadLettersSettings,
    AuthorizeRequestSettings,
    BeginUploadSettings,
    DeleteImageSettings,
    HoldImagesSettings,
    MoveImageSettings,
    ReadImageSettings,
    ReleaseImagesSettings,
    SubmitImageSettings,
    SweepDueImagesSettings,
    TranscodeImageSettings,
)

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext
    from mypy_boto3_sqs import SQSClient


def clock() -> Milliseconds:
    """The current instant by this machine's clock."""
    return time.time_ns() // 1_000_000


randomness = secrets.token_bytes

within = clients.within


def _admission(settings: AdmissionSettings) -> AdmissionControl:
    return AdmissionControl(
        depths=LaneDepths(clients.impatient_sqs_client(), settings.queue_urls),
        timesheets=TimesheetsTable(clients.impatient_dynamodb_client(), settings.timesheets_table),
        clock=clock,
        service=settings.service,
    )


def _token_buckets(settings: AdmissionSettings) -> TokenBuckets:
    # On a client of its own: a tenant that is throttled at its own bucket must not open everybody's circuit.
    return TokenBucketsTable(clients.impatient_dynamodb_client(), settings.token_buckets_table)


def authorize_request() -> Tenants:
    """The port of `authorize_request`, by the function's environment."""
    settings = AuthorizeRequestSettings.read()
    dynamodb = clients.dynamodb_client()
    circuits.of_dynamodb(dynamodb, settings.tenants_table, key="id")
    return TenantsTable(dynamodb, settings.tenants_table)


@dataclass(frozen=True, kw_only=True)
class SubmitImage:
    """The ports of `submit_image`, and which files it accepts."""

    images: Images
    originals: Originals
    outputs: Outputs
    lanes: Lanes
    hold_queue: HoldQueue
    admission: AdmissionControl
    token_buckets: TokenBuckets
    input_formats: frozenset[InputFormat]
    admit: Callable[[], None]
    """Raises Retryable while S3 or DynamoDB is known not to answer: nothing is begun then."""


def submit_image() -> SubmitImage:
    """The ports of `submit_image`, by the function's environment."""
    settings = SubmitImageSettings.read()
    dynamodb, s3, sqs = clients.dynamodb_client(), clients.s3_client(), clients.sqs_client()
    return SubmitImage(
        images=ImagesTable(dynamodb, settings.images_table),
        originals=OriginalsBucket(s3, settings.originals_bucket),
        outputs=OutputsBucket(s3, settings.outputs_bucket),
        lanes=LaneQueues(sqs, settings.queue_urls),
        hold_queue=SqsHoldQueue(sqs, settings.hold_queue_url),
        admission=_admission(settings),
        token_buckets=_token_buckets(settings),
        input_formats=settings.input_formats,
        admit=circuits.admission(
            circuits.of_dynamodb(dynamodb, settings.images_table), circuits.of_s3(s3, settings.outputs_bucket)
        ),
    )


@dataclass(frozen=True, kw_only=True)
class BeginUpload:
    """The ports of `begin_upload`, where its document finds variants, and the largest file that may be announced."""

    images: Images
    uploads: Uploads
    outputs: Outputs
    admission: AdmissionControl
    token_buckets: TokenBuckets
    max_bytes: int
    admit: Callable[[], None]
    """Raises Retryable while DynamoDB is known not to answer: nothing is begun then."""


def begin_upload() -> BeginUpload:
    """The ports of `begin_upload`, by the function's environment."""
    settings = BeginUploadSettings.read()
    dynamodb, s3 = clients.dynamodb_client(), clients.s3_client()
    return BeginUpload(
        images=ImagesTable(dynamodb, settings.images_table),
        uploads=UploadsBucket(s3, settings.uploads_bucket),
        outputs=OutputsBucket(s3, settings.outputs_bucket),
        admission=_admission(settings),
        token_buckets=_token_buckets(settings),
        max_bytes=settings.max_upload_bytes,
        admit=circuits.admission(circuits.of_dynamodb(dynamodb, settings.images_table)),
    )


@dataclass(frozen=True, kw_only=True)
class AdmitUpload:
    """The ports of `admit_upload`, and what its handler needs of its queue."""

    desk: Desk
    upload_queue: SqsUploadQueue
    admit: Callable[[], None]
    """Raises Retryable while S3 or DynamoDB is known not to answer: nothing is begun then."""


def admit_upload() -> AdmitUpload:
    """The ports of `admit_upload`, by the function's environment."""
    settings = AdmitUploadSettings.read()
    dynamodb, s3, sqs = clients.dynamodb_client(), clients.s3_client(), clients.sqs_client()
    return AdmitUpload(
        desk=Desk(
            images=ImagesTable(dynamodb, settings.images_table),
            uploads=UploadsBucket(s3, settings.uploads_bucket),
            originals=OriginalsBucket(s3, settings.originals_bucket),
            lanes=LaneQueues(sqs, settings.queue_urls),
            hold_queue=SqsHoldQueue(sqs, settings.hold_queue_url),
            clock=clock,
            input_formats=settings.input_formats,
        ),
        upload_queue=SqsUploadQueue(sqs, settings.upload_queue_url),
        admit=circuits.admission(
            circuits.of_dynamodb(dynamodb, settings.images_table),
            circuits.of_s3(s3, settings.uploads_bucket, "uploads"),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class TranscodeImage:
    """The ports of `transcode_image`, the bounds of an original, and what its handler needs of SQS itself."""

    images: Images
    originals: Originals
    outputs: Outputs
    once: Callable[[LambdaContext], Once]
    """The memory of finished work, leased for as long as the invocation with that context may run."""
    limits: Limits
    admit: Callable[[], None]
    """Raises Retryable while S3 or DynamoDB is known not to answer: nothing is claimed then."""
    visibility_seconds: int
    sqs: SQSClient
    queue_urls: Mapping[str, str]
    timesheets: Timesheets
    service: Mapping[str, Lane]

    def hide_for(self, lane: str, receipt_handle: str, seconds: int) -> None:
        """Lets the message come back to its lane after `seconds`. Raises Retryable where it comes back by itself."""
        hide_for(self.sqs, self.queue_urls[lane], receipt_handle, seconds)


def transcode_image() -> TranscodeImage:
    """The ports of `transcode_image`, by the function's environment."""
    # Here, so that the others need not load it; and at initialisation, so that no delivery waits for it.
    from darkroom.aws.once import PowertoolsOnce  # noqa: PLC0415

    settings = TranscodeImageSettings.read()
    dynamodb, s3 = clients.dynamodb_client(), clients.s3_client()
    return TranscodeImage(
        images=ImagesTable(dynamodb, settings.images_table),
        originals=OriginalsBucket(s3, settings.originals_bucket),
        outputs=OutputsBucket(s3, settings.outputs_bucket),
        once=lambda context: PowertoolsOnce(dynamodb, settings.idempotency_table, context),
        limits=settings.limits,
        admit=circuits.admission(
            circuits.of_dynamodb(dynamodb, settings.images_table), circuits.of_s3(s3, settings.outputs_bucket)
        ),
        visibility_seconds=settings.visibility_seconds,
        sqs=clients.sqs_client(),
        queue_urls=settings.queue_urls,
        timesheets=TimesheetsTable(clients.impatient_dynamodb_client(), settings.timesheets_table),
        service=settings.service,
    )


@dataclass(frozen=True, kw_only=True)
class ReadImage:
    """The ports of `read_image`."""

    images: Images
    outputs: Outputs


def read_image() -> ReadImage:
    """The ports of `read_image`, by the function's environment."""
    settings = ReadImageSettings.read()
    dynamodb, s3 = clients.dynamodb_client(), clients.impatient_s3_client()
    circuits.of_dynamodb(dynamodb, settings.images_table)
    circuits.of_s3(s3, settings.outputs_bucket)
    return ReadImage(
        images=ImagesTable(dynamodb, settings.images_table),
        outputs=OutputsBucket(s3, settings.outputs_bucket),
    )


def delete_image() -> Images:
    """The port of `delete_image`, by the function's environment."""
    settings = DeleteImageSettings.read()
    dynamodb = clients.dynamodb_client()
    circuits.of_dynamodb(dynamodb, settings.images_table)
    return ImagesTable(dynamodb, settings.images_table)


@dataclass(frozen=True, kw_only=True)
class MoveImage:
    """The ports of `move_image`, and where its document finds variants."""

    images: Images
    outputs: Outputs
    lanes: Lanes
    hold_queue: HoldQueue
    admission: AdmissionControl
    token_buckets: TokenBuckets


def move_image() -> MoveImage:
    """The ports of `move_image`, by the function's environment."""
    settings = MoveImageSettings.read()
    dynamodb, sqs = clients.dynamodb_client(), clients.sqs_client()
    circuits.of_dynamodb(dynamodb, settings.images_table)
    return MoveImage(
        images=ImagesTable(dynamodb, settings.images_table),
        outputs=OutputsBucket(clients.s3_client(), settings.outputs_bucket),
        lanes=LaneQueues(sqs, settings.queue_urls),
        hold_queue=SqsHoldQueue(sqs, settings.hold_queue_url),
        admission=_admission(settings),
        token_buckets=_token_buckets(settings),
    )


@dataclass(frozen=True, kw_only=True)
class HoldImages:
    """The ports of `hold_images`."""

    lanes: Lanes
    holds: Holds
    alarms: Alarms


def hold_images() -> HoldImages:
    """The ports of `hold_images`, by the function's environment."""
    settings = HoldImagesSettings.read()
    return HoldImages(
        lanes=LaneQueues(clients.sqs_client(), settings.queue_urls),
        holds=HoldsBucket(clients.s3_client(), settings.holds_bucket),
        alarms=HoldExecutions(clients.step_functions_client(), settings.hold_state_machine),
    )


def release_images() -> ReleaseStores:
    """The ports of `release_images`, by the function's environment."""
    settings = ReleaseImagesSettings.read()
    dynamodb, sqs = clients.dynamodb_client(), clients.sqs_client()
    return ReleaseStores(
        images=ImagesTable(dynamodb, settings.images_table),
        lanes=LaneQueues(sqs, settings.queue_urls),
        hold_queue=SqsHoldQueue(sqs, settings.hold_queue_url),
        holds=HoldsBucket(clients.s3_client(), settings.holds_bucket),
        calendar=ReleaseCalendar(dynamodb, settings.calendar_table),
        clock=clock,
        service=settings.service,
    )


def sweep_due_images() -> Stores:
    """The ports of `sweep_due_images`, by the function's environment."""
    settings = SweepDueImagesSettings.read()
    dynamodb, s3, sqs = clients.dynamodb_client(), clients.s3_client(), clients.sqs_client()
    return Stores(
        images=ImagesTable(dynamodb, settings.images_table),
        uploads=UploadsBucket(s3, settings.uploads_bucket),
        originals=OriginalsBucket(s3, settings.originals_bucket),
        outputs=OutputsBucket(s3, settings.outputs_bucket),
        lanes=LaneQueues(sqs, settings.queue_urls),
        hold_queue=SqsHoldQueue(sqs, settings.hold_queue_url),
        upload_queue=SqsUploadQueue(sqs, settings.upload_queue_url),
        calendar=ReleaseCalendar(dynamodb, settings.calendar_table),
        dead_letters=DeadLetterQueues(sqs, clients.sqs_client_without_retries(), settings.dead_letter_queues),
        clock=clock,
        service=settings.service,
    )


@dataclass(frozen=True, kw_only=True)
class ArchiveDeadLetters:
    """The ports of `archive_dead_letters`."""

    images: Images
    dead_letters: DeadLetters
    archive: Archive


def archive_dead_letters() -> ArchiveDeadLetters:
    """The ports of `archive_dead_letters`, by the function's environment."""
    settings = ArchiveDeadLettersSettings.read()
    return ArchiveDeadLetters(
        images=ImagesTable(clients.dynamodb_client(), settings.images_table),
        dead_letters=DeadLetterQueues(
            clients.sqs_client(), clients.sqs_client_without_retries(), settings.dead_letter_queues
        ),
        archive=DeadLetterArchive(clients.s3_client(), settings.archive_bucket),
    )
