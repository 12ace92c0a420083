"""Which adapter stands behind which port in each function: the one place where operations meet AWS."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from darkroom.aws import clients
from darkroom.aws.images_table import ImagesTable
from darkroom.aws.objects import OriginalsBucket, OutputsBucket
from darkroom.aws.queues import LaneQueues, hide_for
from darkroom.domain.image import Milliseconds
from darkroom.domain.lanes import FAST, SLOW
from darkroom.domain.limits import InputFormat, Limits
from darkroom.ports import Images, Lanes, Once, Originals, Outputs
from darkroom.settings import (
    LaneSettings,
    ReadImageSettings,
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


def _queue_urls(settings: LaneSettings) -> dict[str, str]:
    return {FAST.name: settings.fast_queue_url, SLOW.name: settings.slow_queue_url}


@dataclass(frozen=True, kw_only=True)
class SubmitImage:
    """The ports of `submit_image`, and which files it accepts."""

    images: Images
    originals: Originals
    outputs: Outputs
    lanes: Lanes
    input_formats: frozenset[InputFormat]


def submit_image() -> SubmitImage:
    """The ports of `submit_image`, by the function's environment."""
    settings = SubmitImageSettings.read()
    s3 = clients.s3_client()
    return SubmitImage(
        images=ImagesTable(clients.dynamodb_client(), settings.images_table),
        originals=OriginalsBucket(s3, settings.originals_bucket),
        outputs=OutputsBucket(s3, settings.outputs_bucket),
        lanes=LaneQueues(clients.sqs_client(), _queue_urls(settings)),
        input_formats=settings.input_formats,
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
    visibility_seconds: int
    sqs: SQSClient
    queue_urls: Mapping[str, str]

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
        visibility_seconds=settings.visibility_seconds,
        sqs=clients.sqs_client(),
        queue_urls=_queue_urls(settings),
    )


@dataclass(frozen=True, kw_only=True)
class ReadImage:
    """The ports of `read_image`."""

    images: Images
    outputs: Outputs


def read_image() -> ReadImage:
    """The ports of `read_image`, by the function's environment."""
    settings = ReadImageSettings.read()
    return ReadImage(
        images=ImagesTable(clients.dynamodb_client(), settings.images_table),
        outputs=OutputsBucket(clients.s3_client(), settings.outputs_bucket),
    )


@dataclass(frozen=True, kw_only=True)
class SweepDueImages:
    """The ports of `sweep_due_images`."""

    images: Images
    lanes: Lanes


def sweep_due_images() -> SweepDueImages:
    """The ports of `sweep_due_images`, by the function's environment."""
    settings = SweepDueImagesSettings.read()
    return SweepDueImages(
        images=ImagesTable(clients.dynamodb_client(), settings.images_table),
        lanes=LaneQueues(clients.sqs_client(), _queue_urls(settings)),
    )
