"""The wiring of `transcode_image`."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.objects import OriginalsBucket, OutputsBucket
from darkroom.aws.images.once import PowertoolsOnce
from darkroom.aws.images.outcomes_table import OutcomesTable
from darkroom.aws.images.queues import EdgeQueue, change_visibility
from darkroom.aws.images.throughput_table import ThroughputTable
from darkroom.aws.kernel import circuits, clients
from darkroom.domain.kernel.lanes import EDITS
from darkroom.domain.recipes.recipes import MAX_VARIANTS
from darkroom.operations.images.transcode_image import TranscodeImagePorts
from darkroom.operations.kernel.check_message import CheckPorts
from darkroom.operations.sweeping.worker_counts import CountOutcomesPorts, ReportThroughputPorts
from darkroom.settings import TranscodeImageSettings
from darkroom.wiring.kernel.message_keys import checking_of, message_keys_of
from darkroom.wiring.kernel.pauses import known_pauses_of
from darkroom.wiring.kernel.runtime import clock, kept_threads

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


@dataclass(frozen=True, kw_only=True)
class LaneWorker:
    """What the lanes' worker does besides developing: it checks messages, makes them come back to their queues, and
    counts its time and how its attempts end. A stack that orders the messages of edits has an `edits_queue_url`."""

    sqs: SQSClient
    queue_urls: Mapping[str, str]
    edits_queue_url: str
    throughput: ReportThroughputPorts
    outcomes: CountOutcomesPorts
    checking: CheckPorts

    def lane_of(self, queue: str) -> str | None:
        """The lane with the queue of that name; None for the queue of edits, which has images of all lanes."""
        return next((lane for lane, url in self.queue_urls.items() if url.rpartition("/")[2] == queue), None)

    def source_of(self, queue: str) -> str:
        """What messages in the queue of that name are signed for."""
        return self.lane_of(queue) or (EDITS if self.edits_queue_url.rpartition("/")[2] == queue else queue)

    def change_visibility(self, source: str, receipt_handle: str, seconds: int) -> None:
        """Makes the message come back to its queue after `seconds`. Raises Retryable if it comes back by itself."""
        change_visibility(self.sqs, self._url_of(source), receipt_handle, seconds)

    def hide(self, source: str, receipt_handle: str, seconds: int) -> None:
        """The same while the message's image waits to be developed: tried once, and not for long."""
        change_visibility(clients.impatient(self.sqs), self._url_of(source), receipt_handle, seconds)

    def _url_of(self, source: str) -> str:
        urls = {
            **self.queue_urls,
            EDITS: self.edits_queue_url,  # guard: bulk-edit-fifo-comes-back
        }
        return urls[source]


def wire() -> tuple[TranscodeImagePorts, LaneWorker]:
    """The ports of `transcode_image`, from the function's environment, and what its handler needs around it."""
    settings = TranscodeImageSettings.read()
    dynamodb, s3 = clients.dynamodb_client(), clients.s3_client()
    ports = TranscodeImagePorts(
        images=ImagesTable(dynamodb, settings.images_table),
        originals=OriginalsBucket(s3, settings.originals_bucket),
        outputs=OutputsBucket(s3, settings.outputs_bucket, may_list=False),  # guard: objects-worker-may-not-list
        stale_edge=EdgeQueue(clients.sqs_client(), settings.edge_queue_url) if settings.edge_queue_url else None,
        once=PowertoolsOnce(dynamodb, settings.idempotency_table),
        at_once=kept_threads(MAX_VARIANTS),
        clock=clock,
        jitter=random.random,
        require_healthy=circuits.require_all_healthy(
            circuits.of_dynamodb(dynamodb, settings.images_table), circuits.of_s3(s3, settings.outputs_bucket)
        ),
        limits=settings.limits,
        service=settings.service,
        visibility_seconds=settings.visibility_seconds,
        pauses=known_pauses_of(settings, dynamodb),
    )
    impatient = clients.impatient(dynamodb)
    throughput = ThroughputTable(impatient, settings.throughput_table)
    outcome_counts = OutcomesTable(impatient, settings.throughput_table)
    return ports, LaneWorker(
        sqs=clients.sqs_client(),
        queue_urls=settings.queue_urls,
        edits_queue_url=settings.edits_queue_url,
        throughput=ReportThroughputPorts(throughput=throughput, clock=clock),
        outcomes=CountOutcomesPorts(outcome_counts=outcome_counts, clock=clock),
        checking=checking_of(message_keys_of(settings), settings),
    )
